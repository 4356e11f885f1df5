// The steps of a program: the instances of the label that is set for each of its evaluations, such as `ProfilerStep`.

import type { LabelRow } from "../generated/protocol.ts";
import { length, type Range } from "../time/range.ts";

/** The least number of steps that are shown. */
const MIN_STEPS = 3;
/** A step is slow that is longer than the median by this share of it, and by this many times the median distance from it. */
const SLOW_SHARE = 0.1;
const SLOW_DISTANCES = 3;
/** The words that programs call their steps. */
const STEP_WORD = /(^|[^a-z])(profiler)?(step|iteration|iter|batch|frame|epoch|token)s?([^a-z]|$)/i;

/** The steps of a trace, in order of time. */
export interface Steps {
  /** The label's own text. */
  name: string;
  ranges: readonly Range[];
  /** The index of the step of median length. */
  median: number;
  /** The indices of the slow steps, the slowest first. */
  slow: readonly number[];
}

/** Returns the label whose instances are the steps: the outermost that is called like one, or the only outermost label that is set often. */
export function stepLabel(labels: readonly Pick<LabelRow, "path" | "text" | "depth" | "instances">[]): { path: string; text: string } | null {
  const often = labels.filter(({ instances }) => (instances ?? 0) >= MIN_STEPS);
  const named = often.filter(({ text }) => STEP_WORD.test(text)).sort((a, b) => a.depth - b.depth || (b.instances ?? 0) - (a.instances ?? 0));
  if (named.length > 0) return named[0];
  const outermost = often.filter(({ depth }) => depth === 0);
  return outermost.length === 1 ? outermost[0] : null;
}

/** Returns the index of the range whose length is the median; of an even number the shorter of both in the middle. -1 for none. */
export function medianOf(ranges: readonly Range[]): number {
  const order = ranges.map((_, at) => at).sort((a, b) => length(ranges[a]) - length(ranges[b]) || a - b);
  return order.length === 0 ? -1 : order[Math.floor((order.length - 1) / 2)];
}

/** Judges steps by their lengths; null where they are too few. */
export function stepsOf(name: string, ranges: readonly Range[]): Steps | null {
  if (ranges.length < MIN_STEPS) return null;
  const median = medianOf(ranges);
  const usual_ns = length(ranges[median]);
  const distances = ranges.map((range) => Math.abs(length(range) - usual_ns)).sort((a, b) => a - b);
  const least_ns = usual_ns + Math.max(usual_ns * SLOW_SHARE, SLOW_DISTANCES * distances[Math.floor((distances.length - 1) / 2)]);
  const slow = ranges.map((_, at) => at).filter((at) => length(ranges[at]) > least_ns).sort((a, b) => length(ranges[b]) - length(ranges[a]));
  return { name, ranges, median, slow };
}

/** Returns the name of a step, such as `ProfilerStep 3 (median)`; null for a range that is no step. */
export function stepName(steps: Steps | null, range: Range): string | null {
  const at = steps ? steps.ranges.findIndex((one) => Math.floor(one.from_ns) === Math.floor(range.from_ns) && Math.ceil(one.to_ns) === Math.ceil(range.to_ns)) : -1;
  if (!steps || at < 0) return null;
  const kind = at === steps.median ? " (median)" : steps.slow.includes(at) ? " (slow)" : "";
  return `${steps.name} ${at + 1}${kind}`;
}
