// Finds the part of a trace with GPU work, where it is the smaller part.

import type { Trace } from "./data/trace.ts";
import { length, type Range, widened } from "./time/range.ts";

/** The share of the trace below which the part with GPU work is shown first. */
const MAX_SHARE = 0.5;

/** Returns the time from the first GPU work to the last with a margin, where that is the smaller part of the trace; otherwise null. */
export function workRange(trace: Pick<Trace, "tracks" | "whole">): Range | null {
  const { from_ns, to_ns } = trace.whole;
  let [first, past, bins] = [Infinity, 0, 0];
  for (const { kind, summary } of trace.tracks) {
    if (kind !== "work" || !summary) continue;
    bins = summary.length;
    const begin = summary.findIndex((share) => share > 0);
    if (begin < 0) continue;
    first = Math.min(first, begin);
    past = Math.max(past, summary.findLastIndex((share) => share > 0) + 1);
  }
  if (past === 0) return null;
  const bin_ns = (to_ns - from_ns) / bins;
  const range = { from_ns: from_ns + first * bin_ns, to_ns: from_ns + past * bin_ns };
  return length(range) < length(trace.whole) * MAX_SHARE ? widened(range, 0.04) : null;
}
