// The panel with the dependency graph, its controls, its findings and the details of the picked node, edge or
// barrier. A graph may be too large for one answer, so that the panel shows a part of it. `open` loads a part,
// `grown` tells of a grown trace, and `forget` discards what is loaded. A hazard is a dependency that nothing orders.

import type { Appearance } from "../appearance.ts";
import { isMissing } from "../data/missing.ts";
import { fill, h, keepFocus } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { Dependencies, EdgeKind, Missing } from "../generated/protocol.ts";
import { keyName } from "../input/keys.ts";
import { LatestRequest } from "../latest-request.ts";
import { count, plural } from "../time/format.ts";
import { KINDS } from "./appearance.ts";
import { GraphCanvas } from "./canvas.ts";
import { PickDetails } from "./details.ts";
import { DependencyFindings } from "./findings-list.ts";
import { DependencyGraph, type Pick } from "./graph.ts";
import { GRAPH_KEYS } from "./keys.ts";
import type { ColumnsBy } from "./layout.ts";

/** A part of the dependencies of a trace or a capture; without fields, the beginning. */
export interface GraphPart {
  from_ns?: number;
  to_ns?: number;
  /** The first node of the part. */
  first?: number;
  /** A row such as `dispatches.17`, for the part around it. */
  around?: string;
}

/** What the panel asks for and tells. */
export interface DependenciesPanelCallbacks {
  /** Loads a part, or says why it cannot be had. */
  ask: (wanted: GraphPart) => Promise<Dependencies | Missing>;
  /** Shows a row in the timeline; null where there is no timeline. */
  go: ((table: string, row: number) => void) | null;
  /** Whether the source is a saved page, which has only one part. */
  file?: boolean;
  /** Called when the reader picks an element, or with null when the pick is cleared. */
  picked?: (pick: Pick | null) => void;
}

/** The two ways to lay out the graph, between which the reader chooses. */
const COLUMNS: readonly { columnsBy: ColumnsBy; name: string; meaning: string }[] = [
  { columnsBy: "dependencies", name: "needed", meaning: "A column has the commands that could run together. A command stands to the right of everything that it depends on." },
  { columnsBy: "barriers", name: "recorded", meaning: "A column has the commands that the recorded barriers let run together." },
];

/** The panel's element with all that it shows. */
export class DependenciesPanel {
  readonly element: HTMLElement;
  private readonly status = h("span", { role: "status" });
  private readonly notes = h("span", { class: "note clip" });
  /** The kinds of dependencies that are shown: read after write, write after read, write after write. */
  private readonly kinds = new Set<EdgeKind>(["RAW", "WAR", "WAW"]);
  private readonly canvas: GraphCanvas;
  private readonly details: PickDetails;
  private readonly findings: DependencyFindings;
  private readonly more = h("span", { class: "node-parts", hidden: true });
  private readonly columnButtons: HTMLButtonElement[];
  private readonly nothing = h("p", { class: "dependencies-nothing note", hidden: true });
  private readonly requests = new LatestRequest();
  private graph: DependencyGraph | null = null;
  private columnsBy: ColumnsBy = "dependencies";
  /** The part that was asked for last, as JSON; null where nothing is loaded or all was discarded. */
  private loaded: string | null = null;
  private wanted: GraphPart = {};
  private loading = false;
  /** Whether the shown or requested part is out of date, or could not be loaded. */
  private old = false;
  /** True inside of `keep`: then `open` loads no other part. */
  private keeps = false;

  constructor(
    appearance: Appearance,
    private readonly callbacks: DependenciesPanelCallbacks,
  ) {
    this.canvas = new GraphCanvas(appearance, this.kinds, {
      picked: (pick) => this.picked(pick),
      go: () => this.go(),
      finding: (forward) => this.nextFinding(forward),
    });
    this.details = new PickDetails({ pick: (pick) => this.pick(pick), go: callbacks.go });
    this.findings = new DependencyFindings((pick) => this.pick(pick));
    this.columnButtons = COLUMNS.map(({ columnsBy, name, meaning }) =>
      h("button", { type: "button", role: "radio", title: meaning, "data-columns": columnsBy, "aria-checked": String(columnsBy === this.columnsBy), onclick: () => this.layOutBy(columnsBy) }, name),
    );
    this.element = h(
      "div",
      { class: "panel dependencies-panel" },
      h(
        "div",
        { class: "panel-head" },
        this.status,
        this.more,
        this.notes,
        h("span", { class: "kinds" }, Object.entries(KINDS).map(([kind, { name, meaning }]) => this.kindButton(kind as EdgeKind, name, meaning))),
        h("span", { class: "choice", role: "radiogroup", "aria-label": "What columns stand for" }, h("span", { class: "note" }, "Order"), this.columnButtons),
        h("button", { type: "button", title: "Show everything (F)", onclick: () => this.canvas.act("fit") }, "Fit"),
      ),
      h("div", { class: "dependencies-body" }, h("div", { class: "dependencies-drawing" }, this.canvas.element, this.nothing), h("aside", { class: "dependencies-side", tabindex: "0", "aria-label": "Findings and details" }, this.details.element, this.findings.element, keysHint(callbacks.go !== null))),
    );
  }

