// Lays out tracks as rows, from top to bottom in pixels of the scrolled contents. A track's row has a height for each
// of its lanes, in which events do not overlap; the rows of names of groups and of bundles (threads that do only the
// same) are heads.

import type { Track } from "../data/trace.ts";
import type { Arrangement } from "./arrangement.ts";

export const GROUP_PX = 24;
/** The room above the lanes of a track and below them. */
const PAD_PX = 5;
/** The most lanes of one track that are drawn until it is unfolded. */
export const FOLDED_LANES = 12;

/** The share of the height up to which pinned tracks stay in place while the others are scrolled. */
const MAX_PINNED = 0.6;

/** The row with the name of a group, or of a bundle of threads. */
export interface HeadRow {
  what: "head";
  id: string;
  name: string;
  closed: boolean;
  /** 0 for a group, 1 for a bundle in a group. */
  depth: 0 | 1;
  /** The busy share of the busiest thread of a folded bundle in each slice of time. */
  summary: Uint8Array | null;
  /** The tracks of a bundle, which are hidden with it. */
  bundle: readonly Track[] | null;
  pinned: false;
  top: number;
  height: number;
}

/** The row of a track: `lanes` lanes of `lane_px` each are drawn, and `hidden_lanes` are not. With `folds` it has more lanes than fit into a folded row. */
export interface TrackRow {
  what: "track";
  track: Track;
  pinned: boolean;
  top: number;
  height: number;
  lane_px: number;
  lanes: number;
  hidden_lanes: number;
  folds: boolean;
}

export type Row = HeadRow | TrackRow;

/** All rows from top to bottom, and their height. */
export interface Layout {
  /** Pinned tracks come first. */
  rows: Row[];
  height: number;
  /** The height of the pinned tracks. */
  pinned_px: number;
}

/** Returns the height of a lane, which depends on the kind of track and falls with the number of lanes. */
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

/** Lays out the visible tracks. With `terse`, a single group has no row of its own; with `halved`, lanes have room for two events, one above the other. */
export function layout(arrangement: Arrangement, terse = false, halved = false): Layout {
  const { pinned, sections } = arrangement.arranged;
  const rows: Row[] = [];
  let top = 0;
  const head = (row: Omit<HeadRow, "what" | "pinned" | "top" | "height">): void => {
    rows.push({ what: "head", pinned: false, top, height: GROUP_PX, ...row });
    top += GROUP_PX;
  };
  const add = (track: Track, pinned = false): void => {
    const all = track.isCounter ? 1 : Math.max(1, track.laneCount);
    const folds = all > FOLDED_LANES;
    const lanes = folds && !arrangement.unfolds(track) ? FOLDED_LANES : all;
    const lane_px = lanePixels(track, lanes) * (halved && !track.isCounter ? 2 : 1);
    const height = lane_px * lanes + 2 * PAD_PX;
    rows.push({ what: "track", track, pinned, top, height, lane_px, lanes, hidden_lanes: all - lanes, folds });
    top += height;
  };
  for (const track of pinned) add(track, true);
  const pinned_px = top;
  for (const { group, folded, tracks, bundles } of sections) {
    if (!terse || sections.length > 1) {
      head({ id: group.id, name: group.name, closed: folded, depth: 0, summary: null, bundle: null });
      if (folded) continue;
    }
    for (const track of tracks) add(track);
    for (const bundle of bundles) {
      head({ id: bundle.id, name: bundle.name, closed: bundle.folded, depth: 1, summary: bundle.folded ? busiest(bundle.tracks) : null, bundle: bundle.tracks });
      if (!bundle.folded) for (const track of bundle.tracks) add(track);
    }
  }
  return { rows, height: top, pinned_px };
}

/** Returns the greatest busy share of the tracks in each slice of time; null where none is known. */
function busiest(tracks: readonly Track[]): Uint8Array | null {
  const summaries = tracks.flatMap(({ kind, summary }) => (summary && kind !== "samples" ? [summary] : []));
  return summaries.length === 0 ? null : summaries[0].map((_, bin) => summaries.reduce((most, summary) => Math.max(most, summary[bin]), 0));
}

/** Returns the height in which pinned tracks stay at the top of a timeline; 0 where they are scrolled. */
export function stickyPixels({ pinned_px }: Layout, height: number): number {
  return pinned_px <= height * MAX_PINNED ? pinned_px : 0;
}

/** Returns the rows in the scrolled contents, with pinned rows moved along. */
export function settled(layout: Layout, scroll: number, height: number): Layout {
  if (stickyPixels(layout, height) === 0) return layout;
  return { ...layout, rows: layout.rows.map((row) => (row.pinned ? { ...row, top: row.top + scroll } : row)) };
}

/** Returns the top of a lane; lanes that are not drawn have that of the last. */
export function laneTop(row: TrackRow, lane: number): number {
  return row.top + PAD_PX + Math.min(lane, row.lanes - 1) * row.lane_px;
}

/** Returns the row at a height, and the lane in it, -1 where there is no lane; null where there is no row. */
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
  if (row.what === "head") return { row, lane: -1 };
  const lane = Math.floor((y - row.top - PAD_PX) / row.lane_px);
  return { row, lane: lane >= 0 && lane < row.lanes ? lane : -1 };
}

/** Returns the row of a track; undefined where it is not drawn. */
export function rowOf(layout: Layout, track: Track): TrackRow | undefined {
  return layout.rows.find((row): row is TrackRow => row.what === "track" && row.track === track);
}
