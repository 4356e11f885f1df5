import { defineConfig } from "vitest/config";
// Runs the measurements for docs/performance.md. `cargo xtask bench --only view` starts them and writes the table.
export default defineConfig({
  test: { include: ["browser/speed.measure.ts"], environment: "node", testTimeout: 3_600_000, hookTimeout: 600_000 },
});
