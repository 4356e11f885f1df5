// The ruler above the tracks.

import type { Colours } from "../draw/palette.ts";
import { duration, instant } from "../time/format.ts";
import { length, Scale } from "../time/range.ts";
import { ticks } from "../time/ticks.ts";
import type { View } from "../view.ts";

export const RULER_PX = 26;

export function paintRuler(context: CanvasRenderingContext2D, view: View, width: number, colours: Colours): void {
  const scale = new Scale(view.range, 0, width);
  context.fillStyle = colours.panel;
  context.fillRect(0, 0, width, RULER_PX);
  context.font = "11px system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  const origin = view.origin_ns;
  const { step_ns, at_ns } = ticks(view.range.from_ns - origin, view.range.to_ns - origin, width, 90);
  for (const at of at_ns) {
    const x = Math.round(scale.x(at + origin));
    context.fillStyle = colours.strong;
    context.fillRect(x, RULER_PX - 7, 1, 7);
    for (let minor = 1; minor < 5; minor += 1) context.fillRect(Math.round(scale.x(at + origin + (step_ns * minor) / 5)), RULER_PX - 3, 1, 3);
    context.fillStyle = colours.faint;
    context.fillText(instant(at, step_ns), x + 4, RULER_PX / 2 - 2);
  }
  const marked = view.selection ?? view.aligned;
  if (marked) {
    const left = scale.x(marked.from_ns);
    const right = scale.x(marked.to_ns);
    context.fillStyle = colours.accent;
    context.fillRect(left, RULER_PX - 4, Math.max(1, right - left), 4);
    const text = duration(Math.round(length(marked)));
    const room = context.measureText(text).width + 12;
    const middle = Math.max(room / 2, Math.min(width - room / 2, (left + right) / 2));
    if (right > 0 && left < width) {
      context.beginPath();
      context.roundRect(middle - room / 2, 3, room, 16, 8);
      context.fill();
      context.fillStyle = colours.background;
      context.fillText(text, middle - room / 2 + 6, 11.5);
    }
  }
  context.fillStyle = colours.line;
  context.fillRect(0, RULER_PX - 1, width, 1);
}
