// A small drawing of the whole graph that shows the visible part, hazards (dependencies that nothing orders) and
// needless barriers. A press or drag on it moves the graph.

import type { Appearance } from "../appearance.ts";
import { h } from "../dom.ts";
import { graphColours, type NodeColours } from "./appearance.ts";
import type { Camera, Size } from "./camera.ts";
import type { DependencyGraph } from "./graph.ts";
import { type Layout, NODE } from "./layout.ts";

const HEIGHT_PX = 46;
const MARGIN_PX = 6;

/** The minimap's canvas. `forget` is called before `draw` where the graph or its layout has changed. */
export class GraphMinimap {
  readonly canvas = h("canvas", { class: "dependencies-minimap", "aria-hidden": "true", hidden: true });
  /** The picture without the box around the visible part, drawn once for each graph, size and theme. */
  private picture: HTMLCanvasElement | null = null;
  /** What the picture was drawn for: width in device pixels and theme. */
  private drawn = "";
  private drawing: Size = { width: 1, height: 1 };

  constructor(
    private readonly appearance: Appearance,
    /** Centres the graph on a point of the drawing. */
    private readonly go: (x: number, y: number) => void,
  ) {
    const to = (event: PointerEvent): void => {
      const [x, y] = [this.drawing.width, this.drawing.height];
      this.go(((event.offsetX - MARGIN_PX) / (this.canvas.clientWidth - 2 * MARGIN_PX)) * x, ((event.offsetY - MARGIN_PX) / (HEIGHT_PX - 2 * MARGIN_PX)) * y);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      to(event);
    });
    this.canvas.addEventListener("pointermove", (event) => event.buttons === 1 && to(event));
  }

  /** Discards the picture, because the graph or its layout has changed. */
  forget(): void {
    this.drawn = "";
  }

  /**
   * Draws the picture and the box around the visible part, or hides the canvas while the whole graph is visible.
   * `ratio` is the number of device pixels in a CSS pixel.
   */
  draw(graph: DependencyGraph, layout: Layout, colours: NodeColours, camera: Camera, screen: Size, ratio: number): void {
    const { canvas, appearance } = this;
    canvas.hidden = layout.width * camera.scale < screen.width * 1.02 && camera.x <= 0;
    if (canvas.hidden) return;
    const width = screen.width;
    const [wide, high] = [Math.round(width * ratio), Math.round(HEIGHT_PX * ratio)];
    const wanted = `${wide} ${appearance.theme}`;
    if (this.drawn !== wanted) {
      this.drawn = wanted;
      this.drawing = layout;
      [canvas.width, canvas.height] = [wide, high];
      this.picture = this.paint(graph, layout, colours, width, ratio, wide, high);
    }
    const context = canvas.getContext("2d");
    if (!context || !this.picture) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const across = (width - 2 * MARGIN_PX) / layout.width;
    const from = Math.max(0, MARGIN_PX + camera.x * across);
    const to = Math.min(width, MARGIN_PX + (camera.x + screen.width / camera.scale) * across);
    context.fillStyle = appearance.colours.selection;
    context.strokeStyle = appearance.colours.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    context.roundRect(from, 1, Math.max(4, to - from), HEIGHT_PX - 2, 4);
    context.fill();
    context.stroke();
  }

  /** Draws frames, nodes, and a line across for each needless barrier and certain hazard. */
  private paint(graph: DependencyGraph, layout: Layout, nodes: NodeColours, width: number, ratio: number, wide: number, high: number): HTMLCanvasElement {
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [wide, high];
    const context = picture.getContext("2d");
    if (!context) return picture;
    const { colours, theme } = this.appearance;
    const own = graphColours(theme);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, HEIGHT_PX);
    const across = (width - 2 * MARGIN_PX) / layout.width;
    const down = Math.min((HEIGHT_PX - 2 * MARGIN_PX) / layout.height, 0.12);
    const top = (HEIGHT_PX - layout.height * down) / 2;
    const rect = (x: number, y: number, w: number, h: number, least: number): void =>
      context.fillRect(MARGIN_PX + x * across, top + y * down, Math.max(least, w * across), Math.max(least, h * down));
    context.fillStyle = colours.line;
    for (const frame of layout.frames) rect(frame.x, frame.y, frame.width, frame.height, 1);
    for (const { node, x, y } of layout.nodes.values()) {
      context.fillStyle = nodes.colourOf(node, colours);
      rect(x, y, NODE.width, NODE.height, 1.5);
    }
    const tick = (x: number, colour: string): void => {
      context.fillStyle = colour;
      context.fillRect(MARGIN_PX + x * across - 1, 0, 2, HEIGHT_PX);
    };
    for (const mark of layout.marks) if (mark.need === "needless") tick(mark.x, own.needless);
    for (const edge of graph.edges) {
      const to = edge.hazard === "certain" ? layout.nodes.get(edge.to) : undefined;
      if (to) tick(to.x, own.hazard);
    }
    return picture;
  }
}
