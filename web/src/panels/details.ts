// The details of the picked event: what the page has at once, and then the row of the server's table with its links,
// buffers, kernel and dependencies.

import type { Appearance } from "../appearance.ts";
import { deviceOfGaps } from "../data/gaps.ts";
import { launchCounters } from "../data/launch-counters.ts";
import { isMissing } from "../data/missing.ts";
import type { DataSource } from "../data/source.ts";
import { fill, h } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { Field, Link, Missing, Neighbour, Neighbours, Row } from "../generated/protocol.ts";
import { LatestRequest } from "../latest-request.ts";
import { bytes, count, duration, instant, known, plural } from "../time/format.ts";
import { type Arrow, arrowEnd, type View, wholeRange } from "../view.ts";
import { gapCode, sampleDetails } from "./code-details.ts";
import { gapDetails } from "./gap-details.ts";
import { hotInstructions } from "./hot-instructions.ts";
import { namedKernels } from "./kernels.ts";
import { counterDetails } from "./limits.ts";
import { profiledKernel } from "./profiled-kernel.ts";

const TABLES: Record<string, string> = {
  dispatches: "dispatch",
  transfers: "transfer",
  opaque_work: "GPU work",
  command_buffers: "command buffer",
  host_calls: "host call",
  markers: "label",
  gaps: "gap",
  samples: "sample",
  kernels: "kernel",
  submissions: "submission",
};

/** Returns the word for a row of a table. A submission that is drawn is a launch: the call itself. */
function tableWord(table: string, drawn: boolean): string {
  return table === "submissions" && drawn ? "launch" : (TABLES[table] ?? table);
}

const RELATIONS: Record<string, string> = {
  "submitted-by": "Submitted by",
  runs: "Runs",
  "command-buffer": "Command buffer",
  submission: "Submission",
  "waits-for": "Waits for",
};

/** What a click in the details does. */
export interface DetailsCallbacks {
  /** Picks a row and shows it. */
  go: (view: View, table: string, row: number) => void;
  search: (text: string) => void;
  /** Shows a row in the dependency graph. */
  graph: (view: View, table: string, row: number) => void;
}

/** The section with the details, which is hidden while nothing is picked. */
export class DetailsPanel {
  readonly element = h("section", { class: "details-panel", "aria-label": "Details", "aria-live": "polite", hidden: true });
  private readonly requests = new LatestRequest();
  /** Shows the findings about the kernel or gap once they have arrived. */
  private analysed: (() => void) | null = null;
  /** Shows the code of the gap in the present colours. */
  private coded: (() => void) | null = null;

  constructor(
    private view: View,
    private readonly source: DataSource,
    private readonly appearance: Appearance,
    private readonly callbacks: DetailsCallbacks,
  ) {
    this.follow(view);
  }

  /** Shows the events that are picked in a view from now on. */
  follow(view: View): void {
    view.onChange((change) => {
      if (change === "data" && view === this.view) this.analysed?.();
      if (change !== "event" || (view !== this.view && view.event === null)) return;
      this.view = view;
      void this.showEvent();
    });
  }

  /** Draws with changed colours. */
  recolour(): void {
    this.coded?.();
  }

  /** Shows the event that is picked now; a later pick ends an earlier one that still loads. */
  private async showEvent(): Promise<void> {
    const { event, trace } = this.view;
    const isLatest = this.requests.begin();
    this.element.hidden = event === null;
    this.analysed = this.coded = null;
    if (!event) return;
    const { table, row } = event.track.rowOf(event);
    this.element.dataset.row = "";
    const lane = event.track.lanes[event.lane];
    if (table === "samples" && trace.code) {
      const sample = trace.code.sample(row);
      fill(this.element, this.head("sample", sample.line), ...sampleDetails(sample));
      this.element.dataset.row = `samples.${row}`;
      return;
    }
    // Show at once what the page already has.
    fill(
      this.element,
      this.head(tableWord(table, true), trace.nameOf(event.track, lane.key[event.index])),
      // The event is a part of a gap; the whole gap is shown when its row has loaded.
      table === "gaps" ? null : this.times(lane.start_ns[event.index], lane.duration_ns[event.index]),
      h("p", { class: "note", role: "status" }, "Loading details…"),
    );
    try {
      const found = await this.source.row(trace.number, table, row);
      if (isLatest()) await this.show(found, isLatest);
    } catch (error) {
      const status = isLatest() ? this.element.querySelector("[role=status]") : null;
      if (status) status.textContent = errorMessage(error);
    }
  }