  private kindButton(kind: EdgeKind, name: string, meaning: string): HTMLElement {
    const button = h(
      "button",
      {
        type: "button",
        class: `kind kind-${kind}`,
        title: `${name}: ${meaning} Click to show or hide them.`,
        "aria-pressed": "true",
        "data-kind": kind,
        onclick: () => {
          if (!this.kinds.delete(kind)) this.kinds.add(kind);
          button.setAttribute("aria-pressed", String(this.kinds.has(kind)));
          this.canvas.draw();
        },
      },
      h("span", { class: "line", "aria-hidden": "true" }),
      kind,
    );
    return button;
  }

  private layOutBy(columnsBy: ColumnsBy): void {
    this.columnsBy = columnsBy;
    for (const button of this.columnButtons) button.setAttribute("aria-checked", String(button.dataset.columns === columnsBy));
    this.canvas.layOutBy(columnsBy);
  }

  /** Loads a part unless it is loaded, and picks what `pick` returns; after loading only where nothing is picked. */
  async open(wanted: GraphPart, pick?: (graph: DependencyGraph) => Pick | null): Promise<void> {
    const key = JSON.stringify(wanted);
    if (this.loaded !== key && !this.keeps) {
      this.loaded = key;
      this.wanted = wanted;
      this.graph = null;
    } else {
      // The canvas had no size while the tab was hidden.
      this.canvas.draw();
      if (this.graph) this.pickFirst(this.graph, pick);
      if (!this.old || this.loading) return;
    }
    if (!this.graph) this.showStatus("Loading dependencies…");
    await this.ask(pick);
  }

  /** Loads and shows the wanted part, unless a later request overtakes it. A failure leaves the older graph. */
  private async ask(pick?: (graph: DependencyGraph) => Pick | null): Promise<void> {
    this.old = false;
    this.loading = true;
    const isLatest = this.requests.begin();
    let answer: Dependencies | Missing;
    try {
      answer = await this.callbacks.ask(this.wanted);
    } catch (error) {
      if (!isLatest()) return;
      this.loading = false;
      this.old = true;
      if (!this.graph) this.showStatus("", errorMessage(error));
      return;
    }
    if (!isLatest()) return;
    this.loading = false;
    if (isMissing(answer)) {
      this.graph = null;
      this.showStatus("", answer.missing);
    } else {
      const earlier = this.graph;
      this.graph = new DependencyGraph(answer);
      this.show(this.graph, earlier);
      if (!this.canvas.picked) this.pickFirst(this.graph, pick);
    }
    if (this.old && this.element.isConnected) void this.ask();
  }

  private pickFirst(graph: DependencyGraph, pick?: (graph: DependencyGraph) => Pick | null): void {
    const picked = pick?.(graph);
    if (picked) this.pick(picked);
  }

  /**
   * Discards the loaded part, because the selection has changed, or rows are numbered anew. The drawing stays until
   * the next `open`.
   */
  forget(): void {
    this.loaded = null;
    this.loading = false;
    this.requests.begin();
  }

  /** Reloads the part of a trace that has grown, after any request that is under way. The old part stays until the new one arrives. */
  grown(): void {
    this.old = true;
    if (this.loaded !== null && !this.loading && this.element.isConnected) void this.ask();
  }

  /** Returns whether the loaded part has a row. */
  has(table: string, row: number): boolean {
    return this.loaded !== null && this.graph?.at(table, row) !== undefined;
  }

  /** Runs an action that would load another part, and keeps the loaded one. */
  keep(what: () => void): void {
    this.keeps = true;
    what();
    this.keeps = false;
  }

  /** Shows a text in place of the graph, and with `missing` why there is none. */
  private showStatus(text: string, missing = ""): void {
    fill(this.status, text);
    fill(this.notes);
    this.more.hidden = true;
    this.nothing.hidden = missing === "";
    this.nothing.classList.toggle("missing", missing !== "");
    fill(this.nothing, missing);
    this.canvas.show(null, this.columnsBy);
    this.details.show(null, null);
    this.findings.show(null);
    this.publish();
  }

  /** Shows a graph; `earlier` is the same part before the trace grew. */
  private show(graph: DependencyGraph, earlier: DependencyGraph | null): void {
    const { answer } = graph;
    const shown = answer.nodes.length;
    const last = answer.first + shown;
    const all = shown === answer.node_count;
    this.nothing.hidden = true;
    fill(this.status, all ? plural(shown, "command", "commands") : `Commands ${count(answer.first)} to ${count(last - 1)} of ${count(answer.node_count)}`, `, ${plural(answer.edge_count, "dependency", "dependencies")}`);
    const remarks = [
      answer.edges_left_out > 0 ? `The ${count(answer.edges_left_out)} smallest of these dependencies are left out.` : "",
      answer.edges_outside > 0 ? `${plural(answer.edges_outside, "dependency leads", "dependencies lead")} out of this part.` : "",
      answer.cut_at !== null ? `There are too many dependencies: they are of the first ${count(answer.cut_at)} commands.` : "",
      ...answer.remarks,
    ];
    this.notes.title = remarks.filter(Boolean).join(" ");
    fill(this.notes, this.notes.title);
    this.showParts(answer);
    // Without recorded barriers there is nothing to lay out by them.
    const judged = answer.barrier_count > 0;
    for (const button of this.columnButtons) button.disabled = !judged;
    const picked = earlier && graph.again(this.canvas.picked, earlier);
    this.canvas.show(graph, judged ? this.columnsBy : "dependencies", earlier && { picked });
    keepFocus(this.details.element, () => this.details.show(graph, picked));
    keepFocus(this.findings.element, () => this.findings.show(graph, this.notes.title));
    this.publish();
  }

