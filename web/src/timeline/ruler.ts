// Draws the ruler above the tracks, with the marked range (the selected range, otherwise the aligned one) and the
// flags of notes. Times are shown from the view's origin.

import type { Colours } from "../draw/palette.ts";
import type { Note } from "../generated/protocol.ts";
import { duration, instant } from "../time/format.ts";
import { length, Scale } from "../time/range.ts";
import { ticks } from "../time/ticks.ts";
import type { View } from "../view.ts";

export const RULER_PX = 26;
const FLAG_PX = 9;

export function paintRuler(context: CanvasRenderingContext2D, view: View, width: number, colours: Colours): void {
  const scale = new Scale(view.range, 0, width);
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, width, RULER_PX);
  context.font = "11px system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  const origin = view.origin_ns;
  const mark = markOf(context, view, scale, width);
  const { step_ns, at_ns } = ticks(view.range.from_ns - origin, view.range.to_ns - origin, width, 90);
  for (const at of at_ns) {
    const x = Math.round(scale.x(at + origin));
    context.fillStyle = colours.strong;
    context.fillRect(x, RULER_PX - 7, 1, 7);
    for (let minor = 1; minor < 5; minor += 1) context.fillRect(Math.round(scale.x(at + origin + (step_ns * minor) / 5)), RULER_PX - 3, 1, 3);
    const text = instant(at, step_ns);
    const [left, right] = [x + 4, x + 4 + context.measureText(text).width];
    // A label that would be cut is left out; its tick stays.
    if (right > width || (mark && left < mark.right_px + 3 && right > mark.left_px - 3)) continue;
    context.fillStyle = colours.faint;
    context.fillText(text, left, RULER_PX / 2 - 2);
  }
  const marked = view.selection ?? view.aligned;
  if (marked) {
    const left = scale.x(marked.from_ns);
    context.fillStyle = colours.accent;
    context.fillRect(left, RULER_PX - 4, Math.max(1, scale.x(marked.to_ns) - left), 4);
  }
  if (mark) {
    context.beginPath();
    context.roundRect(mark.left_px, 3, mark.right_px - mark.left_px, 16, 8);
    context.fill();
    context.fillStyle = colours.background;
    context.fillText(mark.text, mark.left_px + 6, 11.5);
  }
  context.fillStyle = colours.line;
  context.fillRect(0, RULER_PX - 1, width, 1);
  for (const note of view.notes) paintNote(context, note, scale, width, colours);
}

/** Draws a flag where a note begins, and a bar over its range. */
function paintNote(context: CanvasRenderingContext2D, note: Note, scale: Scale, width: number, colours: Colours): void {
  const left = scale.x(note.from_ns);
  const right = scale.x(note.to_ns ?? note.from_ns);
  if (right < -FLAG_PX || left > width) return;
  context.fillStyle = colours.note;
  if (note.to_ns !== null) context.fillRect(left, RULER_PX - 3, Math.max(1, right - left), 3);
  context.fillRect(left, 2, 1.5, RULER_PX - 2);
  context.beginPath();
  context.moveTo(left, 2);
  context.lineTo(left + FLAG_PX, 6);
  context.lineTo(left, 10);
  context.fill();
}

/** Returns the note whose flag is at a point of the ruler, of several the last; null for none. */
export function noteAt(view: View, scale: Scale, x: number): Note | null {
  return view.notes.findLast((note) => x >= scale.x(note.from_ns) - 2 && x <= scale.x(note.from_ns) + FLAG_PX + 1) ?? null;
}

/** Returns the text and place of the marked range's length; null while no range is marked, or it is out of sight. */
function markOf(context: CanvasRenderingContext2D, view: View, scale: Scale, width: number): { text: string; left_px: number; right_px: number } | null {
  const marked = view.selection ?? view.aligned;
  if (!marked) return null;
  const [left, right] = [scale.x(marked.from_ns), scale.x(marked.to_ns)];
  if (right <= 0 || left >= width) return null;
  const text = duration(Math.round(length(marked)));
  const room = context.measureText(text).width + 12;
  // The text is centred in the visible part of the range.
  const middle = Math.max(room / 2, Math.min(width - room / 2, (Math.max(left, 0) + Math.min(right, width)) / 2));
  return { text, left_px: middle - room / 2, right_px: middle + room / 2 };
}
