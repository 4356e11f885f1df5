// Handles mouse, wheel, trackpad and touch on a timeline. A drag moves the visible range, or selects a range on the
// ruler and with Shift. The wheel scrolls the tracks, or moves the range sideways with Shift, or zooms on the ruler
// and with Control or Command. A double click on an event shows all of it; a click on the ruler opens the note there, or else ends the selection.

import type { Note } from "../generated/protocol.ts";
import { between, length, panned, type Scale, zoomed } from "../time/range.ts";
import { type EventPlace, type View, wholeRange } from "../view.ts";
import { noteAt } from "./ruler.ts";

/** The least movement that makes a press a drag. */
const CLICK_PX = 4;

/** The parts of a timeline that the pointer moves, clicks and points at. Coordinates are CSS pixels of the canvas. */
interface PointerTarget {
  readonly canvas: HTMLCanvasElement;
  readonly ruler: HTMLCanvasElement;
  readonly view: View;
  readonly scale: Scale;
  scrollBy(pixels: number): void;
  /** Called for a press on the tracks that hardly moved. */
  clickAt(x: number, y: number): void;
  eventAt(x: number, y: number): EventPlace | null;
  /** Called with the pointer's place, without `y` on the ruler, and with null when it leaves. */
  pointAt(x: number | null, y?: number | null): void;
  /** Called with the event under the pointer, and the pointer's place in the window. */
  pointTo(event: EventPlace | null, client_x: number, client_y: number): void;
  /** Called for a click on a note of the reader on the ruler. */
  noted(note: Note): void;
}

/** Adds the listeners for these gestures to the canvas and the ruler of a timeline. */
export function listen(timeline: PointerTarget): void {
  const { canvas, ruler, view } = timeline;

  const wheel = (event: WheelEvent): void => {
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const [dx, dy] = [event.deltaX * pixels, event.deltaY * pixels];
    if (event.ctrlKey || event.metaKey || event.currentTarget === ruler) {
      event.preventDefault();
      // Browsers report a pinch on a trackpad as small wheel steps with Control.
      const strength = Math.abs(dy) < 30 ? 0.01 : 0.0025;
      view.show(zoomed(view.range, timeline.scale.ns(event.offsetX), Math.exp(dy * strength), view.bounds));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      event.preventDefault();
      view.show(panned(view.range, (event.shiftKey && dx === 0 ? dy : dx) / canvas.clientWidth, view.bounds));
    }
  };
  canvas.addEventListener("wheel", wheel, { passive: false });
  ruler.addEventListener("wheel", wheel, { passive: false });

  const drag = (event: PointerEvent, selects: boolean): void => {
    if (event.button > 1) return;
    const target = event.currentTarget as HTMLElement;
    const start = { x: event.offsetX, y: event.offsetY, range: view.range, ns: timeline.scale.ns(event.offsetX) };
    let moved = false;
    target.setPointerCapture(event.pointerId);
    target.classList.add(selects ? "selecting" : "panning");
    const move = (event: PointerEvent): void => {
      const dx = event.offsetX - start.x;
      const dy = event.offsetY - start.y;
      if (!moved && Math.hypot(dx, dy) < CLICK_PX) return;
      if (!moved) leave();
      moved = true;
      if (selects) {
        view.select(between(start.ns, timeline.scale.ns(Math.max(0, Math.min(event.offsetX, canvas.clientWidth)))));
      } else {
        view.show(panned(start.range, -dx / canvas.clientWidth, view.bounds));
        timeline.scrollBy(-event.movementY);
      }
    };
    const up = (event: PointerEvent): void => {
      target.removeEventListener("pointermove", move);
      target.removeEventListener("pointerup", up);
      target.removeEventListener("pointercancel", up);
      target.classList.remove("selecting", "panning");
      if (moved || event.type === "pointercancel") return;
      if (target === canvas) timeline.clickAt(event.offsetX, event.offsetY);
      else {
        const note = noteAt(view, timeline.scale, event.offsetX);
        if (note) timeline.noted(note);
        else view.select(null);
      }
    };
    target.addEventListener("pointermove", move);
    target.addEventListener("pointerup", up);
    target.addEventListener("pointercancel", up);
  };
  canvas.addEventListener("pointerdown", (event) => drag(event, event.shiftKey));
  ruler.addEventListener("pointerdown", (event) => drag(event, true));

  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons !== 0) return;
    const under = timeline.eventAt(event.offsetX, event.offsetY);
    canvas.classList.toggle("pointing", under !== null);
    timeline.pointAt(event.offsetX, event.offsetY);
    timeline.pointTo(under, event.clientX, event.clientY);
  });
  const leave = (): void => {
    timeline.pointAt(null);
    timeline.pointTo(null, 0, 0);
  };
  canvas.addEventListener("pointerleave", leave);
  ruler.addEventListener("pointermove", (event) => {
    timeline.pointAt(event.offsetX);
    const note = noteAt(view, timeline.scale, event.offsetX);
    ruler.title = note?.text ?? "";
    ruler.classList.toggle("pointing", note !== null);
  });
  ruler.addEventListener("pointerleave", leave);

  canvas.addEventListener("dblclick", (event) => {
    const under = timeline.eventAt(event.offsetX, event.offsetY);
    if (!under) return;
    const range = wholeRange(under);
    const margin = length(range) * 0.1;
    view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
  });
}
