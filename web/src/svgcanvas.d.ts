// The part of the package `svgcanvas` that the page uses: a context that keeps what is drawn as SVG.

declare module "svgcanvas/dist/svgcanvas.esm.js" {
  export class Context {
    constructor(options: { width: number; height: number });
    /** Returns the SVG document as text. */
    getSerializedSvg(fixNamedEntities?: boolean): string;
  }
}
