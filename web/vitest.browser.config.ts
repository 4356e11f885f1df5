import { defineConfig } from "vitest/config";
// Behaviours in a real browser, against the real server. `cargo xtask test` prepares what they need.
export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    environment: "node",
    // One browser at a time: they measure time.
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A busy machine is slow, not wrong.
    expect: { poll: { timeout: 60_000 } },
  },
});
