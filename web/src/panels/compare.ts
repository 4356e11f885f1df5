// The panel in which the sides of a comparison are chosen and its results are shown. A side is a trace, a label or a
// range; an instance is one place where a label was set, and an evaluation the work of one instance.

import { type SideChoice, compared, firstPair, readSide, type Side, sideName, writeSide } from "../comparison-sides.ts";
import type { DataSource } from "../data/source.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { CauseChange, KernelChange, Ratio, WorkComparison, WorkCost } from "../generated/protocol.ts";
import { LatestRequest } from "../latest-request.ts";
import { bytes, count, duration, known, plural, times } from "../time/format.ts";
import type { Range } from "../time/range.ts";
import { part } from "./loadable.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

/** What the panel asks of the page. */
export interface CompareCallbacks {
  /** Starts a comparison. */
  start: (before: Side, after: Side) => void;
  stop: () => void;
  /** Shows another instance of the labels. */
  step: (by: number) => void;
  /** Lays the sides over each other, or shows them below each other. */
  layOver: (over: boolean) => void;
  /** Returns the selected range of whichever timeline has one; null for none. */
  selection: () => { trace: number; range: Range } | null;
}

/** The most labels of a trace that can be chosen. */
const MAX_LABELS = 300;
/** The most steps of a trace that can be chosen. */
const MAX_STEPS = 100;
const NOTHING_TO_COMPARE = "Open two traces (gapscope view A B), label the parts that do the same work, or use two selected ranges.";

/** Selects an option, and shows its whole text as a tooltip because the box may cut it. */
function choose(select: HTMLSelectElement, value: string): void {
  select.value = value;
  select.title = [...select.children].find((option) => (option as HTMLOptionElement).value === value)?.textContent ?? "";
}

/** The panel. `fillChoices` is called when findings have arrived, and `show` when a comparison has started. */
export class ComparePanel {
  readonly element = h("div", { class: "panel compare-panel" });
  private readonly before = h("select", { "aria-label": "Before", onchange: () => choose(this.before, this.before.value) });
  private readonly after = h("select", { "aria-label": "After", onchange: () => choose(this.after, this.after.value) });
  private readonly result = h("div", { class: "compare-result", role: "status", tabindex: "0" });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly over = h("input", { type: "checkbox", onchange: () => this.callbacks.layOver(this.over.checked) });
  private readonly stepper = h("span", { class: "stepper", hidden: true });
  /** The sides that were added to the choices: selected ranges, and those of addresses. */
  private readonly extra: Side[] = [];
  private readonly requests = new LatestRequest();
  private readonly suggesting = new LatestRequest();
  /** Resolves when the suggested pair is known. */
  private suggested: Promise<void> | null = null;
  /** The hint that is shown while there are too few choices. */
  private hint: HTMLElement | null = null;

  constructor(
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly callbacks: CompareCallbacks,
  ) {
    const use = (select: HTMLSelectElement): HTMLElement =>
      h("button", { type: "button", title: "Use the selected range", onclick: () => this.useSelection(select) }, "use selection");
    fill(
      this.element,
      h(
        "form",
        {
          class: "panel-head",
          onsubmit: (event: Event) => {
            event.preventDefault();
            void this.start();
          },
        },
        h("label", {}, "Before ", this.before),
        use(this.before),
        h("label", {}, "After ", this.after),
        use(this.after),
        h("button", { type: "submit", class: "primary" }, "Compare"),
        h("button", { type: "button", class: "stop", onclick: () => this.callbacks.stop() }, "Back to one timeline"),
        this.stepper,
        h("label", { class: "lay-over", title: "One timeline: before in the upper half of each lane, after in the lower" }, this.over, " over each other"),
      ),
      this.problem,
      this.result,
    );
    this.fillChoices();
  }

