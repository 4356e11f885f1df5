import { defineConfig } from "vitest/config";
// Runs the tests in a real browser against the real server. `cargo xtask test` prepares both.
export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    environment: "node",
    // Files run one after the other, because some tests measure time.
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // On a busy machine everything takes longer.
    expect: { poll: { timeout: 60_000 } },
  },
});