  private head(what: string, name: string): HTMLElement {
    return h(
      "header",
      {},
      h("h2", { title: name }, h("span", { class: "note" }, what), h("span", { class: "name" }, name)),
      h("button", { type: "button", onclick: () => this.view.event && this.zoom(), title: "Zoom to it (E)" }, "Zoom"),
      h("button", { type: "button", onclick: () => this.view.pick(null), "aria-label": "Close the details" }, "✕"),
    );
  }

  private zoom(): void {
    if (!this.view.event) return;
    const range = wholeRange(this.view.event);
    const margin = Math.max(1, (range.to_ns - range.from_ns) * 0.2);
    this.view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
  }

  private times(start_ns: number | null, duration_ns: number | null, more = ""): HTMLElement {
    return h(
      "p",
      { class: "big" },
      duration_ns === null ? "unknown length" : duration(duration_ns),
      h("span", { class: "note" }, start_ns === null ? " at an unknown time" : ` from ${instant(start_ns, 10)}${more}`),
    );
  }

  /** Shows a loaded row, sets the arrows to its linked rows, and adds dependencies once they have loaded. */
  private async show(row: Row, isLatest: () => boolean): Promise<void> {
    const dependencies = h("div", { class: "dependencies" });
    const analysed = h("div");
    const { kernel, gap } = row;
    const { trace } = this.view;
    const device = deviceOfGaps(row.track);
    const codeOfGap = (): HTMLElement | null => (gap && device !== null ? gapCode(trace, this.appearance, device, { from_ns: gap.start_ns, to_ns: gap.start_ns + gap.duration_ns }) : null);
    let code = codeOfGap();
    const ofGap = h("div");
    this.analysed = () =>
      gap
        ? fill(ofGap, gapDetails(gap, row.title, trace.causes, code))
        : fill(analysed, kernel ? [this.counters(kernel), profiledKernel(trace.findings, kernel.name), hotInstructions(trace.findings, kernel.name)] : null);
    this.coded = () => {
      code = codeOfGap();
      this.analysed?.();
    };
    fill(
      this.element,
      this.head(tableWord(row.table, row.track !== null), row.gap ? this.view.trace.causes.name(row.title) : row.title),
      row.gap ? this.times(row.gap.start_ns, row.gap.duration_ns, row.gap.parts.length > 1 ? `, ${known(row.duration_ns, duration)} of it in this part` : "") : this.times(row.start_ns, row.duration_ns),
      row.times_unknown_because ? h("p", { class: "problem" }, row.times_unknown_because) : null,
      row.label ? this.label(row.label.path) : null,
      gap ? ofGap : null,
      this.links(row),
      dependencies,
      analysed,
      kernel ? this.kernel(this.view.trace.number, kernel) : null,
      this.bindings(row),
      this.fields("All fields", [
        ...(row.device ? [{ name: "device", value: row.device, meaning: "" }] : []),
        ...(row.queue ? [{ name: "queue", value: row.queue, meaning: "" }] : []),
        ...(row.thread ? [{ name: "thread", value: row.thread, meaning: "" }] : []),
        ...row.fields,
      ]),
    );
    this.analysed();
    this.element.dataset.row = `${row.table}.${row.row}`;
    this.view.setArrows(submissionArrows(row));
    if (row.table !== "dispatches" && row.table !== "transfers") return;
    const toGraph = h("button", { type: "button", class: "link", onclick: () => this.callbacks.graph(this.view, row.table, row.row) }, "Show it among its dependencies");
    fill(dependencies, toGraph);
    if (this.source.file) return;
    const found = await this.source.dependencies(this.view.trace.number, row.table, row.row).catch((error: unknown): Missing => ({ missing: errorMessage(error) }));
    if (!isLatest()) return;
    this.dependencies(dependencies, found);
    if (!isMissing(found)) this.view.setArrows([...this.view.arrows, ...dependencyArrows(row, found)]);
  }

