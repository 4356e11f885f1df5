// A tooltip about the event or counter under the pointer.

import type { Appearance } from "../appearance.ts";
import { NO_LABEL, type Track } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { sampleNote } from "../panels/code-details.ts";
import { duration, instant, statisticsText } from "../time/format.ts";
import { length, type Range } from "../time/range.ts";
import type { View } from "../view.ts";

/** The tooltip's element. `show` and `showCounter` fill it, `at` places it, and `hide` hides it. */
export class Tooltip {
  readonly element = h("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });

  constructor(private readonly appearance: Appearance) {}

  /** Moves the tooltip beside a point of the window, to the side that has room. */
  at(client_x: number, client_y: number): void {
    const parent = this.element.offsetParent?.getBoundingClientRect();
    if (!parent) return this.place(client_x, client_y, window.innerWidth, window.innerHeight);
    this.place(client_x - parent.left, client_y - parent.top, parent.width, parent.height);
  }

  private place(x: number, y: number, width: number, height: number): void {
    const { style } = this.element;
    style.left = x > width * 0.6 ? "auto" : `${x + 14}px`;
    style.right = x > width * 0.6 ? `${width - x + 10}px` : "auto";
    style.top = y > height * 0.65 ? "auto" : `${y + 16}px`;
    style.bottom = y > height * 0.65 ? `${height - y + 10}px` : "auto";
  }

  hide(): void {
    this.element.hidden = true;
  }

  /** Shows the value of a counter in the time of one pixel. */
  showCounter(view: View, { overview, counter }: Track, range: Range): void {
    const unit = overview.counter?.unit ?? "count";
    const found = counter?.in(range);
    this.element.hidden = false;
    fill(
      this.element,
      h("div", { class: "tooltip-name" }, shortened(overview.counter?.name ?? "counter")),
      h("div", {}, found && found.least !== found.most ? "mean " : "", statisticsText(found ?? null, unit)),
      h("div", { class: "note" }, `${instant(range.from_ns - view.origin_ns, length(range))}, ${duration(Math.max(1, Math.round(length(range))))} a pixel`),
    );
  }

  /** Describes the event under the pointer, or hides the tooltip where there is none. */
  show(view: View): void {
    const { hovered } = view;
    this.element.hidden = hovered === null;
    if (!hovered) return;
    const { track, lane, index } = hovered;
    const it = track.lanes[lane];
    const label = track.labels?.[lane][index];
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = this.appearance.colourOf(view.trace, track, lane)(index);
    const step = Math.max(1, length(view.range) / 1000);
    fill(
      this.element,
      h("div", { class: "tooltip-name" }, swatch, shortened(view.trace.nameOf(track, it.key[index]))),
      track.kind === "samples" ? null : h("div", {}, h("b", {}, duration(it.duration_ns[index])), ` from ${instant(it.start_ns[index] - view.origin_ns, step)}`),
      label !== undefined && label !== NO_LABEL ? h("div", { class: "note" }, shortened(view.trace.text(label))) : null,
      track.kind === "samples" && view.trace.code ? sampleNote(view.trace.code.sample(track.rowOf(hovered).row)) : null,
      track.kind === "gaps" ? h("div", { class: "note" }, view.trace.causes.sentence(view.trace.text(it.key[index]))) : null,
    );
  }
}

function shortened(text: string): string {
  return text.length > 160 ? `${text.slice(0, 159)}…` : text;
}