  /** Fills in the choices: labels, whole traces, and ranges that were added. */
  fillChoices(): void {
    const choices: SideChoice[] = this.extra.map((side) => ({ side }));
    for (const trace of this.traces) {
      // A process of the launcher without a rank may have no tracks.
      if (this.traces.length > 1 && trace.tracks.length > 0) choices.push({ side: { trace: trace.number, what: "all" } });
      const { findings, steps } = trace;
      if (steps) {
        // The median step and the slow ones are compared most often.
        const first = [steps.median, ...steps.slow];
        const order = [...new Set([...first, ...steps.ranges.keys()])].slice(0, MAX_STEPS);
        for (const at of order) choices.push({ side: { trace: trace.number, what: "range", range: steps.ranges[at] } });
      }
      if (findings && "labels" in findings) {
        for (const { path, instances, inclusive } of (findings.labels ?? []).slice(0, MAX_LABELS)) {
          choices.push({ side: { trace: trace.number, what: "label", path }, instances, dispatches: inclusive.dispatch_count });
        }
      }
    }
    const option = ({ side }: SideChoice): HTMLElement => h("option", { value: writeSide(side) }, sideName(side, this.traces));
    const [before, after] = [this.before.value, this.after.value];
    fill(this.before, choices.map(option));
    fill(this.after, choices.map(option));
    choose(this.before, before);
    choose(this.after, after);
    if (!before && !after) this.suggested = this.suggest(choices);
    if (choices.length < 2 && (!this.result.hasChildNodes() || this.result.firstChild === this.hint)) {
      const labels = part(this.traces.find(({ findings }) => findings === null)?.findings ?? this.traces[0].findings, "Labels can be compared once the trace has been analysed.", ({ labels }) => labels);
      this.hint = h("p", { class: labels.state === "missing" ? "problem" : "empty" }, labels.state === "loaded" ? NOTHING_TO_COMPARE : labels.message);
      fill(this.result, this.hint);
    } else if (this.result.firstChild === this.hint) fill(this.result);
  }

  /** Selects the suggested pair unless the reader has chosen meanwhile. */
  private async suggest(choices: readonly SideChoice[]): Promise<void> {
    const isLatest = this.suggesting.begin();
    const first = (await firstPair(this.source, this.traces, choices)) ?? this.slowStep();
    if (!first || !isLatest() || this.before.value || this.after.value) return;
    choose(this.before, writeSide(first[0]));
    choose(this.after, writeSide(first[1]));
  }

  /** Returns the median step and the slowest one; null where no step is slow. */
  private slowStep(): [Side, Side] | null {
    for (const { number, steps } of this.traces) {
      if (steps && steps.slow.length > 0) return [{ trace: number, what: "range", range: steps.ranges[steps.median] }, { trace: number, what: "range", range: steps.ranges[steps.slow[0]] }];
    }
    return null;
  }

  /** Adds the selected range to the choices, and chooses it in a box. */
  private useSelection(select: HTMLSelectElement): void {
    const selected = this.callbacks.selection();
    if (!selected) return this.showProblem("Select a range first: drag on the ruler, or with Shift on the tracks.");
    const side: Side = { ...selected, what: "range" };
    this.extra.unshift(side);
    this.fillChoices();
    choose(select, writeSide(side));
  }

  private showProblem(problem: string): void {
    this.problem.textContent = problem;
    this.problem.hidden = problem === "";
  }

  /** Clears the message that asks for a range. */
  selected(): void {
    this.showProblem("");
  }

  private async start(): Promise<void> {
    await this.suggested;
    const before = readSide(this.before.value);
    const after = readSide(this.after.value);
    if (!before || !after) return this.showProblem("Choose both sides.");
    this.showProblem("");
    this.callbacks.start(before, after);
  }

  /** Shows the results of a comparison and returns them; `null` when another was started or it failed. */
  async show(before: Side, after: Side): Promise<WorkComparison | null> {
    for (const [side, select] of [[before, this.before] as const, [after, this.after] as const]) {
      const value = writeSide(side);
      if (![...select.options].some((option) => option.value === value)) this.extra.unshift(side);
    }
    this.fillChoices();
    choose(this.before, writeSide(before));
    choose(this.after, writeSide(after));
    this.showProblem("");
    fill(this.result, h("p", { class: "working" }, "Comparing…"));
    const isLatest = this.requests.begin();
    try {
      const found = await compared(this.source, before, after);
      if (!isLatest()) return null;
      this.tell(found, before, after);
      return found;
    } catch (error) {
      if (isLatest()) fill(this.result, h("p", { class: "problem" }, errorMessage(error)));
      return null;
    }
  }

  /** Shows which instance, from 0 on, is on the timelines, with buttons to others; hides that below two instances. */
  instances(shown: number, of_all: number): void {
    this.stepper.hidden = of_all < 2;
    fill(
      this.stepper,
      h("button", { type: "button", "aria-label": "Previous instance", onclick: () => this.callbacks.step(-1) }, "◂"),
      ` instance ${count(shown + 1)} of ${count(of_all)} `,
      h("button", { type: "button", "aria-label": "Next instance", onclick: () => this.callbacks.step(1) }, "▸"),
    );
  }

