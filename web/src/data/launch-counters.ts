// The counters of one dispatch, which is one execution of a kernel: those of which at least two whole samples lie in
// it, if no other work ran beside it.

import type { CounterStatistics } from "./counter.ts";
import type { LanePlace, Trace, Track } from "./trace.ts";

/** The statistics of one counter over the whole samples in a dispatch. */
export interface LaunchCounter {
  track: Track;
  /** The statistics over `samples` whole samples. */
  found: CounterStatistics;
  samples: number;
}

const MIN_SAMPLES = 2;

/**
 * Returns the loaded counters with these names over the dispatch at a place of a track. The list is empty where it is
 * not known that the dispatch ran alone, among all work of its group of tracks (a GPU).
 */
export function launchCounters(trace: Trace, track: Track, place: LanePlace, names: ReadonlySet<string>): LaunchCounter[] {
  const lane = track.lanes[place.lane];
  const range = { from_ns: lane.start_ns[place.index], to_ns: lane.end_ns(place.index) };
  const { group } = track.overview;
  const work = trace.tracks.filter((other) => other.kind === "work" && other.overview.group === group && other.overview.rows !== 0);
  if (!work.every((other) => other.has(range))) return [];
  const beside = work.flatMap(({ lanes }) => lanes).reduce((sum, other) => sum + other.within(range).to - other.within(range).from, 0);
  if (beside !== 1) return [];
  return trace.tracks.flatMap((one): LaunchCounter[] => {
    const { counter, overview } = one;
    if (!counter || overview.group !== group || !names.has(overview.counter?.name ?? "")) return [];
    const whole = counter.wholeIn(range);
    const found = whole && whole.count >= MIN_SAMPLES ? counter.in(whole) : null;
    return whole && found ? [{ track: one, found, samples: whole.count }] : [];
  });
}
