// Where tracks are: rows from top to bottom, in pixels of the scrolled contents.

import type { Track } from "../data/trace.ts";
import type { Arrangement } from "./arrangement.ts";

export const GROUP_PX = 24;
const PAD_PX = 5;
/** Lanes of one track that are drawn; more would be a wall. */
export const MAX_LANES = 24;

/** Pinned tracks stay where they are while the others are scrolled, up to this part of the height. */
const MAX_PINNED = 0.6;

/** The name of a group, or of threads that do the same. */
export interface HeadRow {
  what: "head";
  id: string;
  name: string;
  closed: boolean;
  /** 1 inside of a group. */
  depth: 0 | 1;
  /** Of threads that are folded: how busy the busiest of them is in each slice of time. */
  summary: Uint8Array | null;
  /** Of threads: their tracks, which are hidden with it. */
  bundle: readonly Track[] | null;
  pinned: false;
  top: number;
  height: number;
}

export interface TrackRow {
  what: "track";
  track: Track;
  pinned: boolean;
  top: number;
  height: number;
  lane_px: number;
  lanes: number;
  hidden_lanes: number;
}

export type Row = HeadRow | TrackRow;

export interface Layout {
  /** Pinned tracks come first. */
  rows: Row[];
  height: number;
  /** Of the pinned tracks. */
  pinned_px: number;
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

/** Lays out tracks as they are arranged; `terse`: the only group has no row. */
export function layout(arrangement: Arrangement, terse = false): Layout {
  const { pinned, sections } = arrangement.arranged;
  const rows: Row[] = [];
  let top = 0;
  const head = (row: Omit<HeadRow, "what" | "pinned" | "top" | "height">): void => {
    rows.push({ what: "head", pinned: false, top, height: GROUP_PX, ...row });
    top += GROUP_PX;
  };
  const add = (track: Track, pinned = false): void => {
    const all = track.isCounter ? 1 : Math.max(1, track.laneCount);
    const lanes = Math.min(all, MAX_LANES);
    const lane_px = lanePixels(track, lanes);
    const height = lane_px * lanes + 2 * PAD_PX;
    rows.push({ what: "track", track, pinned, top, height, lane_px, lanes, hidden_lanes: all - lanes });
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

function busiest(tracks: readonly Track[]): Uint8Array | null {
  const summaries = tracks.flatMap(({ kind, summary }) => (summary && kind !== "samples" ? [summary] : []));
  return summaries.length === 0 ? null : summaries[0].map((_, bin) => summaries.reduce((most, summary) => Math.max(most, summary[bin]), 0));
}

/** Pixels at the top in which pinned tracks stay, in a timeline so high. */
export function stickyPixels({ pinned_px }: Layout, height: number): number {
  return pinned_px <= height * MAX_PINNED ? pinned_px : 0;
}

/** The rows as they lie in the contents that are scrolled: pinned ones are moved with them. */
export function settled(layout: Layout, scroll: number, height: number): Layout {
  if (stickyPixels(layout, height) === 0) return layout;
  return { ...layout, rows: layout.rows.map((row) => (row.pinned ? { ...row, top: row.top + scroll } : row)) };
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
  if (row.what === "head") return { row, lane: -1 };
  const lane = Math.floor((y - row.top - PAD_PX) / row.lane_px);
  return { row, lane: lane >= 0 && lane < row.lanes ? lane : -1 };
}

export function rowOf(layout: Layout, track: Track): TrackRow | undefined {
  return layout.rows.find((row): row is TrackRow => row.what === "track" && row.track === track);
}
