// Draws a dependency graph on a canvas. `GraphPainter.draw` takes the graph with its layout, which is in units of the
// drawing, and the camera, which scales it to pixels; the private methods then draw in pixels.

import type { Colours, Theme } from "../draw/palette.ts";
import { Texts } from "../draw/texts.ts";
import type { EdgeKind } from "../generated/protocol.ts";
import { bytes, count, duration } from "../time/format.ts";
import { type GraphColours, graphColours, isDispatch, type NodeColours } from "./appearance.ts";
import { type Camera, type Size, upright } from "./camera.ts";
import { type Curve, curveOf, pointOn } from "./curve.ts";
import type { DependencyGraph, Edge, Pick } from "./graph.ts";
import { type SubmissionFrame, type Layout, type BarrierMark, NODE, type PlacedNode } from "./layout.ts";

const FONT = 'system-ui, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif';
/** The least widths of nodes that show figures, and a name. */
const FIGURES_PX = 96;
const NAME_PX = 30;
/** The least scale for dashed edges: smaller dashes blur, and take long to draw. */
const DASHED_SCALE = 0.22;
/** The least scale at which barriers other than needless ones are drawn. */
const MARKS_SCALE = 0.12;
/** The opacity of edges that do not touch the picked element. */
const FADED_ALPHA = 0.16;
/** The number of columns from which an edge counts as long. */
const FAR_COLUMNS = 3;

/** All that a drawing depends on besides camera and colours. */
export interface Scene {
  graph: DependencyGraph;
  layout: Layout;
  nodeColours: NodeColours;
  /** The kinds of edges that are drawn. Certain hazards are drawn whatever their kind. */
  kinds: ReadonlySet<EdgeKind>;
  picked: Pick | null;
  hovered: Pick | null;
}

/** A word in a rounded frame, whose left edge is at `x` and middle at `y`. */
interface Badge {
  text: string;
  x: number;
  y: number;
  colour: string;
  alpha: number;
}

/** Draws graphs on one canvas. Its fields hold what `draw` was given last. */
export class GraphPainter {
  private readonly texts: Texts;
  private colours!: Colours;
  private own!: GraphColours;
  private scale = 1;
  /** The vertical scale. */
  private high = 1;
  private x = 0;
  private y = 0;
  private screen: Size = { width: 0, height: 0 };
  /** Words that are drawn over everything else. */
  private readonly badges: Badge[] = [];

  constructor(private readonly context: CanvasRenderingContext2D) {
    this.texts = new Texts(context);
  }

  /**
   * Draws a scene: frames of submissions, bands of queues, edges, barriers, nodes, and badges over them. Where an
   * element is picked, or a node pointed at, all but neighbours are faded. `ratio` is device pixels per CSS pixel.
   */
  draw(scene: Scene, camera: Camera, screen: Size, ratio: number, colours: Colours, theme: Theme): void {
    const { context } = this;
    this.colours = colours;
    this.own = graphColours(theme);
    this.scale = camera.scale;
    this.high = upright(camera, scene.layout, screen);
    this.x = camera.x;
    this.y = camera.y;
    this.screen = screen;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = colours.background;
    context.fillRect(0, 0, screen.width, screen.height);
    const focus = scene.picked ?? (scene.hovered?.kind === "node" ? scene.hovered : null);
    const near = focus && scene.graph.near(focus);
    const { layout } = scene;
    for (const frame of layout.frames) this.frame(frame, scene);
    this.bands(layout);
    this.edges(scene, near?.edges ?? null);
    for (const mark of layout.marks) this.mark(mark, scene);
    for (const placed of layout.nodes.values()) this.node(placed, scene, near?.nodes ?? null);
    this.font(11, "600");
    for (const badge of this.badges.splice(0)) this.badge(badge);
    context.globalAlpha = 1;
  }

  /** Converts a place of the drawing to pixels of the canvas. */
  private sx(x: number): number {
    return (x - this.x) * this.scale;
  }

  private sy(y: number): number {
    return (y - this.y) * this.high;
  }

  private seen(x: number, y: number, width: number, height: number): boolean {
    return x < this.screen.width && y < this.screen.height && x + width > 0 && y + height > 0;
  }

  /** Sets the font's size in pixels, and forgets the measured texts where it was another. */
  private font(size: number, weight = ""): void {
    const font = `${weight} ${size}px ${FONT}`.trim();
    if (this.context.font === font) return;
    this.context.font = font;
    this.texts.reset();
  }