  /** Shows the figures of both sides. Where they did different work, ratios are left out. */
  private tell(found: WorkComparison, before: Side, after: Side): void {
    const unlike = isUnlike(found);
    const rows = found.ratios.map((ratio) => {
      const most = Math.max(ratio.before ?? 0, ratio.after ?? 0);
      return h(
        "tr",
        { "data-what": ratio.what, "data-ratio": ratio.ratio === null ? "unknown" : ratio.ratio.toFixed(4), "data-noise": String(ratio.within_noise) },
        h("th", { scope: "row", title: MEANINGS[ratio.what] }, NAMES[ratio.what] ?? ratio.what),
        h("td", {}, figure(ratio.what, ratio.before, most, "before")),
        h("td", {}, figure(ratio.what, ratio.after, most, "after")),
        h("td", { class: "number", title: unlike ? null : intervalText(ratio) }, unlike ? "–" : h("b", {}, changeText(ratio))),
      );
    });
    fill(
      this.result,
      unlike ? h("p", { class: "unlike", role: "alert" }, h("b", {}, unlikeText(found))) : null,
      h(
        "div",
        { class: "split figures-split" },
        h(
          "table",
          { "aria-label": unlike ? "Figures of both sides" : "Equal work compared" },
          h(
            "thead",
            {},
            h("tr", {}, h("th", { scope: "col" }, found.per_evaluation ? "For one evaluation" : "In all"), this.heading(before, found.before), this.heading(after, found.after), h("th", { scope: "col", class: "number" }, unlike ? "not compared" : "after takes")),
          ),
          h("tbody", {}, rows),
        ),
        h("div", {}, found.sentences.map((sentence) => h("p", {}, sentence))),
      ),
      this.changes(found, before, after),
    );
  }

  /** Makes the tables of changes by kernel and by cause of idle time. */
  private changes(found: WorkComparison, before: Side, after: Side): HTMLElement {
    const { causes } = this.traces[before.trace];
    const each = found.per_evaluation ? ", for one evaluation" : "";
    const sides = ["Before", "After"].map((head, at) => ({ head, tooltip: sideName([before, after][at], this.traces) }));
    const time = (timeOf: (row: KernelChange | CauseChange) => number | null, at: number): { head: string; tooltip: string; text: (row: KernelChange | CauseChange) => string; sort: (row: KernelChange | CauseChange) => number | null; number: true } => ({
      ...sides[at],
      text: (row) => known(timeOf(row), (ns) => (ns === 0 ? "–" : duration(Math.round(ns)))),
      sort: timeOf,
      number: true,
    });
    const changed = {
      head: "Change",
      tooltip: "After less before.",
      text: (row: KernelChange | CauseChange) => signed(row.before_ns, row.after_ns),
      sort: (row: KernelChange | CauseChange) => (row.before_ns === null || row.after_ns === null ? null : Math.abs(row.after_ns - row.before_ns)),
      number: true,
    };
    const after_is = { head: "After is", text: (row: KernelChange | CauseChange) => amount(row.before_ns, row.after_ns, "time"), number: true };
    const times_of = [time((row) => row.before_ns, 0), time((row) => row.after_ns, 1), changed, after_is];
    const kernels = new Table<KernelChange>({
      name: "What changed by kernel",
      sorted: 4,
      empty: "No kernels are known.",
      columns: [
        { head: "Kernel", text: (row) => row.name, sort: (row) => row.name, wide: true },
        { head: "Dispatches", tooltip: "Before → after.", text: (row) => `${figureText("dispatches", row.before_count)} → ${figureText("dispatches", row.after_count)}`, sort: (row) => row.after_count, number: true },
        ...times_of,
      ],
    });
    const idle = new Table<CauseChange>({
      name: "What changed by cause of idle time",
      sorted: 3,
      empty: "The causes of idle time are known for neither side.",
      columns: [
        { head: "Cause of idle time", text: (row) => h("span", { class: "cause", title: causes.sentence(row.cause) }, swatch(causes.colour(row.cause)), causes.name(row.cause)), sort: (row) => causes.name(row.cause), wide: true },
        ...times_of,
      ],
    });
    kernels.show(found.kernels);
    idle.show(found.causes);
    return h(
      "div",
      { class: "split changes" },
      h("div", { class: "by-kernel" }, h("h2", { class: "part" }, `By kernel${each}`), kernels.element),
      h("div", { class: "by-cause" }, h("h2", { class: "part" }, `Idle time by cause${each}`), idle.element),
    );
  }

