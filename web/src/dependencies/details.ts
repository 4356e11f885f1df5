// The details of the picked node, edge or barrier of a dependency graph, with links to its neighbours.

import { fill, h } from "../dom.ts";
import type { DependencyNode } from "../generated/protocol.ts";
import { bytes, count, duration, plural } from "../time/format.ts";
import { KINDS, NEEDS } from "./appearance.ts";
import { accessName, barrierText, buffersOf, nodeName, edgeText, orderText, sizeText } from "./descriptions.ts";
import type { Barrier, DependencyGraph, Edge, Pick } from "./graph.ts";

/** The most neighbours that are listed on each side. */
const MAX_NEIGHBOURS = 30;

/** What the reader does in the details. */
export interface PickDetailsCallbacks {
  /** Picks a neighbour, or nothing for null. */
  pick: (pick: Pick | null) => void;
  /** Shows a row in the timeline; null where there is no timeline. */
  go: ((table: string, row: number) => void) | null;
}

/** The section with the details, which is hidden while nothing is picked. */
export class PickDetails {
  readonly element = h("section", { class: "dependencies-details", "aria-label": "Selected", "aria-live": "polite", hidden: true });

  constructor(private readonly callbacks: PickDetailsCallbacks) {}

  /** Shows an element of a graph, or hides the details where either is null. */
  show(graph: DependencyGraph | null, pick: Pick | null): void {
    this.element.hidden = graph === null || pick === null;
    if (!graph || !pick) return fill(this.element);
    if (pick.kind === "node") {
      const node = graph.node(pick.id);
      if (node) this.node(graph, node);
    } else if (pick.kind === "edge") {
      this.edge(graph, graph.edges[pick.index]);
    } else {
      this.barrier(graph, graph.barriers[pick.index]);
    }
  }

  /** Makes the heading, with the button that clears the pick. */
  private head(what: string, name: string, more: HTMLElement | null = null): HTMLElement {
    return h(
      "header",
      {},
      h("h2", { title: name }, h("span", { class: "note" }, what), h("span", { class: "name" }, name)),
      more,
      h("button", { type: "button", onclick: () => this.callbacks.pick(null), "aria-label": "Close the details" }, "✕"),
    );
  }

  /** Makes a button that picks a node; only its id where the loaded part does not have it. */
  private link(graph: DependencyGraph, id: number): HTMLElement {
    const node = graph.node(id);
    if (!node) return h("span", {}, String(id));
    return h("button", { type: "button", class: "link clip", title: node.name, onclick: () => this.callbacks.pick({ kind: "node", id }) }, nodeName(node, id));
  }

  private node(graph: DependencyGraph, node: DependencyNode): void {
    const { go } = this.callbacks;
    const { place } = node;
    const submission = graph.submissions.get(node.submission);
    const where = submission?.queue ? `submission ${submission.name ?? node.submission} on ${submission.queue}` : "of an unknown submission";
    const reasons = [...new Set(node.accesses.flatMap(({ reason }) => (reason === null ? [] : [reason])))];
    fill(
      this.element,
      this.head(`${node.kind} ${node.id}`, node.name, go && place ? h("button", { type: "button", class: "to-timeline", title: "Show it in the timeline (Enter)", onclick: () => go(place.table, place.row) }, "Timeline") : null),
      h("p", {}, h("span", { class: "note" }, [node.duration_ns === null ? "" : duration(node.duration_ns), where, graph.isCritical(node.id) ? "on the critical path" : ""].filter(Boolean).join(", "))),
      node.labels.length > 0 ? h("p", { class: "note" }, node.labels.join(" / ")) : null,
      h("p", {}, "Reads ", h("b", {}, sizeText(node.read_bytes, node.exact)), ", writes ", h("b", {}, sizeText(node.written_bytes, node.exact)), "."),
      node.beyond ? h("p", { class: "problem" }, `It may reach other memory: ${node.beyond}.`) : null,
      reasons.length > 0 ? h("p", { class: "note" }, `At most, since ${reasons.join("; ")}.`) : h("p", { class: "note" }, "Exactly these bytes."),
      this.accesses(node),
      this.neighbours(graph, "Waits for", graph.waitsFor(node.id), "from", "Nothing in the window."),
      this.neighbours(graph, "Needed by", graph.neededBy(node.id), "to", "Nothing in the window."),
    );
  }

