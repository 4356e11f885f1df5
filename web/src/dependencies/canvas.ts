// The canvas of a dependency graph: draws it, and handles the camera (which part is visible), the pointer and the
// keys. The pick is the node, edge or barrier that the reader has chosen. `show` sets the graph, and `draw` is called
// after every change.

import type { Appearance } from "../appearance.ts";
import { h } from "../dom.ts";
import type { EdgeKind } from "../generated/protocol.ts";
import { NodeColours } from "./appearance.ts";
import { type Camera, fitted, kept, opening, revealing, upright, zoomedAt } from "./camera.ts";
import { curveOf, distance } from "./curve.ts";
import { type DependencyGraph, type Pick, strongest } from "./graph.ts";
import { type GraphAction, graphAction } from "./keys.ts";
import { type ColumnsBy, type Layout, layoutOf, NODE } from "./layout.ts";
import { GraphMinimap } from "./minimap.ts";
import { GraphPainter } from "./paint.ts";
import { GraphTooltip } from "./tooltip.ts";

/** The least movement that makes a press a drag. */
const CLICK_PX = 4;
/** The greatest distance from an edge or a barrier at which it is pointed at. */
const NEAR_PX = 6;
/** The least height at which there is room for the minimap. */
const MINIMAP_FROM_PX = 200;
/** The number of draw times that are kept for the published figures. */
const MAX_DRAW_TIMES = 240;

/** What the reader does on the canvas. */
export interface GraphCanvasCallbacks {
  /** Called after another element was picked, or with null after the pick was cleared. */
  picked: (pick: Pick | null) => void;
  /** Shows the picked node in the timeline. */
  go: () => void;
  /** Picks the next finding, which is a hazard or a needless barrier, or the one before. */
  finding: (forward: boolean) => void;
}

/** The element with the canvas, its tooltip and the minimap below. */
export class GraphCanvas {
  readonly canvas = h("canvas", {
    class: "dependencies-canvas",
    tabindex: "0",
    role: "application",
    "aria-label": "Graph of dependencies. Arrow keys go from command to command. What is selected is described beside it.",
  });
  private readonly tooltip = new GraphTooltip();
  private readonly minimap: GraphMinimap;
  private readonly view = h("div", { class: "dependencies-view" }, this.canvas, this.tooltip.element);
  readonly element = h("div", { class: "dependencies-canvas-area" }, this.view);
  private readonly painter: GraphPainter;
  private graph: DependencyGraph | null = null;
  private layout: Layout | null = null;
  private nodeColours: NodeColours | null = null;
  private camera: Camera | null = null;
  private hovered: Pick | null = null;
  /** The browser's number of the frame that will be drawn; 0 for none. */
  private scheduled = 0;
  private readonly drawn_ms: number[] = [];
  picked: Pick | null = null;

  constructor(
    private readonly appearance: Appearance,
    /** The kinds of edges that are shown. Hazards are shown whatever their kind. */
    private readonly kinds: ReadonlySet<EdgeKind>,
    private readonly callbacks: GraphCanvasCallbacks,
  ) {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("This browser cannot draw on a canvas.");
    this.painter = new GraphPainter(context);
    this.minimap = new GraphMinimap(appearance, (x, y) => this.centre(x, y));
    this.element.append(this.minimap.canvas);
    new ResizeObserver(() => this.draw()).observe(this.view);
    this.listen();
  }

  /** Shows a graph from its beginning. A graph that has grown since it was shown keeps its visible part, with the given pick. */
  show(graph: DependencyGraph | null, columnsBy: ColumnsBy, grown: { picked: Pick | null } | null = null): void {
    this.graph = graph;
    this.layout = graph && layoutOf(graph, columnsBy);
    this.nodeColours = graph && new NodeColours(graph);
    this.minimap.forget();
    this.minimap.canvas.hidden = true;
    if (!grown) this.camera = null;
    this.hovered = null;
    this.picked = grown?.picked ?? null;
    this.tooltip.hide();
    this.draw();
  }

