// Sums over the events of lanes in a range of time. A lane has events that do not overlap; events of several lanes
// may. The key of an event says what ran, such as a kernel.

import type { Range } from "../time/range.ts";
import { length } from "../time/range.ts";
import type { Lane } from "./lane.ts";

/** Returns the time in a range in which at least one of the lanes ran an event. */
export function unionBusy(lanes: readonly Lane[], range: Range): number {
  if (lanes.length === 1) return lanes[0].busy(range);
  const cursors = lanes.map((lane) => ({ lane, ...lane.within(range) })).filter(({ from, to }) => from < to);
  let busy = 0;
  let until = range.from_ns;
  while (cursors.length > 0) {
    let next = cursors[0];
    for (const cursor of cursors) if (cursor.lane.start_ns[cursor.from] < next.lane.start_ns[next.from]) next = cursor;
    const start = Math.max(next.lane.start_ns[next.from], until);
    const end = Math.min(next.lane.end_ns(next.from), range.to_ns);
    if (end > start) {
      busy += end - start;
      until = end;
    }
    next.from += 1;
    if (next.from === next.to) cursors.splice(cursors.indexOf(next), 1);
  }
  return busy;
}

/** The events of one key: how many, how long they took together, and the longest. */
export interface KeyTotal {
  key: number;
  count: number;
  total_ns: number;
  longest_ns: number;
}

/** Sums the events that start in a range by key, with their whole length. */
export function startingIn(lanes: readonly Lane[], range: Range): KeyTotal[] {
  return totals(lanes, (lane) => ({ from: lane.startingBefore(range.from_ns), to: lane.startingBefore(range.to_ns) }), (lane, i) => lane.duration_ns[i]);
}

/** Sums the events that overlap a range by key, with the length of the overlap. */
export function partsIn(lanes: readonly Lane[], range: Range): KeyTotal[] {
  return totals(lanes, (lane) => lane.within(range), (lane, i) => Math.min(lane.end_ns(i), range.to_ns) - Math.max(lane.start_ns[i], range.from_ns));
}

/** Sums events by key, the greatest total first: those in `stretch` of each lane, as long as `measure` says. */
function totals(
  lanes: readonly Lane[],
  stretch: (lane: Lane) => { from: number; to: number },
  measure: (lane: Lane, event: number) => number,
): KeyTotal[] {
  const found = new Map<number, KeyTotal>();
  for (const lane of lanes) {
    const { from, to } = stretch(lane);
    for (let i = from; i < to; i += 1) {
      const key = lane.key[i];
      let total = found.get(key);
      if (!total) found.set(key, (total = { key, count: 0, total_ns: 0, longest_ns: 0 }));
      const ns = measure(lane, i);
      total.count += 1;
      total.total_ns += ns;
      if (ns > total.longest_ns) total.longest_ns = ns;
    }
  }
  return [...found.values()].sort((a, b) => b.total_ns - a.total_ns || a.key - b.key);
}

/** Returns a duration as a share of a range; NaN for an empty range. */
export function shareOf(ns: number, range: Range): number {
  return length(range) > 0 ? ns / length(range) : NaN;
}
