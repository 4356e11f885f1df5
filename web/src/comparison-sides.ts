// The sides of a comparison: how they are written in addresses, which pairs are suggested, and two linked views that
// show them from a common start. An instance is one place where a label was set; a stretch is a range of a side that
// can be aligned.

import type { DataSource } from "./data/source.ts";
import { stepName } from "./data/steps.ts";
import type { Trace } from "./data/trace.ts";
import type { Instances, WorkComparison } from "./generated/protocol.ts";
import { coveringRange, length, type Range } from "./time/range.ts";
import { View } from "./view.ts";

/** One side of a comparison: a whole trace, all instances of a label, or a range. */
export type Side =
  | { trace: number; what: "all" }
  | { trace: number; what: "label"; path: string }
  | { trace: number; what: "range"; range: Range };

/** Writes a side, such as `0:all`, `0:label:step` or `1:range:100:200` with times in nanoseconds. */
export function writeSide(side: Side): string {
  switch (side.what) {
    case "all":
      return `${side.trace}:all`;
    case "label":
      return `${side.trace}:label:${side.path}`;
    case "range":
      return `${side.trace}:range:${Math.floor(side.range.from_ns)}:${Math.ceil(side.range.to_ns)}`;
  }
}

/** Reads what `writeSide` has written; null for any other text. */
export function readSide(text: string): Side | null {
  const found = /^(\d+):(all|label|range)(?::(.*))?$/s.exec(text);
  if (!found) return null;
  const trace = Number(found[1]);
  if (found[2] === "all") return { trace, what: "all" };
  if (found[2] === "label") return found[3] ? { trace, what: "label", path: found[3] } : null;
  const [from_ns, to_ns] = (found[3] ?? "").split(":").map(Number);
  return from_ns < to_ns ? { trace, what: "range", range: { from_ns, to_ns } } : null;
}

/** Names a side for the reader; the trace only where there are several. */
export function sideName(side: Side, traces: readonly Trace[]): string {
  const trace = traces.length > 1 ? traces[side.trace]?.overview.name : "";
  const what = side.what === "label" ? side.path : side.what === "range" ? (stepName(traces[side.trace]?.steps ?? null, side.range) ?? "selected range") : "whole trace";
  return [trace, side.what === "all" && trace ? "" : what].filter(Boolean).join(", ");
}

/** A side that the reader can choose; of a label also how often it was set and how much ran under it. */
export interface SideChoice {
  side: Side;
  instances?: number | null;
  dispatches?: number;
}

/** The most pairs of labels that are tried: each costs two requests. */
const MAX_PAIRS = 6;

/** Returns the pairs to suggest: two whole traces, or sibling labels that were set equally often. */
export function likelyPairs(choices: readonly SideChoice[]): [Side, Side][] {
  const pairs: [Side, Side][] = [];
  choices.forEach((a, at) => {
    for (const b of choices.slice(at + 1)) if (isLikely(a, b)) pairs.push([a.side, b.side]);
  });
  const traces = pairs.filter(([a, b]) => a.trace !== b.trace);
  return traces.length > 0 ? traces.slice(0, 1) : pairs.slice(0, MAX_PAIRS);
}

/**
 * Returns whether two choices may be the same work: whole traces, or labels with the same parent that were set
 * equally often and ran something, and differ by more than numbers.
 */
function isLikely(a: SideChoice, b: SideChoice): boolean {
  if (a.side.trace !== b.side.trace) return a.side.what === "all" && b.side.what === "all";
  if (a.side.what !== "label" || b.side.what !== "label" || parentPath(a.side.path) !== parentPath(b.side.path)) return false;
  const ran = (choice: SideChoice): boolean => (choice.dispatches ?? 0) > 0;
  return ran(a) && ran(b) && Boolean(a.instances) && a.instances === b.instances && unnumbered(a.side.path) !== unnumbered(b.side.path);
}

/** Replaces numbers, so that `step 3` equals `step 4`. */
function unnumbered(path: string): string {
  return path.replace(/\d+/g, "#");
}

/** Returns the path of the enclosing label. */
function parentPath(path: string): string {
  return path.split(" / ").slice(0, -1).join(" / ");
}

/** Returns whether instances of the two alternate, as the phases of a step do. Two ways to do the same work come one after the other instead. */
export function alternate(a: readonly Range[], b: readonly Range[]): boolean {
  const [all_a, all_b] = [coveringRange(a), coveringRange(b)];
  return all_a.to_ns > all_b.from_ns && all_b.to_ns > all_a.from_ns;
}

/** Returns the pair to compare first; null where no pair suggests itself. */
export async function firstPair(source: DataSource, traces: readonly Trace[], choices: readonly SideChoice[]): Promise<[Side, Side] | null> {
  for (const [a, b] of likelyPairs(choices)) {
    if (a.what === "all") return [a, b];
    // A request would disturb the program that is recorded.
    if (traces[a.trace].overview.live) return null;
    const found = await Promise.all([a, b].map((side) => stretches(source, traces[side.trace], side))).catch(() => []);
    if (found.length === 2 && found.every(({ length }) => length > 0) && !alternate(found[0], found[1])) return [a, b];
  }
  return null;
}

/** Asks the server to compare two sides. */
export function compared(source: DataSource, before: Side, after: Side): Promise<WorkComparison> {
  return source.compare({ ...asked("a", before), ...asked("b", after) });
}

/** Returns the parameters of one side of a question. */
function asked(name: "a" | "b", side: Side): Record<string, string | number> {
  const query: Record<string, string | number> = { [name]: side.trace };
  if (side.what === "label") query[`${name}_label`] = side.path;
  if (side.what === "range") {
    query[`${name}_from`] = Math.floor(side.range.from_ns);
    query[`${name}_to`] = Math.ceil(side.range.to_ns);
  }
  return query;
}

