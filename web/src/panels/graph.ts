// The panel of the data flow: it draws the graph of dependencies between the work of a range, with repeated work folded into one node.

import { graphlib, layout } from "@dagrejs/dagre";
import { isMissing } from "../data/missing.ts";
import type { DataSource } from "../data/source.ts";
import { fill, h, svg } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { FlowNode, Graph, GraphEdge, Missing } from "../generated/protocol.ts";
import { LatestRequest } from "../latest-request.ts";
import { bytes, count, duration, plural } from "../time/format.ts";
import type { View } from "../view.ts";

const NODE_PX = { width: 184, height: 58 };
/** The room below the nodes for edges that go back. */
const BACK_PX = 46;
/** How long the selection must rest before a request. */
const REST_MS = 250;

/** Draws the graph from left to right: a box is a node with its share of the time as a bar, a line is a dependency. A click on a box calls `go`. */
export class GraphPanel {
  readonly element = h("div", { class: "panel graph-panel" });
  private readonly head = h("p", { class: "panel-head" });
  private readonly canvas = h("div", { class: "graph" });
  /** The range of the shown or requested graph as text: "all" for the whole trace, empty for none. */
  private loaded = "";
  private readonly requests = new LatestRequest();

  private timer: ReturnType<typeof setTimeout> | undefined;
  private loading = false;
  /** Whether the shown or requested graph is out of date. */
  private old = false;

  constructor(
    private readonly view: View,
    private readonly source: DataSource,
    private readonly go: (node: FlowNode) => void,
  ) {
    fill(this.element, this.head, this.canvas);
  }

  /** Loads the graph of the selected range or the whole trace when the panel is opened. A saved page has the graph of the whole trace only. */
  async open(): Promise<void> {
    const range = this.source.file ? null : this.view.selection;
    const wanted = range ? `${range.from_ns}-${range.to_ns}` : "all";
    if (this.loaded === wanted && (!this.old || this.loading)) return;
    // The old graph of a trace that has grown stays until the new one arrives.
    if (this.loaded !== wanted) {
      fill(this.head, h("span", { role: "status" }, "Folding the graph…"));
      fill(this.canvas);
    }
    this.loaded = wanted;
    this.old = false;
    this.loading = true;
    const isLatest = this.requests.begin();
    try {
      const graph = await this.source.graph(this.view.trace.number, range ?? undefined);
      if (isLatest()) this.show(graph, range !== null);
    } catch (error) {
      if (!isLatest()) return;
      this.loaded = "";
      this.show({ missing: errorMessage(error) }, false);
    } finally {
      if (isLatest()) {
        this.loading = false;
        if (this.old && this.loaded !== "" && this.element.isConnected) void this.open();
      }
    }
  }

  /** Reloads the graph of a trace that has grown, after any request that is under way. Otherwise a trace that grows faster would never show one. */
  grown(): void {
    this.old = true;
    if (this.element.isConnected && !this.loading) void this.open();
  }

  /** Discards the graph and any answer under way, because the selection has changed or a live trace was completed. An open panel requests a new graph once the selection has rested. */
  forget(): void {
    this.loaded = "";
    this.loading = false;
    this.requests.begin();
    clearTimeout(this.timer);
    // The panel may be hidden by then.
    this.timer = setTimeout(() => this.element.isConnected && void this.open(), REST_MS);
  }

  private show(graph: Graph | Missing, part: boolean): void {
    if (isMissing(graph)) {
      this.element.dataset.nodes = "0";
      fill(this.head, h("span", { class: "missing" }, graph.missing));
      return;
    }
    this.element.dataset.nodes = String(graph.nodes.length);
    this.element.dataset.edges = String(graph.edges.length);
    const of_all = graph.considered < graph.dispatches ? `, the first ${count(graph.considered)} of ${count(graph.dispatches)} dispatches` : "";
    fill(
      this.head,
      h("span", {}, `${plural(graph.nodes.length, "node", "nodes")}, ${plural(graph.edges.length, "dependency", "dependencies")}${of_all}. `),
      h("span", { class: "note" }, `${graph.folded} ${this.source.file || part ? "" : "Select a range for a part of it."}`),
    );
    fill(this.canvas, this.drawing(graph));
  }