  private bands({ bands }: Layout): void {
    if (bands.length < 2) return;
    const { context } = this;
    this.font(12, "600");
    context.textBaseline = "top";
    context.textAlign = "left";
    for (const { name, y } of bands) {
      const top = this.sy(y);
      context.fillStyle = this.colours.strong;
      context.fillRect(0, Math.round(top), this.screen.width, 1);
      context.fillStyle = this.colours.faint;
      context.fillText(this.texts.cut(name, this.screen.width - 20), 8, top + 4);
    }
  }

  private frame(frame: SubmissionFrame, { graph }: Scene): void {
    const [x, y] = [this.sx(frame.x), this.sy(frame.y)];
    const [width, height] = [frame.width * this.scale, frame.height * this.high];
    if (!this.seen(x, y - 20, width, height + 20)) return;
    const { context } = this;
    context.fillStyle = this.own.frame;
    context.strokeStyle = this.colours.strong;
    context.lineWidth = 1;
    box(context, x, y, width, height, Math.min(10, 12 * this.scale));
    context.fill();
    if (width > 6) context.stroke();
    // The name stays visible while its frame is.
    const left = Math.max(x, 0) + 4;
    const room = Math.min(x + width, this.screen.width) - left - 8;
    if (room < 24) return;
    const submission = graph.submissions.get(frame.submission);
    const name = submission?.queue === null || submission === undefined ? "submission unknown" : `submission ${submission.name ?? frame.submission}`;
    const time = submission?.device_ns ? `  ${duration(Number(submission.device_ns))} on the device` : "";
    this.font(11, "600");
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    context.fillStyle = this.colours.faint;
    context.fillText(this.texts.width(name + time) <= room ? name + time : this.texts.cut(name, room), left, y - 5);
  }

  /**
   * Draws the edges, with those that look alike in one path. Edges that are not in `near` are faded; null fades only
   * long ones.
   */
  private edges(scene: Scene, near: Set<number> | null): void {
    const { context } = this;
    const { graph, layout, kinds } = scene;
    const plain = new Map<string, { path: Path2D; kind: EdgeKind; width: number; alpha: number }>();
    const critical = new Path2D();
    const hazards: { edge: Edge; curve: Curve; alpha: number }[] = [];
    const heads: { curve: Curve; colour: string; width: number; alpha: number }[] = [];
    let isCritical = false;
    for (const edge of graph.edges) {
      if (!kinds.has(edge.kind) && edge.hazard !== "certain") continue;
      const [from, to] = [layout.nodes.get(edge.from), layout.nodes.get(edge.to)];
      if (!from || !to) continue;
      const curve = this.onScreen(curveOf(from, to, edge.kind));
      if (!curve) continue;
      const isNear = near === null || near.has(edge.index);
      // Long edges are faded, because they cover short ones.
      const far = near === null && to.column - from.column > FAR_COLUMNS;
      const alpha = isNear ? (far ? 0.45 : 1) : FADED_ALPHA;
      const width = this.width(edge, graph);
      if (edge.hazard === "certain") {
        hazards.push({ edge, curve, alpha });
        continue;
      }
      if (edge.critical && edge.kind === "RAW" && isNear) {
        trace(critical, curve);
        isCritical = true;
      }
      const key = `${edge.kind}.${width}.${alpha}`;
      let batch = plain.get(key);
      if (!batch) plain.set(key, (batch = { path: new Path2D(), kind: edge.kind, width, alpha }));
      trace(batch.path, curve);
      if (this.scale > 0.3) heads.push({ curve, colour: this.own.edges[edge.kind], width, alpha });
    }
    context.lineCap = "butt";
    if (isCritical) {
      context.globalAlpha = 0.22;
      context.strokeStyle = this.own.critical;
      context.lineWidth = Math.max(5, 15 * this.scale);
      context.stroke(critical);
    }
    // Faded edges are drawn first, below the others.
    for (const { path, kind, width, alpha } of [...plain.values()].sort((a, b) => a.alpha - b.alpha || (a.kind === "RAW" ? 1 : -1))) {
      context.globalAlpha = alpha * (kind === "RAW" ? 1 : 0.85);
      context.strokeStyle = this.own.edges[kind];
      context.lineWidth = width;
      const dash = kind !== "RAW" && this.scale > DASHED_SCALE;
      context.setLineDash(dash ? (kind === "WAR" ? [6, 4] : [2, 3]) : []);
      context.stroke(path);
    }
    context.setLineDash([]);
    for (const { curve, colour, width, alpha } of heads) this.head(curve, colour, width, alpha);
    for (const { edge, curve, alpha } of hazards) this.hazard(edge, curve, alpha, graph);
    context.globalAlpha = 1;
  }