/**
 * Returns the ranges of a side that can be aligned: each instance of a label, the selected range, or for a trace the
 * time of its work. Where the server does not list instances, the loaded tracks are searched.
 */
export async function stretches(source: DataSource, trace: Trace, side: Side): Promise<Range[]> {
  if (side.what === "range") return [side.range];
  if (side.what === "all") return [workExtent(trace)];
  try {
    return joined((await source.instances(side.trace, side.path)).instances);
  } catch (error) {
    const found = ownInstances(trace, side.path);
    if (found.length === 0) throw error;
    return joined(found);
  }
}

/** Merges instances that overlap, such as those of one label in several command buffers of a step. Instances that only touch stay apart. */
function joined(instances: Instances["instances"]): Range[] {
  const ranges: { from_ns: number; to_ns: number }[] = [];
  for (const { start_ns, duration_ns } of [...instances].sort((a, b) => a.start_ns - b.start_ns)) {
    const last = ranges[ranges.length - 1];
    if (last && start_ns < last.to_ns) last.to_ns = Math.max(last.to_ns, start_ns + duration_ns);
    else ranges.push({ from_ns: start_ns, to_ns: start_ns + duration_ns });
  }
  return ranges.filter((range) => length(range) > 0);
}

/** Collects instances from the loaded tracks, for saved pages. Tracks know only a label's own text, so nothing is returned where several labels have it. */
function ownInstances(trace: Trace, path: string): Instances["instances"] {
  const text = path.split(" / ").at(-1);
  const { findings } = trace;
  if (findings && "labels" in findings && (findings.labels ?? []).filter((label) => label.text === text).length > 1) return [];
  for (const kind of ["labels", "queue-labels", "thread-labels"]) {
    const found = trace.tracks
      .filter((track) => track.kind === kind && track.state === "ready")
      .flatMap((track) =>
        track.lanes.flatMap((lane) => {
          const instances: Instances["instances"] = [];
          for (let i = 0; i < lane.count; i += 1) {
            if (trace.text(lane.key[i]) === text) instances.push({ start_ns: lane.start_ns[i], duration_ns: lane.duration_ns[i], track: track.id, row: -1 });
          }
          return instances;
        }),
      );
    if (found.length > 0) return found;
  }
  return [];
}

/** Returns the range from the first work to the last, so that two traces start together whatever came before. */
function workExtent(trace: Trace): Range {
  const extents = trace.tracks.filter((track) => track.kind === "work").flatMap((track) => track.extent ?? []);
  return extents.length === 0 ? trace.whole : coveringRange(extents);
}

/** Returns the index of the range whose length is the median; of an even number the shorter of both in the middle. -1 for none. */
function medianOf(ranges: readonly Range[]): number {
  const order = ranges.map((_, at) => at).sort((a, b) => length(ranges[a]) - length(ranges[b]) || a - b);
  return order.length === 0 ? -1 : order[Math.floor((order.length - 1) / 2)];
}

/** Returns the number of the instance to show first: the one whose lengths on both sides are nearest to their medians, of equal ones not the first, which may be a warm-up. */
export function typicalInstance(sides: readonly [readonly Range[], readonly Range[]]): number {
  const medians = sides.map((ranges) => (ranges.length > 0 ? length(ranges[medianOf(ranges)]) : 0));
  const shared = Math.min(sides[0].length, sides[1].length);
  const distance = (at: number): number => sides.reduce((sum, ranges, side) => sum + Math.abs(length(ranges[at]) - medians[side]) / Math.max(medians[side], 1), 0);
  const order = Array.from({ length: shared }, (_, at) => (at + 1) % shared);
  return order.reduce((best, at) => (distance(at) < distance(best) ? at : best), order[0] ?? 0);
}

/** Makes two views that show the same time after the start of their stretches, and follow each other. */
export function linkedViews(before: { trace: Trace; stretch: Range }, after: { trace: Trace; stretch: Range }): [View, View] {
  const least = Math.min(before.trace.whole.from_ns - before.stretch.from_ns, after.trace.whole.from_ns - after.stretch.from_ns);
  const most = Math.max(before.trace.whole.to_ns - before.stretch.from_ns, after.trace.whole.to_ns - after.stretch.from_ns);
  const view = ({ trace, stretch }: { trace: Trace; stretch: Range }): View => {
    const limits = { from_ns: stretch.from_ns + least, to_ns: stretch.from_ns + most };
    const made = new View(trace, () => limits);
    made.origin_ns = stretch.from_ns;
    made.aligned = stretch;
    return made;
  };
  const views: [View, View] = [view(before), view(after)];
  link(views);
  const span = Math.max(length(before.stretch), length(after.stretch));
  views[0].show({ from_ns: before.stretch.from_ns - span * 0.05, to_ns: before.stretch.from_ns + span * 1.1 });
  return views;
}

/** Makes views follow each other, each relative to its own origin. */
export function link(views: readonly View[]): void {
  for (const leader of views) {
    leader.onChange((change) => {
      if (change !== "range") return;
      for (const follower of views) {
        const by = follower.origin_ns - leader.origin_ns;
        const range = { from_ns: leader.range.from_ns + by, to_ns: leader.range.to_ns + by };
        if (follower !== leader && Math.abs(follower.range.from_ns - range.from_ns) + Math.abs(follower.range.to_ns - range.to_ns) >= 1e-3) follower.show(range);
      }
    });
  }
}
