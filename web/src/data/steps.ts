// The steps of a program, as the findings have them: which ranges are steps, which is the median one and which are slow is found by the server.

import type { Findings } from "../generated/protocol.ts";
import { duration } from "../time/format.ts";
import { length, type Range } from "../time/range.ts";

/** The steps of a trace, in order of time. */
export interface Steps {
  /** The text of their label, or `step` where launches tell them. */
  name: string;
  ranges: readonly Range[];
  /** The number of each. */
  numbers: readonly number[];
  /** The index of the step of median length. */
  median: number;
  /** The indices of the slow steps, the slowest first. */
  slow: readonly number[];
  /** Why each step is slow; null where it is not, or where no part of its time grew enough. */
  because: readonly (string | null)[];
}

/** Returns the steps of findings; null where they have none. */
export function stepsOf({ steps, step_summary }: Pick<Findings, "steps" | "step_summary">): Steps | null {
  if (!steps || !step_summary) return null;
  return {
    name: step_summary.label ?? "step",
    ranges: steps.map(({ start_ns, duration_ns }) => ({ from_ns: start_ns, to_ns: start_ns + duration_ns })),
    numbers: steps.map(({ number }) => number),
    median: step_summary.median,
    slow: step_summary.slow,
    because: steps.map(({ because }) => because ?? null),
  };
}

/** Returns the name of a step by its index, such as `train_step 3`, or `iteration 12` for the label `iteration *`. */
export function nameOf(steps: Steps, at: number): string {
  const number = String(steps.numbers[at]);
  return steps.name.includes("*") ? steps.name.replace("*", number) : `${steps.name} ${number}`;
}

/** Returns what is said of a step: its name, its length, and why it is slow. */
export function stepText(steps: Steps, at: number): string {
  const because = steps.because[at];
  const kind = at === steps.median ? ", the median step" : steps.slow.includes(at) ? ", slow" : "";
  return `${nameOf(steps, at)}: ${duration(Math.round(length(steps.ranges[at])))}${kind}${because ? `; ${because}` : ""}`;
}

/** Returns the name of the step that a range is, such as `ProfilerStep 3 (median)`; null for a range that is no step. */
export function stepName(steps: Steps | null, range: Range): string | null {
  const at = steps ? steps.ranges.findIndex((one) => Math.floor(one.from_ns) === Math.floor(range.from_ns) && Math.ceil(one.to_ns) === Math.ceil(range.to_ns)) : -1;
  if (!steps || at < 0) return null;
  const kind = at === steps.median ? " (median)" : steps.slow.includes(at) ? " (slow)" : "";
  return `${nameOf(steps, at)}${kind}`;
}
