// The row of steps below the ruler: each step with its number and length, the slow ones in another colour and the median one with a frame.

import { stepText, type Steps } from "../data/steps.ts";
import { fill, h } from "../dom.ts";
import type { Canvas } from "../draw/canvas.ts";
import { type Colours, inkOn } from "../draw/palette.ts";
import { count, duration } from "../time/format.ts";
import { length, type Range, Scale } from "../time/range.ts";
import type { View } from "../view.ts";

export const STEPS_PX = 20;

/** The row of one timeline. `show` is called with each drawing. */
export class StepsRow {
  readonly canvas = h("canvas", { class: "steps", "aria-hidden": "true" });
  private readonly corner = h("div", { class: "steps-corner" });
  readonly element = h("div", { class: "steps-row", hidden: true }, this.corner, this.canvas);
  private steps: Steps | null = null;

  constructor(private readonly view: View) {
    const place = (event: MouseEvent): number => {
      const ns = new Scale(view.range, 0, this.canvas.clientWidth).ns(event.offsetX);
      return view.trace.steps?.ranges.findIndex((range) => range.from_ns <= ns && ns < range.to_ns) ?? -1;
    };
    const at = (event: MouseEvent): Range | null => view.trace.steps?.ranges[place(event)] ?? null;
    this.canvas.addEventListener("mousemove", (event) => {
      const { steps } = view.trace;
      const under = place(event);
      this.canvas.title = steps && under >= 0 ? stepText(steps, under) : "";
    });
    this.canvas.addEventListener("click", (event) => view.select(at(event)));
    this.canvas.addEventListener("dblclick", (event) => {
      const range = at(event);
      if (range) view.show(withMargin(range));
    });
  }

  /** The height of the row, 0 while the trace has no steps. */
  get height(): number {
    return this.element.hidden ? 0 : STEPS_PX;
  }

  /** Shows or hides the row, and names the median and the slow steps. */
  show(): void {
    const { steps } = this.view.trace;
    if (steps === this.steps) return;
    this.steps = steps;
    this.element.hidden = steps === null;
    if (!steps) return;
    const go = (name: string, at: number): HTMLElement =>
      h("button", { type: "button", "data-step": steps.numbers[at], title: stepText(steps, at), onclick: () => this.go(steps.ranges[at]) }, name);
    fill(
      this.corner,
      h("span", { class: "clip", title: steps.name }, steps.name),
      go(`median ${duration(Math.round(length(steps.ranges[steps.median])))}`, steps.median),
      steps.slow.length > 0 ? go(`${count(steps.slow.length)} slow`, steps.slow[0]) : null,
    );
  }

  /** Selects a step, and shows it. */
  private go(range: Range): void {
    this.view.select(range);
    this.view.show(withMargin(range));
  }

  paint({ context, texts, width }: Canvas, colours: Colours): void {
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, STEPS_PX);
    const { steps } = this.view.trace;
    const scale = new Scale(this.view.range, 0, width);
    steps?.ranges.forEach((range, at) => {
      const left = Math.max(scale.x(range.from_ns), 0);
      const right = Math.min(scale.x(range.to_ns), width);
      if (right <= 0 || left >= width) return;
      const slow = steps.slow.includes(at);
      const colour = slow ? colours.slow : colours.step;
      context.fillStyle = colour;
      context.fillRect(left, 2, Math.max(1, right - left - 1), STEPS_PX - 5);
      if (at === steps.median && right - left > 3) {
        context.strokeStyle = colours.text;
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.75, 2.75, right - left - 2.5, STEPS_PX - 6.5);
      }
      const kind = at === steps.median ? " median" : slow ? " slow" : "";
      const text = texts.cut(`${steps.numbers[at]}  ${duration(Math.round(length(range)))}${kind}`, right - left - 8);
      context.fillStyle = inkOn(colour);
      context.fillText(text, left + 4, STEPS_PX / 2);
    });
    context.fillStyle = colours.line;
    context.fillRect(0, STEPS_PX - 1, width, 1);
  }
}

function withMargin(range: Range): Range {
  const margin = length(range) * 0.1;
  return { from_ns: range.from_ns - margin, to_ns: range.to_ns + margin };
}
