// Draws arrows from host calls to their GPU work, and between work that depends on other work.

import type { Canvas } from "../draw/canvas.ts";
import type { Colours } from "../draw/palette.ts";
import type { Scale } from "../time/range.ts";
import type { Arrow, View } from "../view.ts";
import { type Layout, laneTop, type TrackRow } from "./layout.ts";

/** Draws the arrows of a view. An arrow is left out where the track of one of its ends is not in the layout. */
export function paintArrows(canvas: Canvas, view: View, layout: Layout, scale: Scale, colours: Colours): void {
  const { context } = canvas;
  for (const arrow of view.arrows) {
    const from = end(view, layout, scale, arrow.from, "end");
    const to = end(view, layout, scale, arrow.to, "start");
    if (!from || !to) continue;
    // The arrow leaves a call at its start, because the work may start before the call returns.
    const start_x = arrow.kind === "submits" ? scale.x(arrow.from.start_ns) : from.x;
    const bend = Math.max(24, Math.min(120, Math.abs(to.x - start_x) / 2));
    context.strokeStyle = context.fillStyle = arrow.kind === "submits" ? colours.accent : colours.text;
    context.lineWidth = 1.5;
    context.setLineDash(arrow.kind === "submits" ? [] : [5, 3]);
    context.beginPath();
    context.moveTo(start_x, from.y);
    context.bezierCurveTo(start_x + bend, from.y, to.x - bend, to.y, to.x, to.y);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(to.x, to.y);
    context.lineTo(to.x - 7, to.y - 4);
    context.lineTo(to.x - 7, to.y + 4);
    context.fill();
  }
}

/**
 * Returns the place of an arrow's end in pixels, in the first lane where its event is not loaded; null where its
 * track is not in the layout.
 */
function end(view: View, layout: Layout, scale: Scale, place: Arrow["from"], side: "start" | "end"): { x: number; y: number } | null {
  const row = layout.rows.find((row): row is TrackRow => row.what === "track" && row.track.id === place.track);
  if (!row) return null;
  const found = view.trace.track(place.track)?.placeOf(place.table, place.row, place.start_ns);
  const y = laneTop(row, found?.lane ?? 0) + row.lane_px / 2;
  return { x: scale.x(side === "start" ? place.start_ns : place.start_ns + place.duration_ns), y };
}
