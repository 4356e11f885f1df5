// The hottest instructions of a kernel and their stall reasons, from `gapscope record --instructions`.

import { isMissing } from "../data/missing.ts";
import { h } from "../dom.ts";
import type { Findings, SampledPlace, SampledStall, Missing } from "../generated/protocol.ts";
import { plural, share } from "../time/format.ts";

const MAX_PLACES = 8;

/** Why an instruction has no line, by the reason in the findings. */
const NO_LINE: Record<string, string> = {
  "not-compiled-in": "No line information: compile with -lineinfo.",
  "code-not-kept": "The code was too large to be kept.",
  "none-for-instruction": "The code has no line for this instruction.",
  "unknown-function": "CUPTI does not name the function.",
};

/** Makes the list of a kernel's hottest lines; `null` where its instructions were not sampled. */
export function hotInstructions(findings: Findings | Missing | null, kernel: string): HTMLElement | null {
  if (findings === null || isMissing(findings)) return null;
  const sampled = (findings.sampled_kernels ?? []).find((one) => one.kernel === kernel && one.samples > 0);
  if (!sampled) return null;
  const places = sampled.places.slice(0, MAX_PLACES);
  return h(
    "div",
    { class: "hot-instructions" },
    h("h3", {}, "Hot instructions", h("span", { class: "note" }, ` ${plural(sampled.samples, "sample", "samples")}, ${share(sampled.share)} of all`)),
    h(
      "ul",
      { class: "causes" },
      places.map((place) =>
        h(
          "li",
          { title: meaning(place) },
          h("span", { class: "clip" }, named(place)),
          h("span", { class: "clip note" }, place.stalls[0] ? `${reason(place.stalls[0])} ${share(place.stalls[0].share)}` : ""),
          h("span", { class: "number" }, share(place.share)),
        ),
      ),
    ),
    toDo(sampled.stalls[0]),
    h("p", { class: "note" }, "Shares are of samples, over the whole recording."),
  );
}

/** Makes the advice for the most frequent stall reason of a kernel. */
function toDo(most: SampledStall | undefined): HTMLElement | null {
  if (!most?.advice) return null;
  return h("p", { class: "to-do" }, h("b", {}, `${reason(most)} ${share(most.share)}`), `: ${most.meaning ?? ""} To do: ${most.advice}.`);
}

/** Returns the line, such as `scale.cu:12`, or the instruction's offset where there is no line. */
function named({ file, line, offset_bytes }: SampledPlace): string {
  return file !== null && line !== null ? `${file.split("/").at(-1)}:${line}` : `+0x${offset_bytes.toString(16)}`;
}

function reason(stall: { reason: string }): string {
  return stall.reason.replaceAll("_", " ");
}

/** Returns the tooltip of a place: its full line, and all reasons for which it stalled. */
function meaning(place: SampledPlace): string {
  const whole = place.file !== null && place.line !== null ? `${place.file}:${place.line}` : (NO_LINE[place.no_line ?? ""] ?? "");
  const stalls = place.stalls.map((stall) => `${reason(stall)} ${share(stall.share)}${stall.meaning ? `: ${stall.meaning}` : ""}`);
  return [whole, ...stalls].filter(Boolean).join("\n");
}
