// Choosing what is compared, and what the comparison says.

import { compared, firstPair, readSide, type Side, sideName, writtenSide } from "../compare.ts";
import type { Comparison, Ratio, Work } from "../data/answers.ts";
import type { DataSource } from "../data/source.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { Latest } from "../latest.ts";
import { part } from "./awaited.ts";
import { sentence } from "../sentence.ts";
import { bytes, count, duration, factor, known, of } from "../time/format.ts";
import type { Range } from "../time/range.ts";

export interface CompareSteps {
  /** Puts two sides under each other. */
  start: (before: Side, after: Side) => void;
  stop: () => void;
  /** Goes to another instance of the labels. */
  step: (by: number) => void;
  selection: () => Range | null;
}

const MOST_LABELS = 300;
const NOTHING_TO_COMPARE = "Open two traces (gapscope view A B), label the parts that do the same work, or take two selected ranges here.";

export class ComparePanel {
  readonly element = h("div", { class: "panel compare-panel" });
  private readonly before = h("select", { "aria-label": "Before" });
  private readonly after = h("select", { "aria-label": "After" });
  private readonly result = h("div", { class: "compare-result", role: "status", tabindex: "0" });
  private readonly stepper = h("span", { class: "stepper", hidden: true });
  private readonly extra: Side[] = [];
  private readonly asked = new Latest();
  /** Why there are too few choices. */
  private hint: HTMLElement | null = null;

  constructor(
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly steps: CompareSteps,
  ) {
    const use = (select: HTMLSelectElement): HTMLElement =>
      h("button", { type: "button", title: "Take the selected range", onclick: () => this.useSelection(select) }, "use selection");
    fill(
      this.element,
      h(
        "form",
        {
          class: "panel-head",
          onsubmit: (event: Event) => {
            event.preventDefault();
            this.start();
          },
        },
        h("label", {}, "Before ", this.before),
        use(this.before),
        h("label", {}, "After ", this.after),
        use(this.after),
        h("button", { type: "submit", class: "primary" }, "Compare"),
        h("button", { type: "button", class: "stop", onclick: () => this.steps.stop() }, "Back to one timeline"),
        this.stepper,
      ),
      this.result,
    );
    this.fillChoices();
  }

  /** The choices: labels, whole traces, and ranges that were taken. */
  fillChoices(): void {
    const sides: Side[] = [...this.extra];
    for (const trace of this.traces) {
      // What has no rank may have nothing to show.
      if (this.traces.length > 1 && trace.tracks.length > 0) sides.push({ trace: trace.number, what: "all" });
      const { findings } = trace;
      if (findings && "labels" in findings) {
        for (const label of (findings.labels ?? []).slice(0, MOST_LABELS)) sides.push({ trace: trace.number, what: "label", path: label.path });
      }
    }
    const option = (side: Side): HTMLElement => h("option", { value: writtenSide(side) }, sideName(side, this.traces));
    const [before, after] = [this.before.value, this.after.value];
    fill(this.before, sides.map(option));
    fill(this.after, sides.map(option));
    const first = firstPair(sides);
    this.before.value = before || (first ? writtenSide(first[0]) : "");
    this.after.value = after || (first ? writtenSide(first[1]) : "");
    if (sides.length < 2 && (!this.result.hasChildNodes() || this.result.firstChild === this.hint)) {
      const labels = part(this.traces.find(({ findings }) => findings === null)?.findings ?? this.traces[0].findings, "The labels that can be compared are known when the trace is analysed.", ({ labels }) => labels);
      this.hint = h("p", { class: labels.state === "missing" ? "problem" : "empty" }, labels.state === "there" ? NOTHING_TO_COMPARE : labels.says);
      fill(this.result, this.hint);
    } else if (this.result.firstChild === this.hint) fill(this.result);
  }

  private useSelection(select: HTMLSelectElement): void {
    const range = this.steps.selection();
    if (!range) return fill(this.result, h("p", { class: "problem" }, "Select a range first: drag on the ruler, or with Shift on the tracks."));
    const side: Side = { trace: 0, what: "range", range };
    this.extra.unshift(side);
    this.fillChoices();
    select.value = writtenSide(side);
  }

  private start(): void {
    const before = readSide(this.before.value);
    const after = readSide(this.after.value);
    if (before && after) this.steps.start(before, after);
  }