  /** Shows buttons for the parts before and after this one. */
  private showParts(answer: Dependencies): void {
    const shown = answer.nodes.length;
    const around = this.wanted.around !== undefined;
    this.more.hidden = shown === answer.node_count || this.callbacks.file === true;
    const to = (first: number): void => {
      const { from_ns, to_ns } = this.wanted;
      void this.open({ ...(around || from_ns === undefined ? {} : { from_ns, to_ns }), first: Math.max(0, first) });
    };
    const buttons = [
      h("button", { type: "button", disabled: answer.first === 0, onclick: () => to(answer.first - shown) }, "‹ before"),
      h("button", { type: "button", disabled: answer.first + shown >= answer.node_count, onclick: () => to(answer.first + shown) }, "after ›"),
    ];
    keepFocus(this.more, () => fill(this.more, buttons));
  }

  private publish(): void {
    const { dataset } = this.element;
    const { graph } = this;
    dataset.nodes = graph ? String(graph.nodes.length) : "";
    dataset.hazards = graph ? String(graph.answer.hazard_count) : "";
    dataset.needless = graph ? String(graph.answer.needless_count) : "";
    dataset.picked = pickText(this.canvas.picked);
  }

  /** Picks an element and moves it into sight. */
  pick(pick: Pick | null): void {
    this.canvas.pick(pick, true);
  }

  /** Picks the node of a row, if the loaded part has it, and returns whether it has. */
  pickRow(table: string, row: number): boolean {
    const id = this.graph?.at(table, row);
    if (id === undefined) return false;
    const { picked } = this.canvas;
    if (picked?.kind !== "node" || picked.id !== id) this.pick({ kind: "node", id });
    return true;
  }

  private picked(pick: Pick | null): void {
    this.details.show(this.graph, pick);
    this.element.dataset.picked = pickText(pick);
    // The details are at the top of the side column.
    if (pick) this.details.element.parentElement?.scrollTo?.(0, 0);
    this.callbacks.picked?.(pick);
  }

  /** Shows the row of the picked node in the timeline, if it has one. */
  private go(): void {
    const { picked } = this.canvas;
    if (picked?.kind !== "node") return;
    const place = this.graph?.node(picked.id)?.place;
    if (place) this.callbacks.go?.(place.table, place.row);
  }

  /**
   * Picks the next or previous hazard, possible ones included, or needless barrier, in order of execution; after the
   * last comes the first.
   */
  private nextFinding(forward: boolean): void {
    const { graph } = this;
    if (!graph) return;
    const found: { at: number; pick: Pick }[] = [
      ...graph.edges.filter(({ hazard }) => hazard !== null).map((edge) => ({ at: edge.to, pick: { kind: "edge", index: edge.index } as const })),
      ...graph.barriers.filter(({ need }) => need === "needless").map((barrier) => ({ at: barrier.position - 0.5, pick: { kind: "barrier", index: barrier.index } as const })),
    ].sort((a, b) => a.at - b.at);
    if (found.length === 0) return;
    const now = found.findIndex(({ pick }) => JSON.stringify(pick) === JSON.stringify(this.canvas.picked));
    const next = now < 0 ? (forward ? 0 : found.length - 1) : (now + (forward ? 1 : -1) + found.length) % found.length;
    this.pick(found[next].pick);
  }

  /** Draws with changed colours. */
  renew(): void {
    this.canvas.draw();
  }
}

/** Names a pick for tests, such as `node 17`; empty for none. */
function pickText(pick: Pick | null): string {
  return pick ? `${pick.kind} ${pick.kind === "node" ? pick.id : pick.index}` : "";
}

/** Makes the list of keys; the one that leads to the timeline only where there is one. */
function keysHint(timeline: boolean): HTMLElement {
  return h(
    "details",
    { class: "dependencies-keys" },
    h("summary", {}, "Keys and mouse"),
    h(
      "dl",
      { class: "fields" },
      GRAPH_KEYS.filter(({ action }) => timeline || action !== "go").flatMap(({ keys, meaning }) => [h("dt", {}, keys.map(keyName).join(" ")), h("dd", {}, meaning)]),
      h("dt", {}, "drag, wheel"),
      h("dd", {}, "move"),
      h("dt", {}, "Ctrl + wheel"),
      h("dd", {}, "zoom"),
    ),
  );
}
