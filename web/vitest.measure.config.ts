import { defineConfig } from "vitest/config";
// Measurements for docs/performance.md; `cargo xtask bench --only view` runs them and writes the table.
export default defineConfig({
  test: { include: ["browser/speed.measure.ts"], environment: "node", testTimeout: 3_600_000, hookTimeout: 600_000 },
});
