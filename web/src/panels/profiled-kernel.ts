// The figures of profiled launches of a kernel, from `gapscope record --profile-kernel`, which repeats a launch in
// several passes to measure it.

import { isMissing } from "../data/missing.ts";
import { h } from "../dom.ts";
import type { Findings, ProfiledKernel, Missing } from "../generated/protocol.ts";
import { bytes, duration, plural, share } from "../time/format.ts";

const MAX_STALLS = 4;
const REPLAYED = "Measured while the launch was repeated alone: caches hold what the previous run left, and clocks are not locked.";

/** Makes the figures of a kernel's last profile; `null` where there is none. */
export function profiledKernel(findings: Findings | Missing | null, kernel: string): HTMLElement | null {
  if (findings === null || isMissing(findings)) return null;
  const all = (findings.profiled_kernels ?? []).filter((one) => one.kernel === kernel);
  const last = all.at(-1);
  if (!last) return null;
  const figure = (name: string, value: string | null): HTMLElement[] => [h("dt", {}, name), h("dd", {}, value ?? "unknown")];
  const part = (value: number | null): string | null => (value === null ? null : share(value));
  const moved = (throughput: number | null, size: number | null): string | null => [part(throughput), size === null ? null : bytes(size)].filter(Boolean).join(", ") || null;
  return h(
    "div",
    { class: "profiled" },
    h("h3", {}, "In depth", h("span", { class: "note" }, ` ${about(last, all.length)}`)),
    h("p", {}, last.sentence),
    h(
      "dl",
      { class: "fields" },
      ...figure("device memory", moved(last.dram, last.dram_read_bytes === null || last.dram_written_bytes === null ? null : last.dram_read_bytes + last.dram_written_bytes)),
      ...figure("L2", moved(last.l2, last.l2_bytes)),
      ...figure("L2 hit rate", part(last.l2_hit_rate)),
      ...figure("L1 and shared", moved(last.l1, last.l1_bytes)),
      ...figure("L1 hit rate", part(last.l1_hit_rate)),
      ...figure("occupancy", part(last.achieved_occupancy)),
      ...figure("possible occupancy", last.theoretical_occupancy === null ? null : `${share(last.theoretical_occupancy)}, by ${(last.occupancy_limited_by ?? "unknown").replaceAll("-", " ")}`),
    ),
    h(
      "ul",
      { class: "causes" },
      last.stalls.slice(0, MAX_STALLS).map((stall) =>
        h(
          "li",
          { title: [stall.meaning, stall.advice ? `To do: ${stall.advice}.` : ""].filter(Boolean).join(" ") },
          h("span", { class: "clip" }, stall.reason.replaceAll("_", " ")),
          h("span", { class: "number" }, share(stall.share)),
        ),
      ),
    ),
    h("p", { class: "note" }, REPLAYED),
  );
}

/** Says how long the launch took, in how many passes it was measured, and which of several it is. */
function about(profile: ProfiledKernel, launches: number): string {
  const time = profile.duration_ns === null ? "" : `${duration(profile.duration_ns)}, `;
  const last = launches > 1 ? `, the last of ${launches} launches` : "";
  return `${time}${plural(profile.passes, "pass", "passes")}${last}`;
}
