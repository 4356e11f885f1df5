// Draws the whole trace as a strip: how busy the busiest queue was, why devices were idle, and which part is visible.
// A press or drag on it moves the visible range.

import type { Appearance } from "./appearance.ts";
import { h } from "./dom.ts";
import { length, Scale } from "./time/range.ts";
import type { View } from "./view.ts";

const HEIGHT_PX = 34;

/** The strip of one view; it draws itself after changes of the view. */
export class Minimap {
  readonly canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
  /** The name of the strip, which shows all of the trace where only a part is visible. */
  readonly wholeRun = h("button", { type: "button", class: "whole-run", title: "Show everything (F)", disabled: true, onclick: () => this.view.fit() }, "all of it");
  private scheduled = 0;

  constructor(
    private readonly view: View,
    private readonly appearance: Appearance,
  ) {
    view.onChange((change) => {
      if (change === "range" || change === "selection" || change === "data") this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
  }

  /** Centres the visible range on the pointer until it is released. */
  private press(event: PointerEvent): void {
    const { canvas, view } = this;
    canvas.setPointerCapture(event.pointerId);
    const go = (event: PointerEvent): void => {
      const at = this.scale().ns(event.offsetX);
      const half = length(view.range) / 2;
      view.show({ from_ns: at - half, to_ns: at + half });
    };
    const up = (): void => {
      canvas.removeEventListener("pointermove", go);
      canvas.removeEventListener("pointerup", up);
      canvas.removeEventListener("pointercancel", up);
    };
    canvas.addEventListener("pointermove", go);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    go(event);
  }

  private scale(): Scale {
    return new Scale(this.view.bounds, 0, this.canvas.clientWidth);
  }

  draw(): void {
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.drawNow();
    });
  }

  private drawNow(): void {
    const width = this.canvas.clientWidth;
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(HEIGHT_PX * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { colours } = this.appearance;
    const { trace } = this.view;
    this.wholeRun.disabled = length(this.view.range) >= length(this.view.bounds) * 0.999;
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, HEIGHT_PX);
    this.busy(context, width);
    this.idle(context);
    const scale = this.scale();
    const left = Math.max(0, scale.x(this.view.range.from_ns));
    const right = Math.min(width, scale.x(this.view.range.to_ns));
    context.globalAlpha = 0.62;
    context.fillStyle = colours.background;
    context.fillRect(0, 0, left, HEIGHT_PX);
    context.fillRect(right, 0, width - right, HEIGHT_PX);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(right - left, 3) - 1.5, HEIGHT_PX - 1.5);
    if (this.view.selection) {
      const from = scale.x(this.view.selection.from_ns);
      context.fillStyle = colours.selection;
      context.fillRect(from, 0, Math.max(2, scale.x(this.view.selection.to_ns) - from), HEIGHT_PX);
    }
    this.canvas.dataset.tracks = String(trace.tracks.length);
  }

  /** Draws the busy share of the busiest queue at each moment. */
  private busy(context: CanvasRenderingContext2D, width: number): void {
    const { trace } = this.view;
    const summaries = trace.tracks.flatMap((track) => (track.kind === "work" && track.summary ? [track.summary] : []));
    if (summaries.length === 0) return;
    const bins = summaries[0].length;
    const whole = new Scale(this.view.bounds, 0, width);
    const { from_ns, to_ns } = trace.whole;
    const bin_ns = (to_ns - from_ns) / bins;
    // Computing and transfers alike: it has the colour of neither.
    context.fillStyle = this.appearance.colours.faint;
    for (let bin = 0; bin < bins; bin += 1) {
      let most = 0;
      for (const summary of summaries) most = Math.max(most, summary[bin]);
      if (most === 0) continue;
      const part = Math.max(2, (20 * most) / 255);
      context.fillRect(whole.x(from_ns + bin * bin_ns), 23 - part, Math.max(1, bin_ns * whole.pixels_per_ns), part);
    }
  }

  /** Draws the causes of idle time, a row for each of the first four devices, once the findings are there. */
  private idle(context: CanvasRenderingContext2D): void {
    const { findings } = this.view.trace;
    if (!findings || "missing" in findings || !findings.activity) return;
    const scale = this.scale();
    const { window } = findings.activity;
    const devices = findings.activity.rows.filter((row) => row.queue_id === null);
    const rows = devices.length > 0 ? devices : findings.activity.rows;
    const height = Math.max(2, Math.floor(8 / Math.max(rows.length, 1)));
    rows.slice(0, 4).forEach((row, number) => {
      let at_ns = window.start_ns;
      for (const slice of row.slices) {
        if (slice.idle_cause && slice.busy_ns < slice.length_ns * 0.98) {
          context.fillStyle = this.view.trace.causes.colour(slice.idle_cause);
          context.fillRect(scale.x(at_ns), 24 + number * height, Math.max(1, slice.length_ns * scale.pixels_per_ns), height);
        }
        at_ns += slice.length_ns;
      }
    });
  }
}