  /** Makes the path of labels; a click searches for one. */
  private label(path: string[]): HTMLElement {
    return h(
      "nav",
      { class: "path", "aria-label": "Labels around it" },
      path.map((text) => h("button", { type: "button", title: `Search ${text}`, onclick: () => this.callbacks.search(text) }, text)),
    );
  }

  /** Lists the rows that a row is linked to, at most eight of each relation. */
  private links(row: Row): HTMLElement | null {
    if (row.links.length === 0) return null;
    const relations = [...new Set(row.links.map((link) => link.relation))];
    return h(
      "div",
      { class: "links" },
      relations.map((relation) => {
        const links = row.links.filter((link) => link.relation === relation);
        const all = row.link_counts?.[relation] ?? links.length;
        return h(
          "div",
          { "data-relation": relation },
          h("h3", {}, RELATIONS[relation] ?? relation, all > 1 ? h("span", { class: "note" }, ` ${count(all)}`) : null),
          h("ul", {}, links.slice(0, 8).map((link) => h("li", {}, this.link(link)))),
          all > 8 ? h("p", { class: "note" }, `and ${plural(all - Math.min(8, links.length), "more", "more")}`) : null,
        );
      }),
    );
  }

  private link(link: Pick<Link, "table" | "row" | "name" | "duration_ns" | "track">): HTMLElement {
    const text = [link.name, link.duration_ns === null ? "" : duration(link.duration_ns)].filter(Boolean).join("  ");
    if (link.track === null) return h("span", {}, text);
    return h("button", { type: "button", class: "link clip", title: link.name, onclick: () => this.callbacks.go(this.view, link.table, link.row) }, text);
  }

  /** Lists what work depends on and what needs it, at most eight on each side. */
  private dependencies(element: HTMLElement, found: Neighbours | Missing): void {
    const toGraph = element.firstElementChild as HTMLElement | null;
    if (isMissing(found)) return fill(element, toGraph, h("h3", {}, "Depends on"), h("p", { class: "note" }, found.missing));
    const list = (title: string, all: Neighbour[]): HTMLElement | null =>
      all.length === 0
        ? null
        : h(
            "div",
            {},
            h("h3", {}, title, h("span", { class: "note" }, ` ${count(all.length)}`)),
            h(
              "ul",
              {},
              all.slice(0, 8).map((one) =>
                h("li", {}, this.link(one), h("span", { class: "note clip", title: one.buffers.join(", ") }, `${one.kind}, ${bytes(Number(one.bytes))}: ${one.buffers.join(", ")}`)),
              ),
            ),
          );
    fill(
      element,
      toGraph,
      list("Depends on", found.predecessors),
      list("Needed by", found.successors),
      h("p", { class: "note" }, found.predecessors.length + found.successors.length === 0 ? `Shares no buffer with other work. ${found.note}` : found.note),
    );
  }

  /** Shows the hardware counters over all dispatches of a kernel. */
  private counters(kernel: NonNullable<Row["kernel"]>): HTMLElement | null {
    const { findings } = this.view.trace;
    if (!findings || isMissing(findings)) return null;
    const at = findings.kernel_rows.findIndex(({ kernels }) => kernels.includes(kernel.row));
    const row = namedKernels(findings)?.[at];
    if (!row) return null;
    const { event } = this.view;
    const names = new Set(findings.kernels?.flatMap(({ counters }) => counters?.means.map(({ name }) => name) ?? []));
    return counterDetails(row, event?.track.kind === "work" ? launchCounters(this.view.trace, event.track, event, names) : []);
  }