  private heading(side: Side, work: WorkCost): HTMLElement {
    const evaluations = work.evaluations === null ? null : h("span", { class: "note" }, ` ${plural(work.counted_evaluations, "evaluation", "evaluations")}`);
    return h("th", { scope: "col" }, sideName(side, this.traces), evaluations);
  }
}

const NAMES: Record<string, string> = {
  "GPU busy ns": "GPU busy time",
  "wall ns": "first work to last",
  "start to start ns": "start to start",
};

const MEANINGS: Record<string, string> = {
  "GPU busy ns": "Time in which the GPU ran any of its work.",
  "wall ns": "From the start of its first work to the end of its last.",
  "start to start ns": "From the start of an evaluation's work to the start of the next one's: what it takes in a loop, the host's part included.",
};

/** Formats a value of a figure with its unit. */
export function figureText(what: string, value: number | null): string {
  return known(value, what.includes("byte") ? bytes : what.endsWith(" ns") ? duration : (n: number) => (Number.isInteger(n) || n >= 999.5 ? count(n) : n.toFixed(n < 0.995 ? 2 : 1).replace(/\.0+$/, "")));
}

/** Makes the cell of a figure, with a bar as its share of `most`, the greater of the two sides. */
function figure(what: string, value: number | null, most: number, side: string): HTMLElement {
  const bar = h("span", { class: `figure-bar ${side}`, "aria-hidden": "true" });
  bar.style.width = `${most > 0 && value !== null ? Math.max(1, (value / most) * 100) : 0}%`;
  return h("div", { class: "figure" }, h("span", { class: "number" }, figureText(what, value)), h("span", { class: "figure-track" }, bar));
}

/** Whether an amount is counted (`as many`) or measured (`as much`). */
type AmountKind = "count" | "time";

/** Describes the change of a figure; a change within the noise is not called a change. */
export function changeText({ what, before, after, ratio, within_noise }: Ratio): string {
  if (within_noise && before !== after) return "within noise";
  if (ratio === null && after !== 0 && before !== after) return "unknown";
  return amount(before, after, what.endsWith(" ns") || what.includes("byte") ? "time" : "count");
}

/** Describes the ratio of two amounts: `1.80 × as many`, `0.56 × as much`. */
export function amount(before: number | null, after: number | null, kind: AmountKind): string {
  if (before === null || after === null) return "unknown";
  if (before === after) return "the same";
  if (after === 0) return "none";
  if (before === 0) return "new";
  return factorText(after / before, kind);
}

/** Describes a factor; one that reads as 1 is `about the same`. */
function factorText(factor: number, kind: AmountKind): string {
  const text = times(factor);
  if (text === times(1)) return "about the same";
  return `${text} as ${kind === "count" ? "many" : "much"}`;
}

/** Formats the difference of two times with its sign; a dash where they are equal. */
function signed(before_ns: number | null, after_ns: number | null): string {
  if (before_ns === null || after_ns === null) return "unknown";
  const by = Math.round(after_ns - before_ns);
  return by === 0 ? "–" : `${by > 0 ? "+" : "−"}${duration(Math.abs(by))}`;
}

/** Describes the interval in which the true change lies. */
function intervalText({ what, low, high }: Ratio): string {
  if (low === null || high === null) return "Too few evaluations to tell a difference from chance.";
  const of = what.endsWith(" ns") || what.includes("byte") ? "much" : "many";
  return `In 95 of 100 cases after takes between ${times(1 / high)} and ${times(1 / low)} as ${of}.`;
}

/** Returns whether the sides did different work, as far as their kernels tell. */
function isUnlike({ basis }: WorkComparison): boolean {
  return basis !== "labels" && basis !== "claim";
}

function unlikeText({ common_kernels: common, all_kernels: all }: WorkComparison): string {
  if (common === null || all === null) return "It is not known whether both sides did the same work.";
  return `Not the same work: ${common === 0 ? `none of ${plural(all, "kernel", "kernels")} is` : `${count(common)} of ${plural(all, "kernel", "kernels")} ${common === 1 ? "is" : "are"}`} in both.`;
}