  /** Shows what the comparison says, and gives it; `null` when another was asked for, or it failed. */
  async show(before: Side, after: Side): Promise<Comparison | null> {
    for (const [side, select] of [[before, this.before] as const, [after, this.after] as const]) {
      const value = writtenSide(side);
      if (![...select.options].some((option) => option.value === value)) this.extra.unshift(side);
    }
    this.fillChoices();
    this.before.value = writtenSide(before);
    this.after.value = writtenSide(after);
    fill(this.result, h("p", { class: "working" }, "Comparing…"));
    const last = this.asked.begin();
    try {
      const found = await compared(this.source, before, after);
      if (!last()) return null;
      this.tell(found, before, after);
      return found;
    } catch (error) {
      if (last()) fill(this.result, h("p", { class: "problem" }, sentence(error)));
      return null;
    }
  }

  instances(shown: number, of_all: number): void {
    this.stepper.hidden = of_all < 2;
    fill(
      this.stepper,
      h("button", { type: "button", "aria-label": "Previous instance", onclick: () => this.steps.step(-1) }, "◂"),
      ` instance ${shown + 1} of ${of_all} `,
      h("button", { type: "button", "aria-label": "Next instance", onclick: () => this.steps.step(1) }, "▸"),
    );
  }

  private tell(found: Comparison, before: Side, after: Side): void {
    const rows = found.ratios.map((ratio) => {
      const most = Math.max(ratio.before ?? 0, ratio.after ?? 0);
      return h(
        "tr",
        { "data-what": ratio.what, "data-ratio": ratio.ratio === null ? "unknown" : ratio.ratio.toFixed(4), "data-noise": String(ratio.within_noise) },
        h("th", { scope: "row", title: MEANINGS[ratio.what] }, NAMES[ratio.what] ?? ratio.what),
        h("td", {}, figure(ratio.what, ratio.before, most, "before")),
        h("td", {}, figure(ratio.what, ratio.after, most, "after")),
        h("td", { class: "number", title: intervalText(ratio) }, h("b", {}, changeText(ratio))),
      );
    });
    fill(
      this.result,
      h(
        "div",
        { class: "split" },
        h(
          "table",
          { "aria-label": "Equal work compared" },
          h(
            "thead",
            {},
            h("tr", {}, h("th", { scope: "col" }, found.per_evaluation ? "For one evaluation" : "In all"), this.heading(before, found.before), this.heading(after, found.after), h("th", { scope: "col", class: "number" }, "after takes")),
          ),
          h("tbody", {}, rows),
        ),
        h("div", {}, found.sentences.map((sentence) => h("p", {}, sentence))),
      ),
    );
  }

  private heading(side: Side, work: Work): HTMLElement {
    const evaluations = work.evaluations === null ? null : h("span", { class: "note" }, ` ${of(work.counted_evaluations, "evaluation", "evaluations")}`);
    return h("th", { scope: "col" }, sideName(side, this.traces), evaluations);
  }
}

const NAMES: Record<string, string> = {
  "GPU busy ns": "GPU busy time",
  "wall ns": "first work to last",
  "start to start ns": "start to start",
};

const MEANINGS: Record<string, string> = {
  "GPU busy ns": "Time in which the GPU ran something of it.",
  "wall ns": "From the start of its first work to the end of its last.",
  "start to start ns": "From the start of an evaluation's work to the start of the next one's: what it takes in a loop, the host's part included.",
};

/** A value of a figure with its unit. */
export function figureText(what: string, value: number | null): string {
  return known(value, what.includes("byte") ? bytes : what.endsWith(" ns") ? duration : (n: number) => (Number.isInteger(n) ? count(n) : n.toFixed(n < 0.995 ? 2 : 1)));
}

function figure(what: string, value: number | null, most: number, side: string): HTMLElement {
  const bar = h("span", { class: `figure-bar ${side}`, "aria-hidden": "true" });
  bar.style.width = `${most > 0 && value !== null ? Math.max(1, (value / most) * 100) : 0}%`;
  return h("div", { class: "figure" }, h("span", { class: "number" }, figureText(what, value)), h("span", { class: "figure-track" }, bar));
}

/** How much less or more it takes after; nothing is less than nothing. */
export function changeText({ before, after, ratio, within_noise }: Ratio): string {
  if (before !== null && before === after) return "the same";
  if (before !== null && after === 0) return "none";
  if (ratio === null) return "unknown";
  if (within_noise) return "within noise";
  return ratio >= 1 ? `${factor(ratio)} less` : `${factor(1 / ratio)} more`;
}

/** Where the true ratio is. */
function intervalText({ low, high }: Ratio): string {
  if (low === null || high === null) return "Too few evaluations to tell a difference from chance.";
  const end = (ratio: number): string => (ratio >= 1 ? `${factor(ratio)} less` : `${factor(1 / ratio)} more`);
  return `In 95 of 100 cases between ${end(low)} and ${end(high)}.`;
}
