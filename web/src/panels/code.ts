// The code of idle time: a flame graph of the stacks of submitting threads in gaps, and a table by line.

import type { Appearance } from "../appearance.ts";
import { type IdleFilter, type Code, type IdleSamples, MIN_SAMPLES, type LineTime } from "../data/code.ts";
import { flame, type FlameNode, type PlacedFrame, placed } from "../data/flame.ts";
import { fill, h } from "../dom.ts";
import { inkOn } from "../draw/palette.ts";
import { errorMessage } from "../error-message.ts";
import { LatestRequest } from "../latest-request.ts";
import { count, duration, instant, plural, share } from "../time/format.ts";
import { length } from "../time/range.ts";
import type { View } from "../view.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

/** The height of a row of the flame graph. */
const ROW_PX = 18;
/** The least width of a frame that is drawn, as a share of the whole width. */
const MIN_WIDTH = 1 / 600;
/** The least width of a frame with a readable name. */
const NAMED_WIDTH = 0.045;
/** How long the selection and the data must rest before the panel is drawn again. */
const REST_MS = 120;

export const NO_SAMPLES = "The trace has neither samples of stacks nor ranges of the threads that submit. `gapscope record` samples Python and native threads unless --no-stacks is given; PyTorch's profiler records functions with with_stack=True.";

const EMPTY = "No code is known in this part of the idle time.";

