// Where tracks are: rows from top to bottom, in pixels of the scrolled contents.

import type { Group } from "../data/answers.ts";
import type { Trace, Track } from "../data/trace.ts";

export const GROUP_PX = 24;
const PAD_PX = 5;
/** Lanes of one track that are drawn; more would be a wall. */
export const MOST_LANES = 24;

export type Row =
  | { what: "group"; group: Group; closed: boolean; top: number; height: number }
  | { what: "track"; track: Track; top: number; height: number; lane_px: number; lanes: number; hidden_lanes: number };

export type TrackRow = Extract<Row, { what: "track" }>;

export interface Layout {
  rows: Row[];
  height: number;
}

function lanePixels(track: Track, lanes: number): number {
  switch (track.kind) {
    case "work":
      return lanes <= 3 ? 22 : lanes <= 8 ? 14 : 8;
    case "gaps":
      return 18;
    case "command-buffers":
      return lanes <= 3 ? 10 : 6;
    case "samples":
      return 11;
    case "labels":
    case "queue-labels":
    case "thread-labels":
    case "calls":
      return lanes <= 4 ? 16 : 12;
    default:
      return 34;
  }
}

/** Lays out the tracks of a trace; `closed` groups show their name only. `shown` says which tracks are drawn at all; `terse`: the only group has no row. */
export function layout(trace: Trace, closed: ReadonlySet<string>, shown: (track: Track) => boolean, terse = false): Layout {
  const rows: Row[] = [];
  let top = 0;
  for (const group of trace.overview.groups) {
    const tracks = trace.tracks.filter((track) => track.overview.group === group.id && shown(track));
    if (tracks.length === 0) continue;
    const isClosed = closed.has(group.id);
    if (!terse || trace.tracks.some((track) => track.overview.group !== group.id && shown(track))) {
      rows.push({ what: "group", group, closed: isClosed, top, height: GROUP_PX });
      top += GROUP_PX;
      if (isClosed) continue;
    }
    for (const track of tracks) {
      const all = track.isCounter ? 1 : Math.max(1, track.lanes.length);
      const lanes = Math.min(all, MOST_LANES);
      const lane_px = lanePixels(track, lanes);
      const height = lane_px * lanes + 2 * PAD_PX;
      rows.push({ what: "track", track, top, height, lane_px, lanes, hidden_lanes: all - lanes });
      top += height;
    }
  }
  return { rows, height: top };
}

/** The top of a lane. */
export function laneTop(row: TrackRow, lane: number): number {
  return row.top + PAD_PX + Math.min(lane, row.lanes - 1) * row.lane_px;
}

/** The row at a height, and the lane in it. */
export function rowAt(layout: Layout, y: number): { row: Row; lane: number } | null {
  let low = 0;
  let high = layout.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (layout.rows[middle].top + layout.rows[middle].height <= y) low = middle + 1;
    else high = middle;
  }
  const row = layout.rows[low];
  if (!row || y < row.top) return null;
  if (row.what === "group") return { row, lane: -1 };
  const lane = Math.floor((y - row.top - PAD_PX) / row.lane_px);
  return { row, lane: lane >= 0 && lane < row.lanes ? lane : -1 };
}

export function rowOf(layout: Layout, track: Track): TrackRow | undefined {
  return layout.rows.find((row): row is TrackRow => row.what === "track" && row.track === track);
}