  /** Lays out the same graph in other columns; the pick stays. */
  layOutBy(columnsBy: ColumnsBy): void {
    if (!this.graph) return;
    this.layout = layoutOf(this.graph, columnsBy);
    this.minimap.forget();
    this.camera = null;
    this.drawNow();
    if (this.picked) this.reveal(this.picked);
    this.draw();
  }

  /** The vertical scale. */
  private get high(): number {
    return this.camera && this.layout ? upright(this.camera, this.layout, this.size) : 1;
  }

  private get size(): { width: number; height: number } {
    return { width: this.view.clientWidth, height: this.view.clientHeight };
  }

  /** Draws at the next frame. */
  draw(): void {
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.drawNow();
    });
  }

  /** Draws the graph and the minimap, or only the background where there is no graph. */
  private drawNow(): void {
    const { canvas, graph, layout, nodeColours } = this;
    const { width, height } = this.size;
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    if (!graph || !layout || !nodeColours) {
      delete canvas.dataset.nodes;
      const context = canvas.getContext("2d");
      context?.setTransform(1, 0, 0, 1, 0, 0);
      if (context) context.fillStyle = this.appearance.colours.background;
      context?.fillRect(0, 0, wide, high);
      return;
    }
    const from = performance.now();
    this.camera ??= opening(layout, { width, height });
    this.painter.draw({ graph, layout, nodeColours, kinds: this.kinds, picked: this.picked, hovered: this.hovered }, this.camera, { width, height }, ratio, this.appearance.colours, this.appearance.theme);
    if (this.element.clientHeight >= MINIMAP_FROM_PX) this.minimap.draw(graph, layout, nodeColours, this.camera, { width, height }, ratio);
    else this.minimap.canvas.hidden = true;
    this.drawn_ms.push(performance.now() - from);
    if (this.drawn_ms.length > MAX_DRAW_TIMES) this.drawn_ms.shift();
    this.publish(graph);
  }

  /** Publishes the state for tests and measurements. */
  private publish(graph: DependencyGraph): void {
    const { dataset } = this.canvas;
    dataset.nodes = String(graph.nodes.length);
    dataset.edges = String(graph.edges.length);
    dataset.drawMs = (this.drawn_ms.at(-1) ?? 0).toFixed(2);
    dataset.scale = (this.camera?.scale ?? 0).toFixed(4);
    dataset.from = (this.camera?.x ?? 0).toFixed(1);
    dataset.width = (this.layout?.width ?? 0).toFixed(1);
    const at = this.picked?.kind === "node" ? this.placeOf(this.picked.id) : null;
    dataset.at = at ? `${at.x.toFixed(1)} ${at.y.toFixed(1)}` : "";
    dataset.picked = this.picked ? `${this.picked.kind} ${this.picked.kind === "node" ? this.picked.id : this.picked.index}` : "";
  }

  /** Returns the centre of a node on the canvas, in pixels; null for a node that is not in the graph. */
  placeOf(id: number): { x: number; y: number } | null {
    const placed = this.layout?.nodes.get(id);
    if (!placed || !this.camera) return null;
    const { x, y, scale } = this.camera;
    return { x: (placed.x + NODE.width / 2 - x) * scale, y: (placed.y + NODE.height / 2 - y) * this.high };
  }

  /** Picks an element and tells of it; with `reveal` the camera moves to it. */
  pick(pick: Pick | null, reveal = false): void {
    this.picked = pick;
    if (pick && reveal) this.reveal(pick);
    this.callbacks.picked(pick);
    this.draw();
  }

  /** Moves the camera so that the picked element is visible. */
  reveal(pick: Pick): void {
    const box = this.boxOf(pick);
    const { width, height } = this.size;
    if (!box || !this.layout || width === 0) return;
    this.camera = revealing(this.camera ?? opening(this.layout, this.size), box, this.layout, { width, height });
    this.draw();
  }

  /** Returns the part of the drawing that an element covers; for an edge that of its two nodes. */
  private boxOf(pick: Pick): { x: number; y: number; width: number; height: number } | null {
    const { graph, layout } = this;
    if (!graph || !layout) return null;
    if (pick.kind === "barrier") {
      const mark = layout.marks.find(({ barriers }) => barriers.some(({ index }) => index === pick.index));
      return mark ? { x: mark.x - 60, y: mark.y - 20, width: 120, height: mark.height + 30 } : null;
    }
    const ids = pick.kind === "node" ? [pick.id] : [graph.edges[pick.index].from, graph.edges[pick.index].to];
    const nodes = ids.flatMap((id) => layout.nodes.get(id) ?? []);
    if (nodes.length === 0) return null;
    const x = Math.min(...nodes.map((node) => node.x));
    const y = Math.min(...nodes.map((node) => node.y));
    return { x, y, width: Math.max(...nodes.map((node) => node.x)) + NODE.width - x, height: Math.max(...nodes.map((node) => node.y)) + NODE.height - y };
  }

  // ---- pointer ----

  /**
   * Returns the element at a point of the canvas: a node, otherwise a barrier, otherwise the nearest edge; null for
   * none nearby.
   */
  private at(px: number, py: number): Pick | null {
    const { graph, layout, camera } = this;
    if (!graph || !layout || !camera) return null;
    const { high } = this;
    const [x, y] = [px / camera.scale + camera.x, py / high + camera.y];
    for (const { node, x: left, y: top } of layout.nodes.values()) {
      if (x >= left && x <= left + NODE.width && y >= top && y <= top + NODE.height) return { kind: "node", id: node.id };
    }
    const near = NEAR_PX / camera.scale;
    for (const mark of layout.marks) {
      if (Math.abs(x - mark.x) <= near && y >= mark.y - 18 && y <= mark.y + mark.height) return { kind: "barrier", index: mark.barriers[0].index };
    }
    let best: Pick | null = null;
    let least = near;
    for (const edge of graph.edges) {
      if (!this.kinds.has(edge.kind) && edge.hazard !== "certain") continue;
      const [from, to] = [layout.nodes.get(edge.from), layout.nodes.get(edge.to)];
      if (!from || !to) continue;
      const away = distance(curveOf(from, to, edge.kind), x, y, least, high / camera.scale);
      if (away < least) [least, best] = [away, { kind: "edge", index: edge.index }];
    }
    return best;
  }

  /** Shows the tooltip of an element under the pointer, or hides it for null. */
  private hover(pick: Pick | null, event?: PointerEvent): void {
    if (JSON.stringify(pick) !== JSON.stringify(this.hovered)) {
      this.hovered = pick;
      this.canvas.classList.toggle("pointing", pick !== null);
      if (pick && this.graph) this.tooltip.show(this.graph, pick);
      else this.tooltip.hide();
      this.draw();
    }
    if (pick && event) this.tooltip.at(event.offsetX, event.offsetY, this.size);
  }

  /** Moves the camera to a point of the drawing; vertically only where the drawing is higher than the screen. */
  private centre(x: number, y: number): void {
    const { width, height } = this.size;
    if (!this.camera || !this.layout) return;
    const { scale } = this.camera;
    const { high } = this;
    const low = this.layout.height * high <= height;
    this.move({ scale, x: x - width / scale / 2, y: low ? this.camera.y : y - height / high / 2 });
  }

  private move(camera: Camera): void {
    if (!this.layout) return;
    this.camera = kept(camera, this.layout, this.size);
    this.draw();
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!this.camera || !this.layout) return;
        event.preventDefault();
        const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
        const [dx, dy] = [event.deltaX * pixels, event.deltaY * pixels];
        if (event.ctrlKey || event.metaKey) {
          // Browsers report a pinch on a trackpad as small wheel steps with Control.
          const strength = Math.abs(dy) < 30 ? 0.01 : 0.0025;
          return this.move(zoomedAt(this.camera, event.offsetX, event.offsetY, Math.exp(-dy * strength), this.layout, this.size));
        }
        const sideways = event.shiftKey && dx === 0;
        this.move({ ...this.camera, x: this.camera.x + (sideways ? dy : dx) / this.camera.scale, y: this.camera.y + (sideways ? 0 : dy) / this.high });
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => this.drag(event));
    canvas.addEventListener("pointermove", (event) => event.buttons === 0 && this.hover(this.at(event.offsetX, event.offsetY), event));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", (event) => {
      const pick = this.at(event.offsetX, event.offsetY);
      if (pick?.kind === "node") this.callbacks.go();
      else if (!pick && this.camera && this.layout) this.move(zoomedAt(this.camera, event.offsetX, event.offsetY, 1.8, this.layout, this.size));
    });
    canvas.addEventListener("keydown", (event) => {
      const action = graphAction(event);
      if (!action || !this.graph) return;
      event.preventDefault();
      event.stopPropagation();
      this.act(action);
    });
  }

  /** Follows a press: it moves the graph, or picks what is under it where the pointer has hardly moved. */
  private drag(event: PointerEvent): void {
    if (event.button > 1 || !this.camera) return;
    const { canvas, camera, high } = this;
    const start = { x: event.offsetX, y: event.offsetY };
    let moved = false;
    canvas.setPointerCapture(event.pointerId);
    const move = (event: PointerEvent): void => {
      const [dx, dy] = [event.offsetX - start.x, event.offsetY - start.y];
      if (!moved && Math.hypot(dx, dy) < CLICK_PX) return;
      if (!moved) this.hover(null);
      moved = true;
      canvas.classList.add("panning");
      this.move({ ...camera, x: camera.x - dx / camera.scale, y: camera.y - dy / high });
    };
    const up = (event: PointerEvent): void => {
      canvas.removeEventListener("pointermove", move);
      canvas.removeEventListener("pointerup", up);
      canvas.removeEventListener("pointercancel", up);
      canvas.classList.remove("panning");
      if (!moved && event.type !== "pointercancel") this.pick(this.at(event.offsetX, event.offsetY));
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
  }

  // ---- keys ----

  act(action: GraphAction): void {
    const { camera, layout } = this;
    if (!camera || !layout) return;
    const { width, height } = this.size;
    const zoom = (by: number): void => this.move(zoomedAt(camera, width / 2, height / 2, by, layout, { width, height }));
    const pan = (x: number, y: number): void => this.move({ ...camera, x: camera.x + (x * width) / camera.scale, y: camera.y + (y * height) / this.high });
    const actions: Record<GraphAction, () => void> = {
      earlier: () => this.neighbour(false),
      later: () => this.neighbour(true),
      previous: () => this.step(-1),
      next: () => this.step(1),
      "next-finding": () => this.callbacks.finding(true),
      "previous-finding": () => this.callbacks.finding(false),
      "zoom-in": () => zoom(1 / 0.6),
      "zoom-out": () => zoom(0.6),
      left: () => pan(-0.2, 0),
      right: () => pan(0.2, 0),
      up: () => pan(0, -0.2),
      down: () => pan(0, 0.2),
      fit: () => this.move(fitted(layout, { width, height })),
      go: () => this.callbacks.go(),
      clear: () => this.pick(null),
    };
    actions[action]();
  }

  /** Picks the node at the other end of the strongest edge from the picked node, or the end of a picked edge. */
  private neighbour(later: boolean): void {
    const { picked, graph } = this;
    if (!graph) return;
    if (picked?.kind === "edge") return this.pick({ kind: "node", id: graph.edges[picked.index][later ? "to" : "from"] }, true);
    if (picked?.kind !== "node") return this.step(later ? 1 : -1);
    const edge = strongest(later ? graph.neededBy(picked.id) : graph.waitsFor(picked.id));
    if (edge) this.pick({ kind: "node", id: later ? edge.to : edge.from }, true);
  }

  /** Picks the node that is `by` places later in order of execution; without a picked node the first or the last. */
  private step(by: number): void {
    const { picked, graph } = this;
    if (!graph || graph.nodes.length === 0) return;
    const first = graph.answer.first;
    const last = first + graph.nodes.length - 1;
    const id = picked?.kind === "node" ? picked.id + by : picked?.kind === "barrier" ? graph.barriers[picked.index].position - (by < 0 ? 1 : 0) : by > 0 ? first : last;
    if (id >= first && id <= last) this.pick({ kind: "node", id }, true);
  }
}