  /** Makes the fields of a kernel, and its source, which loads when it is opened. */
  private kernel(trace: number, kernel: NonNullable<Row["kernel"]>): HTMLElement {
    const code = h("pre", { class: "source", tabindex: "0" });
    const status = h("p", { class: "note" });
    const load = async (): Promise<void> => {
      if (code.textContent) return;
      status.textContent = "Loading…";
      try {
        const source = await this.source.source(trace, kernel.row);
        if (isMissing(source)) {
          status.textContent = source.missing;
          return;
        }
        status.textContent = `${source.language}, ${source.file}${source.cut ? "; cut to its beginning" : ""}`;
        code.textContent = source.text;
      } catch (error) {
        status.textContent = errorMessage(error);
      }
    };
    return h(
      "div",
      { class: "kernel" },
      this.fields(`Kernel ${kernel.name}`, kernel.fields),
      kernel.has_source ? h("details", { class: "code", ontoggle: () => void load() }, h("summary", {}, "Source"), status, code) : h("p", { class: "note" }, "The trace does not have the kernel's code."),
    );
  }

  /** Lists the buffer ranges that were bound for a dispatch; null where the row has no such list. */
  private bindings(row: Row): HTMLElement | null {
    if (!row.bindings) return null;
    if (isMissing(row.bindings)) return h("div", {}, h("h3", {}, "Buffers"), h("p", { class: "note" }, row.bindings.missing));
    return h(
      "div",
      {},
      h("h3", {}, "Buffers"),
      h(
        "ul",
        { class: "causes" },
        row.bindings.map((binding) =>
          h(
            "li",
            { title: `set ${binding.set}, binding ${binding.binding}, element ${binding.element}, from byte ${binding.offset_bytes}` },
            h("span", { class: "note" }, `${binding.set}.${binding.binding}`),
            h("span", { class: "clip" }, binding.buffer),
            h("span", { class: "note" }, binding.access),
            h("span", { class: "number" }, bytes(Number(binding.bytes))),
          ),
        ),
      ),
    );
  }

  /** Lists the fields with a value, and names the others as unknown. */
  private fields(title: string, fields: Field[]): HTMLElement {
    const unknown = fields.filter(({ value }) => value === null);
    return h(
      "div",
      {},
      h("h3", {}, title),
      h(
        "dl",
        { class: "fields" },
        fields
          .filter(({ value }) => value !== null)
          .flatMap(({ name, value, meaning }) => [h("dt", { title: meaning || null }, name.replaceAll("_", " ")), h("dd", {}, fieldValue(name, value))]),
      ),
      unknown.length > 0
        ? h("p", { class: "note unknown" }, "Unknown, or does not apply: ", unknown.map(({ name, meaning }, at) => h("span", { title: meaning || null }, `${at > 0 ? ", " : ""}${name.replaceAll("_", " ")}`)))
        : null,
    );
  }
}

/** Adds a readable form to long times and large sizes. */
export function fieldValue(name: string, value: string | null): string {
  if (value === null) return "unknown";
  const number = Number(value);
  if (value === "" || !Number.isFinite(number)) return value;
  if (/^(duration|busy)_ns$|_duration_ns$/.test(name) && number >= 1000) return `${value} (${duration(number)})`;
  if (/bytes$/.test(name) && number >= 1024) return `${value} (${bytes(number)})`;
  return value;
}

/** Returns the arrows between a row and the calls that submitted it, or the work that it runs. */
function submissionArrows(row: Row): Arrow[] {
  const self = arrowEnd(row);
  if (!self) return [];
  return row.links.flatMap((link): Arrow[] => {
    const other = arrowEnd(link);
    if (!other) return [];
    if (link.relation === "submitted-by") return [{ from: other, to: self, kind: "submits" }];
    if (link.relation === "runs") return [{ from: self, to: other, kind: "submits" }];
    return [];
  });
}

/** Returns the arrows from the work that a row depends on, and to the work that needs it. */
function dependencyArrows(row: Row, found: Neighbours): Arrow[] {
  const self = arrowEnd(row);
  if (!self) return [];
  const arrows = (others: Neighbour[], make: (other: Arrow["from"]) => Arrow): Arrow[] =>
    others.flatMap((other) => {
      const end = arrowEnd(other);
      return end ? [make(end)] : [];
    });
  return [
    ...arrows(found.predecessors, (from) => ({ from, to: self, kind: "depends" })),
    ...arrows(found.successors, (to) => ({ from: self, to, kind: "depends" })),
  ];
}