/** The panel of one view: the flame graph, the table, and boxes that restrict them to a cause and a label. */
export class CodePanel {
  readonly element = h("div", { class: "panel code-panel" });
  private readonly status = h("span", { role: "status" });
  private readonly more = h("span", { class: "note" });
  private readonly causes = h("select", { "aria-label": "Cause of idle time", onchange: () => this.choose() });
  private readonly labels = h("select", { "aria-label": "Label of the work that ended the gap", onchange: () => this.choose() });
  private readonly whole = h("button", { type: "button", hidden: true, onclick: () => this.zoom(null) }, "Zoom out");
  private readonly drawing = h("div", { class: "flame", role: "group", "aria-label": "Flame graph of idle time. Arrow keys move, Enter zooms, Escape zooms out. The table has the same time by line.", onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  private readonly table: Table<LineTime>;
  private readonly requests = new LatestRequest();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private idle: IdleSamples | null = null;
  /** The indices of causes and labels in the trace's strings. */
  private numbers: ReadonlyMap<string, number> = new Map();
  /** The wanted cause and label, whether the trace has them or not. */
  private wanted = { cause: "", label: "" };
  private root: FlameNode | null = null;
  private zoomed: FlameNode | null = null;
  private nodes: { placed: PlacedFrame; element: HTMLButtonElement }[] = [];
  private samples = 0;
  private total_ns = 0;

  constructor(
    private readonly view: View,
    private readonly appearance: Appearance,
    /** Called with the text of a picked line, to search for it. */
    private readonly pick: (line: string) => void,
    /** Called when another cause or label was chosen. */
    private readonly chosen: () => void,
  ) {
    this.table = new Table<LineTime>({
      name: "Idle time by line of code",
      sorted: 1,
      empty: EMPTY,
      pick: (row) => this.pick(this.idle?.code.lineFrame(row.line)?.text ?? row.text),
      columns: [
        { head: "line", wide: true, whole: true, text: (row) => this.named(row), sort: (row) => row.text },
        { head: "idle time", tooltip: "Idle time that its samples stand for, or in its ranges", number: true, text: (row) => duration(Math.round(row.total_ns)), sort: (row) => row.total_ns },
        { head: "share", tooltip: `Of the time with samples, from ${MIN_SAMPLES} samples on, or of the time in ranges`, number: true, text: (row) => (this.hasShares ? share(row.total_ns / this.total_ns) : "–"), sort: (row) => row.total_ns },
        { head: "samples", tooltip: "Ranges of threads have exact times and no samples", number: true, text: (row) => (this.isExact ? "–" : count(row.samples)), sort: (row) => row.samples },
      ],
    });
    view.onChange((change) => {
      if (change !== "selection" && change !== "data") return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.element.isConnected && (change === "data" ? void this.open() : this.show()), REST_MS);
    });
    this.head();
  }

  private named(row: LineTime): Node {
    const source = this.idle?.code.lineFrame(row.line)?.source;
    return h("span", { class: "code-line" }, h("span", {}, this.idle ? swatch(this.appearance.lineColour(this.idle.code, row.line)) : null, row.text), source ? h("code", { title: source }, source) : null);
  }

  /** Puts the panel's parts in place, or a sentence where the trace has no samples. */
  private head(): void {
    const { trace } = this.view;
    if (!trace.hasCode) {
      // A live trace may still get samples.
      const text = trace.overview.live && trace.overview.manifest.stack_rate_hz ? "No samples yet." : NO_SAMPLES;
      return fill(this.element, h("p", { class: "empty" }, text));
    }
    // The elements are kept, so that the focus stays.
    if (this.element.contains(this.drawing)) return;
    fill(
      this.element,
      h("div", { class: "panel-head" }, this.status, this.more, h("span", { class: "choices" }, this.whole, this.causes, this.labels)),
      h("div", { class: "split" }, this.drawing, h("div", { class: "code-table" }, this.table.element)),
    );
  }

  /** Loads the samples of the trace as it is now, and shows them. */
  async open(): Promise<void> {
    const { trace } = this.view;
    this.head();
    if (!trace.hasCode) return;
    const isLatest = this.requests.begin();
    if (!this.idle) fill(this.status, "Loading code…");
    try {
      const idle = await trace.loadIdle();
      // The names of causes and labels are in the trace's strings.
      if (idle !== this.idle) await trace.loadStrings();
      if (!isLatest()) return;
      if (idle === this.idle) return this.show();
      this.idle = idle;
      this.zoomed = null;
      this.choices(idle);
      this.show();
    } catch (error) {
      if (!isLatest()) return;
      this.idle = null;
      fill(this.element, h("p", { class: "problem" }, errorMessage(error)));
    }
  }

  /** Fills the boxes for cause and label, and selects the wanted ones where they exist. */
  private choices(idle: IdleSamples): void {
    const { trace } = this.view;
    // Options are identified by name, because another edition renumbers the trace's strings.
    const choose = (select: HTMLSelectElement, value: string, all: string, values: [value: string, text: string][]): void => {
      fill(select, h("option", { value: "" }, all), values.map(([value, text]) => h("option", { value }, text)));
      select.value = values.some(([one]) => one === value) ? value : "";
      select.hidden = values.length === 0;
    };
    const causes = idle.causes.filter(({ samples }) => samples > 0);
    choose(this.causes, this.wanted.cause, "All causes", causes.map(({ cause }) => [cause, trace.causes.name(cause)]));
    const labels = idle.labels.map((label) => trace.text(label)).sort();
    choose(this.labels, this.wanted.label, "All labels", labels.map((label) => [label, label]));
    this.numbers = new Map([...idle.labels.map((label) => [trace.text(label), label] as const), ...causes.map(({ cause }) => [cause, trace.strings.indexOf(cause)] as const)]);
  }

  /** The cause and the label that the idle time is restricted to; empty for none. */
  get only(): { cause: string; label: string } {
    return this.wanted;
  }

  /** Restricts the idle time to a cause and to a label of the work after it; "" does not restrict. */
  set only(wanted: { cause: string; label: string }) {
    this.wanted = wanted;
    if (!this.idle) return;
    this.choices(this.idle);
    this.show();
  }

  private choose(): void {
    this.wanted = { cause: this.causes.value, label: this.labels.value };
    this.show();
    this.chosen();
  }

  /** Whether ranges of threads tell the code, and not samples. */
  private get isExact(): boolean {
    return this.idle?.code.isExact ?? false;
  }

  private get hasShares(): boolean {
    return this.total_ns > 0 && (this.isExact || this.samples >= MIN_SAMPLES);
  }

  private get filter(): IdleFilter {
    const number = ({ value }: HTMLSelectElement): number | null => (value ? (this.numbers.get(value) ?? null) : null);
    return { range: this.view.selection, cause: number(this.causes), label: number(this.labels) };
  }

  /** Builds the tree and the table for the present restriction, and draws them. */
  private show(): void {
    const { idle } = this;
    if (!idle) return;
    const { filter } = this;
    const path = this.root && this.zoomed ? pathOf(this.root, this.zoomed) : null;
    this.root = flame(idle, filter);
    // The zoom stays where the new tree has the node.
    this.zoomed = path && followed(this.root, path);
    this.samples = this.root.samples;
    this.total_ns = this.root.total_ns;
    this.element.dataset.samples = String(this.samples);
    this.element.dataset.totalNs = this.total_ns.toFixed(0);
    const where = filter.range ? ` from ${instant(filter.range.from_ns, length(filter.range) / 100)} to ${instant(filter.range.to_ns, length(filter.range) / 100)}` : "";
    fill(this.status, h("b", {}, duration(Math.round(this.total_ns))), ` of idle time${where} ${this.isExact ? "in ranges of submitting threads" : `by ${plural(this.samples, "sample", "samples")}`}`);
    fill(this.more, this.remarks(idle));
    this.table.show(idle.lines("sampled", filter));
    this.draw(idle.code);
  }

  /** Returns restrictions of the figures, as the end of a sentence. */
  private remarks(idle: IdleSamples): string {
    const { range, cause, label } = this.filter;
    const remarks: string[] = [];
    if (this.samples < MIN_SAMPLES && !this.isExact) remarks.push("too few for shares");
    if (!range && label === null) {
      const without_ns = idle.causes.filter((one) => cause === null || one.cause === this.causes.value).reduce((sum, one) => sum + one.without_samples_ns, 0);
      if (without_ns > 0) remarks.push(`${duration(without_ns)} more ${this.isExact ? "in no range" : "without samples"}`);
    }
    return remarks.join(", ");
  }

  /** Zooms to a node; null or the root shows everything. */
  private zoom(node: FlameNode | null): void {
    this.zoomed = node === this.root ? null : node;
    if (this.idle) this.draw(this.idle.code);
  }

  /** Draws with changed colours or matches of the search. */
  renew(): void {
    if (!this.idle || !this.element.isConnected) return;
    this.table.show(this.table.all);
    this.draw(this.idle.code);
  }

  /** Draws the flame graph; the focus stays on its node where that is still there. */
  private draw(code: Code): void {
    const { root } = this;
    if (!root) return;
    const focused = this.nodes.find(({ element }) => element === document.activeElement)?.placed.node;
    const all = root.samples === 0 ? [] : placed(root, this.zoomed ?? root, MIN_WIDTH);
    this.whole.hidden = this.zoomed === null;
    this.nodes = all.map((one) => ({ placed: one, element: this.node(code, one) }));
    const depth = all.reduce((most, one) => Math.max(most, one.depth + 1), 0);
    const inner = h("div", { class: "flame-rows" }, this.nodes.map(({ element }) => element));
    inner.style.height = `${depth * ROW_PX}px`;
    this.drawing.dataset.nodes = String(all.length);
    fill(this.drawing, all.length > 0 ? inner : h("p", { class: "empty" }, EMPTY));
    const again = this.nodes.find(({ placed }) => placed.node === focused) ?? this.nodes.find(({ placed }) => placed.node === (this.zoomed ?? root));
    if (again) again.element.tabIndex = 0;
    if (focused) again?.element.focus();
  }

  private node(code: Code, one: PlacedFrame): HTMLButtonElement {
    const { node } = one;
    const frame = node.frame < 0 ? null : code.header.frames[node.frame];
    const name = frame?.text ?? (this.isExact ? "all idle time in ranges" : "all idle time with samples");
    const part = this.hasShares ? `, ${share(node.total_ns / this.total_ns)}` : "";
    const text = `${name}: ${duration(Math.round(node.total_ns))}${part}${this.isExact ? "" : `, ${plural(node.samples, "sample", "samples")}`}`;
    const place = [frame?.file ?? frame?.library, frame?.source].filter(Boolean).join("\n");
    const found = this.appearance.searching && frame !== null && this.appearance.finds(frame.text);
    const element = h(
      "button",
      {
        type: "button",
        class: ["flame-node", frame?.own ? "own" : "", one.around ? "around" : "", this.appearance.searching ? (found ? "found" : "dimmed") : ""].filter(Boolean).join(" "),
        tabindex: "-1",
        "aria-label": text,
        "aria-pressed": String(node === (this.zoomed ?? this.root)),
        title: place ? `${text}\n${place}` : text,
        onclick: () => this.zoom(node),
      },
      one.width >= NAMED_WIDTH ? name : "",
    );
    const { style } = element;
    style.left = `${(one.from * 100).toFixed(4)}%`;
    style.width = `${(one.width * 100).toFixed(4)}%`;
    style.top = `${one.depth * ROW_PX}px`;
    const colour = this.colour(code, node, found);
    style.background = colour;
    style.color = inkOn(colour);
    return element;
  }

  /** Returns the colour of a frame: that of its line, or grey where no line stands for it. */
  private colour(code: Code, node: FlameNode, found: boolean): string {
    const { colours } = this.appearance;
    if (this.appearance.searching && !found) return colours.dimmed;
    const line = code.lineOfFrame(node.frame);
    if (line !== null) return this.appearance.lineColour(code, line);
    return node.frame < 0 || code.header.frames[node.frame].own ? colours.strong : colours.hostWait;
  }

  /** Goes from node to node with the arrow keys; Escape ends the zoom. */
  private key(event: KeyboardEvent): void {
    const at = this.nodes.findIndex(({ element }) => element === event.target);
    if (at < 0) return;
    const { placed: own } = this.nodes[at];
    const beside = this.nodes.filter(({ placed }) => placed.depth === own.depth);
    const number = beside.findIndex(({ placed }) => placed === own);
    const steps: Record<string, () => (typeof this.nodes)[number] | undefined> = {
      ArrowUp: () => this.nodes.find(({ placed }) => placed === own.parent),
      ArrowDown: () => this.nodes.find(({ placed }) => placed.parent === own),
      ArrowLeft: () => beside[number - 1],
      ArrowRight: () => beside[number + 1],
    };
    const step = steps[event.key];
    if (!step && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return this.zoom(null);
    const next = step();
    if (!next) return;
    this.nodes[at].element.tabIndex = -1;
    next.element.tabIndex = 0;
    next.element.focus();
  }
}

/** Returns the frames from below the root down to a node; null where the tree does not have it. */
function pathOf(root: FlameNode, node: FlameNode): number[] | null {
  if (root === node) return [];
  for (const child of root.children) {
    const path = pathOf(child, node);
    if (path) return [child.frame, ...path];
  }
  return null;
}

/** Returns the node at the end of a path of frames, if there is one. */
function followed(root: FlameNode, path: readonly number[]): FlameNode | null {
  let node: FlameNode | undefined = root;
  for (const frame of path) node = node?.children.find((child) => child.frame === frame);
  return node && node !== root ? node : null;
}
