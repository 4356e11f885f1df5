import { defineConfig, type Plugin } from "vite";

/** Gives the built page the shape that `gapscope report --html` needs: three files, and a comment that marks the place for data. */
function shape(): Plugin {
  return {
    name: "gapscope-shape",
    enforce: "post",
    transformIndexHtml: {
      order: "post",
      handler: (html) =>
        html
          .replace(/<script type="module" crossorigin src="\.\/app\.js"><\/script>\s*/, "")
          .replace(/<link rel="stylesheet" crossorigin href="\.\/app\.css">/, '<link rel="stylesheet" href="./app.css">')
          .replace("<noscript>", '<!-- gapscope-data -->\n    <noscript>')
          .replace("  </body>", '  <script type="module" src="./app.js"></script>\n  </body>'),
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [shape()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app.[ext]", codeSplitting: false },
    },
  },
});
