// The work, or the calls, that the search finds, in order of time, across queues and threads.

import type { FoundEvents, Appearance } from "./appearance.ts";
import type { Trace, Track } from "./data/trace.ts";
import type { EventPlace } from "./view.ts";

/** What is found of a lane. */
export interface HitLane {
  track: Track;
  lane: number;
  found: FoundEvents;
}

export function hitLanes(trace: Trace, appearance: Appearance, kind: Track["kind"] = "work"): HitLane[] {
  const tracks = trace.tracks.filter((track) => track.kind === kind && track.state === "ready");
  return tracks.flatMap((track) =>
    track.lanes.flatMap((_, lane) => {
      const found = appearance.foundIn(trace, track, lane);
      return found ? [{ track, lane, found }] : [];
    }),
  );
}

/** Hits of a lane before an event that starts at `start_ns` in lane number `at`; what starts at once is in the order of lanes. */
function before(hit: HitLane, number: number, start_ns: number, at: number): number {
  const { lane } = hit.found;
  let count = lane.startingBefore(start_ns);
  while (number < at && count < lane.count && lane.start_ns[count] === start_ns) count += 1;
  return count;
}

/** Where an event is among the hits, from 1; `null` where it is none. */
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

/** The hit after or before an event, or else the first that does not begin left of what is seen, or the last that does; after the last comes the first. */
export function nextHit(lanes: readonly HitLane[], event: EventPlace | null, left_ns: number, forward: boolean): EventPlace | null {
  const start_ns = event ? event.track.lanes[event.lane].start_ns[event.index] : left_ns;
  const at = event ? lanes.findIndex((hit) => hit.track === event.track && hit.lane === event.lane) : 0;
  const pick = (indexOf: (hit: HitLane, number: number) => number): EventPlace | null => {
    let best: { place: EventPlace; start_ns: number } | null = null;
    lanes.forEach((hit, number) => {
      const index = indexOf(hit, number);
      if (index < 0 || index >= hit.found.lane.count) return;
      const start_ns = hit.found.lane.start_ns[index];
      // What starts at once: forward the first lane, backward the last.
      if (!best || (forward ? start_ns < best.start_ns : start_ns >= best.start_ns)) best = { place: { track: hit.track, lane: hit.lane, index: hit.found.place[index] }, start_ns };
    });
    return (best as { place: EventPlace } | null)?.place ?? null;
  };
  const next = pick((hit, number) => {
    const earlier = before(hit, number, start_ns, at);
    if (!forward) return earlier - 1;
    // The event itself is not after itself.
    const own = number === at && event !== null && hit.found.lane.start_ns[earlier] === start_ns;
    return earlier + (own ? 1 : 0);
  });
  return next ?? pick((hit) => (forward ? 0 : hit.found.lane.count - 1));
}
