// Lists the findings about a dependency graph: hazards (dependencies that nothing orders), needless barriers, the
// critical path (the longest chain of dependencies), and the largest dependencies by bytes.

import { fill, h } from "../dom.ts";
import { count, duration, plural } from "../time/format.ts";
import { barrierText, nodeName, sizeText } from "./descriptions.ts";
import type { DependencyGraph, Edge, Pick } from "./graph.ts";

/** The most rows of a list. */
const MAX_ROWS = 25;

/** The section with the lists; `pick` is called for the entry that the reader clicks. */
export class DependencyFindings {
  readonly element = h("section", { class: "dependencies-findings", "aria-label": "Findings" });

  constructor(private readonly pick: (pick: Pick) => void) {}

  /** Shows the findings, or nothing for null. The rows are those of `graph`, which may be a part; the counts are those of the whole. `remarks` are sentences about the whole graph, such as about edges that are left out. */
  show(graph: DependencyGraph | null, remarks = ""): void {
    if (!graph) return fill(this.element);
    const { answer } = graph;
    const elsewhere = (all: number, here: number): string => (all > here ? ` ${count(all)}, ${count(here)} of them in this part` : ` ${count(all)}`);
    const certain = graph.edges.filter(({ hazard }) => hazard === "certain");
    const possible = graph.edges.filter(({ hazard }) => hazard === "possible");
    const needless = graph.barriers.filter(({ need }) => need === "needless");
    const largest = [...graph.edges].sort((a, b) => b.size - a.size || a.index - b.index);
    const unknown = answer.unknown === null ? null : `Unknown: ${answer.unknown}.`;
    fill(
      this.element,
      remarks === "" ? null : h("p", { class: "note remarks" }, remarks),
      this.list("Hazards", elsewhere(answer.hazard_count, certain.length), certain.map((edge) => this.edge(graph, edge)), "hazards", unknown ?? none(graph, possible.length)),
      possible.length > 0 ? this.list("Possible hazards", elsewhere(answer.possible_hazard_count, possible.length), possible.map((edge) => this.edge(graph, edge)), "possible", "") : null,
      this.list(
        "Needless barriers",
        elsewhere(answer.needless_count, needless.length),
        needless.map((barrier) => h("li", {}, this.button({ kind: "barrier", index: barrier.index }, barrierText(graph, barrier).replace(/^needless: /, "")))),
        "needless",
        unknown ?? (answer.barrier_count === 0 ? "None: there are no barriers." : `None among ${plural(answer.barrier_count, "barrier", "barriers")}.`),
      ),
      this.path(graph),
      this.list("Largest dependencies", "", largest.map((edge) => this.edge(graph, edge)), "largest", "None."),
    );
  }

  /** Makes a list of at most `MAX_ROWS` rows. `note` follows the title, and `none` stands in place of rows. */
  private list(title: string, note: string, rows: HTMLElement[], name: string, none: string): HTMLElement {
    return h(
      "div",
      { "data-list": name },
      h("h2", { class: "part" }, title, rows.length > 0 ? h("span", { class: "note" }, note) : null),
      rows.length === 0 ? h("p", { class: "note" }, none) : h("ul", { class: "neighbours" }, rows.slice(0, MAX_ROWS)),
      rows.length > MAX_ROWS ? h("p", { class: "note" }, `and ${count(rows.length - MAX_ROWS)} more`) : null,
    );
  }

  private button(pick: Pick, text: string): HTMLElement {
    return h("button", { type: "button", class: "link clip", title: text, onclick: () => this.pick(pick) }, text);
  }

  private edge(graph: DependencyGraph, edge: Edge): HTMLElement {
    const name = `${nodeName(graph.node(edge.from), edge.from)} → ${nodeName(graph.node(edge.to), edge.to)}`;
    return h("li", {}, this.button({ kind: "edge", index: edge.index }, name), h("span", { class: "note clip" }, h("span", { class: `kind kind-${edge.kind}` }, edge.kind), ` ${sizeText(edge.bytes, edge.exact)}`));
  }

  /** Describes the critical path; null where there is none. */
  private path({ answer }: DependencyGraph): HTMLElement | null {
    const path = answer.critical_path;
    if (!path) return null;
    const length = (value: string): string => (path.unit === "ns" ? duration(Number(value)) : plural(Number(value), "command", "commands"));
    const first = path.nodes[0];
    return h(
      "div",
      { "data-list": "critical" },
      h("h2", { class: "part" }, "Critical path"),
      h(
        "p",
        {},
        "The longest chain takes ",
        h("b", {}, length(path.length)),
        ` of ${length(path.work)}`,
        path.unit === "ns" ? ` in ${plural(path.node_count, "command", "commands")}` : "",
        path.parallelism === null ? "." : [`; without other limits, on average `, h("b", {}, path.parallelism.toFixed(2)), " could run at the same time."],
      ),
      first === undefined ? null : h("button", { type: "button", class: "link", onclick: () => this.pick({ kind: "node", id: first }) }, "Go to its beginning"),
    );
  }
}

/** Returns the sentence for a graph without certain hazards, which claims no more than is known. */
function none({ edges, answer }: DependencyGraph, possible: number): string {
  const unknown = edges.filter(({ ordered_by }) => ordered_by === "unknown").length;
  if (unknown > 0) return `None found. Of ${plural(unknown, "dependency", "dependencies")} it is not known what orders ${unknown === 1 ? "it" : "them"}: the host may have waited in between.`;
  if (possible > 0) return "None is certain.";
  return answer.nodes.length === answer.node_count && answer.edges_left_out === 0 ? "None: every dependency of the window is ordered." : "None found.";
}