  /** Returns the width of an edge, which grows with the square root of its bytes. */
  private width(edge: Edge, graph: DependencyGraph): number {
    const share = Math.sqrt(edge.size / graph.largest);
    return Math.max(1, Math.round((1 + 3.5 * share) * Math.min(1, this.scale * 1.4) * 2) / 2);
  }

  /** Returns a curve in pixels, which leaves room for the arrow's head; null where it is off the screen. */
  private onScreen(curve: Curve): Curve | null {
    const moved = {
      x1: this.sx(curve.x1),
      y1: this.sy(curve.y1),
      cx1: this.sx(curve.cx1),
      cy1: this.sy(curve.cy1),
      cx2: this.sx(curve.cx2),
      cy2: this.sy(curve.cy2),
      x2: this.sx(curve.x2) - 5 * Math.min(1, this.scale),
      y2: this.sy(curve.y2),
    };
    const top = Math.min(moved.y1, moved.cy1, moved.cy2, moved.y2);
    const bottom = Math.max(moved.y1, moved.cy1, moved.cy2, moved.y2);
    return this.seen(Math.min(moved.x1, moved.x2), top - 4, Math.abs(moved.x2 - moved.x1) + 8, bottom - top + 8) ? moved : null;
  }

  private head({ x2, y2 }: Curve, colour: string, width: number, alpha: number): void {
    const { context } = this;
    const size = Math.min(1, this.scale) * (6 + width * 0.8);
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x2 + 5 * Math.min(1, this.scale), y2);
    context.lineTo(x2 - size * 0.7, y2 - size * 0.6);
    context.lineTo(x2 - size * 0.7, y2 + size * 0.6);
    context.fill();
  }

  private hazard(edge: Edge, curve: Curve, alpha: number, graph: DependencyGraph): void {
    const { context } = this;
    const path = new Path2D();
    trace(path, curve);
    context.globalAlpha = Math.max(alpha, 0.5) * 0.3;
    context.strokeStyle = this.own.hazard;
    context.lineWidth = Math.max(7, 16 * this.scale);
    context.stroke(path);
    context.globalAlpha = Math.max(alpha, 0.5);
    context.lineWidth = Math.max(2, this.width(edge, graph) + 1);
    context.stroke(path);
    this.head(curve, this.own.hazard, context.lineWidth, Math.max(alpha, 0.5));
    const middle = pointOn(curve, 0.5);
    this.font(11, "600");
    const text = this.scale > 0.3 ? `hazard: ${edge.kind} ${bytes(edge.size)}` : "hazard";
    this.badges.push({ text, x: middle.x - this.texts.width(text) / 2, y: middle.y - 12, colour: this.own.hazard, alpha });
  }

  /** Draws a word in a rounded frame, from `x` on. */
  private badge({ text, x, y, colour, alpha }: Badge): void {
    const { context } = this;
    const width = this.texts.width(text) + 10;
    context.globalAlpha = Math.max(alpha, 0.5);
    context.fillStyle = this.colours.background;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    box(context, x - 5, y - 8, width, 16, 8);
    context.fill();
    context.stroke();
    context.fillStyle = colour;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(text, x, y + 0.5);
  }

  /** Draws the barriers at one place: solid where they are needed or needless, dashed where that is not known. */
  private mark(mark: BarrierMark, { picked, hovered }: Scene): void {
    const x = this.sx(mark.x);
    const [y, height] = [this.sy(mark.y), mark.height * this.high];
    if (!this.seen(x - 40, y - 16, 80, height + 32)) return;
    const { context } = this;
    const isPicked = [picked, hovered].some((pick) => pick?.kind === "barrier" && mark.barriers.some(({ index }) => index === pick.index));
    const needless = mark.need === "needless";
    if (!needless && this.scale < MARKS_SCALE) return;
    const colour = needless ? this.own.needless : this.own.barrier;
    context.globalAlpha = needless || isPicked ? 1 : mark.need === "needed" ? 0.9 : 0.5;
    context.fillStyle = colour;
    const width = Math.max(needless ? 2 : 1, (needless || isPicked ? 5 : 3) * Math.min(1, this.scale * 1.3));
    if (mark.need === "needed" || needless) {
      context.fillRect(x - width / 2, y, width, height);
    } else {
      for (let at = y; at < y + height; at += 6) context.fillRect(x - width / 2, at, width, Math.min(3, y + height - at));
    }
    const several = mark.barriers.length > 1 ? ` ×${count(mark.barriers.length)}` : "";
    if (several && !needless && this.scale > 0.55) {
      this.font(10);
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(several.trim(), x, y + height + 2);
    }
    if (needless) {
      this.badges.push({ text: this.scale > 0.28 ? `needless${several}` : "!", x, y: y - 9, colour, alpha: 1 });
    }
  }

  /**
   * Draws a node; dispatches have sharper corners than transfers. Nodes that are not in `near` are faded, unless it
   * is null.
   */
  private node(placed: PlacedNode, { graph, nodeColours, picked, hovered }: Scene, near: Set<number> | null): void {
    const [x, y] = [this.sx(placed.x), this.sy(placed.y)];
    const [width, height] = [NODE.width * this.scale, NODE.height * this.high];
    if (!this.seen(x - 4, y - 4, width + 8, height + 8)) return;
    const { context, colours } = this;
    const { node } = placed;
    const isPicked = picked?.kind === "node" && picked.id === node.id;
    const isHovered = hovered?.kind === "node" && hovered.id === node.id;
    const critical = graph.isCritical(node.id);
    const radius = Math.min(isDispatch(node) ? 7 : height / 2, width / 2, 8 * (isDispatch(node) ? this.scale : 3));
    const colour = nodeColours.colourOf(node, colours);
    // Faded nodes stay opaque, so that edges do not show through them.
    const faded = near !== null && !near.has(node.id);
    context.globalAlpha = 1;
    context.fillStyle = width < NAME_PX ? colour : colours.background;
    box(context, x, y, width, height, radius);
    context.fill();
    context.globalAlpha = faded ? 0.3 : 1;
    if (width >= NAME_PX) {
      context.save();
      box(context, x, y, width, height, radius);
      context.clip();
      context.globalAlpha *= 0.16;
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
      context.globalAlpha = faded ? 0.3 : 1;
      context.fillRect(x, y, Math.max(3, 6 * this.scale), height);
      context.restore();
      context.globalAlpha = faded ? 0.3 : 1;
    }
    context.strokeStyle = isPicked || isHovered ? colours.text : critical ? this.own.critical : node.beyond ? this.own.needless : colours.strong;
    context.lineWidth = isPicked ? 3 : critical || isHovered ? 2 : 1;
    if (width > 5) {
      if (node.beyond) context.setLineDash([4, 3]);
      box(context, x, y, width, height, radius);
      context.stroke();
      context.setLineDash([]);
    }
    if (width >= NAME_PX) this.words(placed, x, y, width, height);
  }

  /** Writes a node's name and, where it is wide enough, its number, its bytes read and written, and its time. */
  private words({ node }: PlacedNode, x: number, y: number, width: number, height: number): void {
    const { context, colours } = this;
    const left = x + Math.max(5, 14 * this.scale);
    const room = x + width - left - 4;
    const figures = width >= FIGURES_PX;
    const size = Math.max(9, Math.min(14, 13 * this.scale));
    context.textAlign = "left";
    context.textBaseline = "middle";
    this.font(size, "600");
    context.fillStyle = colours.text;
    const number = figures ? String(node.id) : "";
    const numbered = number === "" ? 0 : number.length * size * 0.6 + 6;
    context.fillText(this.texts.cut(node.name, room - numbered), left, y + height * (figures ? 0.32 : 0.5));
    if (!figures) return;
    this.font(Math.max(8.5, Math.min(12, 10.5 * this.scale)));
    context.fillStyle = colours.faint;
    context.textAlign = "right";
    context.fillText(number, x + width - 6, y + height * 0.32);
    context.textAlign = "left";
    const most = node.exact ? "" : "≤ ";
    const moved = `${most}${short(node.read_bytes)} → ${short(node.written_bytes)}`;
    const time = node.duration_ns === null ? "" : duration(node.duration_ns);
    const timed = this.texts.width(time);
    const both = time && this.texts.width(moved) + timed + 8 <= room;
    context.fillText(this.texts.cut(node.beyond ? "reach unknown" : moved, both ? room - timed - 6 : room), left, y + height * 0.72);
    if (!both) return;
    context.textAlign = "right";
    context.fillText(time, x + width - 6, y + height * 0.72);
  }
}

/** Formats a size in bytes; zero has no unit. */
function short(size: string): string {
  return size === "0" ? "0" : bytes(Number(size));
}

function trace(path: Path2D, { x1, y1, cx1, cy1, cx2, cy2, x2, y2 }: Curve): void {
  path.moveTo(x1, y1);
  path.bezierCurveTo(cx1, cy1, cx2, cy2, x2, y2);
}

function box(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, radius: number): void {
  context.beginPath();
  context.roundRect(x, y, width, height, radius);
}