  private accesses(node: DependencyNode): HTMLElement {
    const more = node.access_count - node.accesses.length;
    return h(
      "div",
      {},
      h("h3", {}, "Buffers"),
      h(
        "ul",
        { class: "causes" },
        node.accesses.map((access) =>
          h(
            "li",
            { title: access.reason ?? "exactly these bytes" },
            h("span", { class: "note" }, accessName(access)),
            h("span", { class: "clip" }, access.buffer),
            h("span", { class: "note" }, access.direction),
            h("span", { class: "number" }, `${access.reason === null ? "" : "≤ "}${bytes(Number(access.bytes))}`),
          ),
        ),
      ),
      more > 0 ? h("p", { class: "note" }, `and ${plural(more, "more", "more")}`) : null,
    );
  }

  private neighbours(graph: DependencyGraph, title: string, edges: readonly Edge[], end: "from" | "to", none: string): HTMLElement {
    const sorted = [...edges].sort((a, b) => Number(b.hazard === "certain") - Number(a.hazard === "certain") || b.size - a.size);
    return h(
      "div",
      { "data-relation": end },
      h("h3", {}, title, h("span", { class: "note" }, edges.length > 0 ? ` ${count(edges.length)}` : "")),
      edges.length === 0 ? h("p", { class: "note" }, none) : null,
      h(
        "ul",
        { class: "neighbours" },
        sorted.slice(0, MAX_NEIGHBOURS).map((edge) =>
          h(
            "li",
            {},
            this.link(graph, edge[end]),
            h(
              "button",
              { type: "button", class: "link note clip", title: `${edgeText(edge)}: ${buffersOf(edge)}`, onclick: () => this.callbacks.pick({ kind: "edge", index: edge.index }) },
              h("span", { class: `kind kind-${edge.kind}` }, edge.kind),
              ` ${sizeText(edge.bytes, edge.exact)}: ${buffersOf(edge)}`,
            ),
            edge.hazard ? h("span", { class: "hazard" }, edge.hazard === "certain" ? "hazard" : "maybe a hazard") : null,
          ),
        ),
      ),
      edges.length > MAX_NEIGHBOURS ? h("p", { class: "note" }, `and ${edges.length - MAX_NEIGHBOURS} more`) : null,
    );
  }

  private edge(graph: DependencyGraph, edge: Edge): void {
    fill(
      this.element,
      this.head(`${edge.kind}: ${KINDS[edge.kind].name}`, `${nodeName(graph.node(edge.from), edge.from)} → ${nodeName(graph.node(edge.to), edge.to)}`),
      h("p", { class: "big" }, sizeText(edge.bytes, edge.exact)),
      h("p", { class: edge.hazard === "certain" ? "problem" : "" }, `${orderText(edge)[0].toUpperCase()}${orderText(edge).slice(1)}.`),
      h("p", { class: "note" }, KINDS[edge.kind].meaning),
      h("h3", {}, "Of"),
      h("p", {}, buffersOf(edge)),
      h("h3", {}, "Between"),
      h("ul", { class: "neighbours" }, h("li", {}, this.link(graph, edge.from)), h("li", {}, this.link(graph, edge.to))),
    );
  }

  private barrier(graph: DependencyGraph, barrier: Barrier): void {
    const { before, after } = graph.around(barrier);
    fill(
      this.element,
      this.head("barrier", barrierText(graph, barrier)),
      h("p", { class: barrier.need === "needless" ? "problem" : "" }, NEEDS[barrier.need].meaning),
      barrier.reason ? h("p", { class: "note" }, `Why: ${barrier.reason}.`) : null,
      h("p", { class: "note" }, `Submission ${barrier.submission}, command ${barrier.command} of its command buffer.`),
      before || after ? h("h3", {}, "Between") : null,
      h("ul", { class: "neighbours" }, [before, after].map((node) => (node ? h("li", {}, this.link(graph, node.id)) : null))),
    );
  }
}
