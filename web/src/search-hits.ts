// Walks through the work or calls that match the search, in order of time across queues and threads. The events of a
// queue or thread are a track, whose lanes each hold some of the events, so that none overlap.

import type { FoundEvents, Appearance } from "./appearance.ts";
import type { Trace, Track } from "./data/trace.ts";
import type { EventPlace } from "./view.ts";

/** The matches in one lane. */
export interface HitLane {
  track: Track;
  lane: number;
  found: FoundEvents;
}

/** Returns the lanes of the completely loaded tracks of a kind, each with its matches. */
export function hitLanes(trace: Trace, appearance: Appearance, kind: Track["kind"]): HitLane[] {
  const tracks = trace.tracks.filter((track) => track.kind === kind && track.state === "ready");
  return tracks.flatMap((track) =>
    track.lanes.flatMap((_, lane) => {
      const found = appearance.foundIn(trace, track, lane);
      return found ? [{ track, lane, found }] : [];
    }),
  );
}

/** The kinds of tracks that the search steps through, the first that has a match. */
const STEPPED_KINDS = ["work", "calls", "thread-labels"] as const;

/** Returns the lanes that the search steps through: those of work, or of calls where no work matches, or else of the labels of threads. */
export function steppedLanes(trace: Trace, appearance: Appearance): HitLane[] {
  const kinds = STEPPED_KINDS.map((kind) => hitLanes(trace, appearance, kind));
  return kinds.find((lanes) => lanes.some(({ found }) => found.lane.count > 0)) ?? [];
}

/**
 * Counts the matches of a lane, which has this number, before an event that starts at `start_ns` in lane number `at`.
 * Events with equal starts are in the order of lanes.
 */
function before(hit: HitLane, number: number, start_ns: number, at: number): number {
  const { lane } = hit.found;
  let count = lane.startingBefore(start_ns);
  while (number < at && count < lane.count && lane.start_ns[count] === start_ns) count += 1;
  return count;
}

/** Returns the number of an event among the matches, from 1; `null` where the event is none of them. */
export function hitNumber(lanes: readonly HitLane[], event: EventPlace | null): number | null {
  if (!event) return null;
  const at = lanes.findIndex((hit) => hit.track === event.track && hit.lane === event.lane);
  if (at < 0) return null;
  const { found } = lanes[at];
  const start_ns = event.track.lanes[event.lane].start_ns[event.index];
  const own = found.lane.startingBefore(start_ns);
  if (found.place[own] !== event.index) return null;
  return 1 + lanes.reduce((sum, hit, number) => sum + before(hit, number, start_ns, at), 0);
}

/** Returns the match after (`forward`) or before an event, or else the left edge; goes on at the other end. */
export function nextHit(lanes: readonly HitLane[], event: EventPlace | null, left_ns: number, forward: boolean): EventPlace | null {
  const start_ns = event ? event.track.lanes[event.lane].start_ns[event.index] : left_ns;
  const at = event ? lanes.findIndex((hit) => hit.track === event.track && hit.lane === event.lane) : 0;
  const pick = (indexOf: (hit: HitLane, number: number) => number): EventPlace | null => {
    let best: { place: EventPlace; start_ns: number } | null = null;
    lanes.forEach((hit, number) => {
      const index = indexOf(hit, number);
      if (index < 0 || index >= hit.found.lane.count) return;
      const start_ns = hit.found.lane.start_ns[index];
      // Of equal starts, take the first lane forward and the last lane backward.
      if (!best || (forward ? start_ns < best.start_ns : start_ns >= best.start_ns)) best = { place: { track: hit.track, lane: hit.lane, index: hit.found.place[index] }, start_ns };
    });
    return (best as { place: EventPlace } | null)?.place ?? null;
  };
  const next = pick((hit, number) => {
    const earlier = before(hit, number, start_ns, at);
    if (!forward) return earlier - 1;
    // The event does not follow itself.
    const own = number === at && event !== null && hit.found.lane.start_ns[earlier] === start_ns;
    return earlier + (own ? 1 : 0);
  });
  return next ?? pick((hit) => (forward ? 0 : hit.found.lane.count - 1));
}
