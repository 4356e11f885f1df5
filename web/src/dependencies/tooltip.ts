// A tooltip about the node, edge or barrier of the dependency graph under the pointer.

import { fill, h } from "../dom.ts";
import type { DependencyNode } from "../generated/protocol.ts";
import { bytes, count, duration } from "../time/format.ts";
import { KINDS, NEEDS } from "./appearance.ts";
import type { Size } from "./camera.ts";
import { accessName, barrierText, buffersOf, nodeName, edgeText, orderText, sizeText } from "./descriptions.ts";
import type { DependencyGraph, Edge, Pick } from "./graph.ts";

const MAX_LISTED = 5;

/** The tooltip's element. `show` fills it, `at` places it, and `hide` hides it. */
export class GraphTooltip {
  readonly element = h("div", { class: "tooltip dependencies-tooltip", hidden: true, "aria-hidden": "true" });

  hide(): void {
    this.element.hidden = true;
  }

  /** Moves the tooltip beside a point of the canvas, to the side that has room. */
  at(x: number, y: number, { width, height }: Size): void {
    const { style } = this.element;
    style.left = x > width * 0.6 ? "auto" : `${x + 14}px`;
    style.right = x > width * 0.6 ? `${width - x + 10}px` : "auto";
    style.top = y > height * 0.55 ? "auto" : `${y + 16}px`;
    style.bottom = y > height * 0.55 ? `${height - y + 10}px` : "auto";
  }

  show(graph: DependencyGraph, pick: Pick): void {
    this.element.hidden = false;
    if (pick.kind === "node") {
      const node = graph.node(pick.id);
      if (node) fill(this.element, ofNode(graph, node));
    } else if (pick.kind === "edge") {
      fill(this.element, ofEdge(graph, graph.edges[pick.index]));
    } else {
      const barrier = graph.barriers[pick.index];
      fill(this.element, h("div", { class: "tooltip-name" }, `Barrier, ${barrierText(graph, barrier)}`), h("div", { class: "note" }, NEEDS[barrier.need].meaning));
    }
  }
}

function ofEdge(graph: DependencyGraph, edge: Edge): HTMLElement[] {
  return [
    h("div", { class: "tooltip-name" }, `${nodeName(graph.node(edge.from), edge.from)} → ${nodeName(graph.node(edge.to), edge.to)}`),
    h("div", {}, h("b", {}, edgeText(edge)), ` of ${buffersOf(edge)}`),
    h("div", { class: edge.hazard === "certain" ? "hazard" : "note" }, orderText(edge)),
    h("div", { class: "note" }, KINDS[edge.kind].meaning),
  ];
}

function ofNode(graph: DependencyGraph, node: DependencyNode): (HTMLElement | null)[] {
  const neighbours = (title: string, edges: readonly Edge[], end: "from" | "to"): HTMLElement | null => {
    const ids = [...new Set(edges.map((edge) => edge[end]))];
    if (ids.length === 0) return null;
    const names = ids.slice(0, MAX_LISTED).map((id) => nodeName(graph.node(id), id)).join(", ");
    return h("div", {}, h("span", { class: "note" }, `${title} `), names + (ids.length > MAX_LISTED ? ` and ${ids.length - MAX_LISTED} more` : ""));
  };
  const hidden = node.access_count - Math.min(MAX_LISTED, node.accesses.length);
  return [
    h("div", { class: "tooltip-name" }, nodeName(node, node.id)),
    node.labels.length > 0 ? h("div", { class: "note" }, node.labels.join(" / ")) : null,
    node.duration_ns === null ? null : h("div", {}, h("b", {}, duration(node.duration_ns))),
    h("div", {}, `reads ${sizeText(node.read_bytes, node.exact)}, writes ${sizeText(node.written_bytes, node.exact)}`),
    h(
      "ul",
      { class: "accesses" },
      node.accesses.slice(0, MAX_LISTED).map((access) =>
        h("li", {}, h("span", { class: "note" }, accessName(access)), h("span", { class: "clip" }, access.buffer), h("span", { class: "note" }, access.direction), h("span", { class: "number" }, `${access.reason === null ? "" : "≤ "}${bytes(Number(access.bytes))}`)),
      ),
    ),
    hidden > 0 ? h("div", { class: "note" }, `and ${count(hidden)} more`) : null,
    node.beyond ? h("div", { class: "hazard" }, `It may reach other memory: ${node.beyond}.`) : null,
    neighbours("waits for", graph.waitsFor(node.id), "from"),
    neighbours("needed by", graph.neededBy(node.id), "to"),
  ];
}