  private drawing(graph: Graph): SVGElement {
    const g = new graphlib.Graph();
    g.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56, marginx: 12, marginy: 12 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const node of graph.nodes) g.setNode(String(node.id), { ...NODE_PX });
    for (const edge of graph.edges) if (edge.from !== edge.to) g.setEdge(String(edge.from), String(edge.to));
    layout(g);
    const most_ns = Math.max(1, ...graph.nodes.map((node) => node.total_ns ?? 0));
    const { width = 100, height = 100 } = g.graph() as { width?: number; height?: number };
    const lines = graph.edges.map((edge) => this.edge(g, edge));
    const boxes = graph.nodes.map((node) => this.node(g.node(String(node.id)) as { x: number; y: number }, node, graph, most_ns));
    return svg("svg", { width: Math.ceil(width), height: Math.ceil(height) + BACK_PX, role: "group", "aria-label": "Folded graph of dependencies" }, lines, boxes);
  }

  private edge(g: InstanceType<typeof graphlib.Graph>, edge: GraphEdge): SVGElement {
    const title = svg("title", {}, `${edge.buffers.join(", ")}: ${bytes(Number(edge.bytes))}, ${plural(edge.count, "time", "times")}`);
    const from = g.node(String(edge.from)) as { x: number; y: number };
    const to = g.node(String(edge.to)) as { x: number; y: number };
    const x1 = from.x + NODE_PX.width / 2;
    const x2 = to.x - NODE_PX.width / 2;
    const width = (1 + Math.min(3, Math.log10(1 + edge.count))).toFixed(1);
    if (x2 > x1) {
      const bend = (x2 - x1) / 2;
      const d = `M${x1},${from.y} C${x1 + bend},${from.y} ${x2 - bend},${to.y} ${x2 - 5},${to.y}`;
      return svg("g", { class: "edge" }, title, svg("path", { d, "stroke-width": width }), svg("path", { class: "head", d: `M${x2},${to.y} l-7,-4 v8 z` }));
    }
    // Edges of repetitions go back below the nodes.
    const below = NODE_PX.height / 2;
    const depth = Math.max(from.y, to.y) + below + BACK_PX;
    const [from_x, to_x] = [from.x + 20, to.x - 20];
    const d = `M${from_x},${from.y + below} C${from_x},${depth} ${to_x},${depth} ${to_x},${to.y + below + 5}`;
    return svg("g", { class: "edge back" }, title, svg("path", { d, "stroke-width": width }), svg("path", { class: "head", d: `M${to_x},${to.y + below} l-4,7 h8 z` }));
  }

  private node(at: { x: number; y: number }, node: FlowNode, graph: Graph, most_ns: number): SVGElement {
    const [x, y] = [at.x - NODE_PX.width / 2, at.y - NODE_PX.height / 2];
    const lines = [node.name, node.label, plural(node.count, "execution", "executions"), node.total_ns === null ? "time unknown" : duration(node.total_ns)];
    const needs = graph.edges.filter((edge) => edge.to === node.id).length;
    const name = svg("text", { x: x + 10, y: y + 18, class: "node-name" }, shortened(node.name, 24));
    const figures = `${plural(node.count, "run", "runs")}, ${node.total_ns === null ? "time unknown" : `${duration(node.total_ns)} in all`}`;
    // The label tells nodes of one kernel apart by its first or its last part, so its middle is cut. The title has the whole path.
    const label = node.label && middleCut(node.label, 27);
    const go = (): void => this.go(node);
    return svg(
      "g",
      {
        class: `node node-${node.kind}`,
        tabindex: "0",
        role: "button",
        onclick: go,
        onkeydown: (event: Event) => {
          if ((event as KeyboardEvent).key === "Enter") go();
        },
      },
      svg("title", {}, [...lines, `depends on ${plural(needs, "node", "nodes")}`].filter(Boolean).join("\n")),
      svg("rect", { x, y, width: NODE_PX.width, height: NODE_PX.height, rx: 6, class: "box" }),
      svg("rect", { x: x + 1, y: y + NODE_PX.height - 4, width: Math.max(0, ((node.total_ns ?? 0) / most_ns) * (NODE_PX.width - 2)), height: 3, rx: 1.5, class: "cost" }),
      name,
      label ? svg("text", { x: x + 10, y: y + 33, class: "node-note" }, label) : null,
      svg("text", { x: x + 10, y: y + (label ? 48 : 36), class: "node-note" }, figures),
    );
  }
}

function middleCut(text: string, most: number): string {
  const half = Math.floor((most - 1) / 2);
  return text.length > most ? `${text.slice(0, half)}…${text.slice(-half)}` : text;
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
