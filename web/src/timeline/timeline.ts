// A timeline: the names of tracks on the left, their events on a canvas, a ruler above. It shows the visible range of
// a view, draws anew when the view changes, and asks for the tracks that come into sight.

import type { Appearance } from "../appearance.ts";
import type { Trace, Track } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import type { Canvas } from "../draw/canvas.ts";
import { Texts } from "../draw/texts.ts";
import type { Note } from "../generated/protocol.ts";
import type { Lane } from "../lane/lane.ts";
import { instant } from "../time/format.ts";
import { length, Scale } from "../time/range.ts";
import type { EventPlace, View } from "../view.ts";
import { Arrangement, type Drawable } from "./arrangement.ts";
import { Headers } from "./headers.ts";
import { FOLDED_LANES, GROUP_PX, layout, type Layout, laneTop, rowAt, rowOf, stickyPixels } from "./layout.ts";
import { FONT, TimelinePainter } from "./paint.ts";
import { listen } from "./pointer.ts";
import { paintRuler, RULER_PX } from "./ruler.ts";
import { STEPS_PX, StepsRow } from "./steps-row.ts";
import { Tooltip } from "./tooltip.ts";
import { TrackChooser } from "./track-chooser.ts";

/** How a timeline differs from others. */
export interface TimelineOptions {
  /** Tells which tracks can be drawn. */
  shown: Drawable;
  /** The name for screen readers. */
  name: string;
  /** Saves room: a single group of tracks has no name. */
  terse?: boolean;
  /** Whether the corner has the controls that filter and list tracks. */
  chooses?: boolean;
}

/** One timeline, of one trace. `draw` is called after small changes, and `renew` where rows may have changed. */
export class Timeline {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly ruler: HTMLCanvasElement;
  private readonly body: HTMLElement;
  private readonly headers: Headers;
  private readonly painter: TimelinePainter;
  private readonly tooltip: Tooltip;
  private readonly steps: StepsRow;
  /** The line at the pointer, with the time there. */
  private readonly cursor = h("div", { class: "cursor", hidden: true, "aria-hidden": "true" });
  /** The place of the line at the pointer, in pixels of the canvas despite the name; null while it is hidden. */
  private pointed_ns: number | null = null;
  /** The place where the pointer rests on the tracks; the event under it changes with the visible range. */
  private pointer: { x: number; y: number } | null = null;
  private readonly corner = h("div", { class: "ruler-corner" });
  private readonly nothing = h("p", { class: "nothing", hidden: true });
  readonly arrangement: Arrangement;
  private readonly chooser: TrackChooser | null;
  /** Called when the flag of a note is clicked. */
  noted: (note: Note) => void = () => undefined;
  /** The layout of the tracks, made anew by the next drawing while `stale`. */
  private rows: Layout = { rows: [], height: 0, pinned_px: 0 };
  private readonly texts: Texts;
  private draws = 0;
  private scheduled = 0;
  private stale = true;
  /** Loads the tracks of the view that is laid over this one. */
  private wantedOver: ((tracks: Track[]) => void) | null = null;
  /** Whether the timeline is on the screen. Timelines that are not, such as most of a hundred ranks, are neither drawn nor loaded. */
  private visible: boolean;

  constructor(
    readonly view: View,
    private readonly appearance: Appearance,
    private readonly options: TimelineOptions,
    /** Loads tracks that have come into sight. */
    private readonly wanted: (tracks: Track[]) => void,
  ) {
    this.painter = new TimelinePainter(appearance);
    this.ruler = h("canvas", { class: "ruler", "aria-hidden": "true" });
    this.canvas = h("canvas", {
      class: "tracks",
      tabindex: "0",
      role: "application",
      "aria-label": `${options.name}. Press question mark for its keys. Everything in it is also in the tables below.`,
    });
    this.arrangement = new Arrangement(view.trace, options.shown);
    this.headers = new Headers(this.arrangement);
    this.chooser = options.chooses ? new TrackChooser(this.arrangement) : null;
    this.tooltip = new Tooltip(appearance);
    this.steps = new StepsRow(view);
    const spacer = h("div", { class: "spacer" }, this.headers.element, this.canvas);
    this.body = h("div", { class: "tracks-body", onscroll: () => this.draw() }, spacer);
    this.element = h(
      "section",
      { class: "timeline", "aria-label": options.name },
      h("div", { class: "ruler-row" }, this.corner, this.ruler),
      this.steps.element,
      this.body,
      this.nothing,
      this.cursor,
      this.tooltip.element,
      this.headers.menu.element,
      this.chooser?.element ?? "",
      this.headers.status,
    );
    this.name(view.trace.overview.name);
    this.arrangement.onChange(() => this.renew());
    this.texts = new Texts(this.context(this.canvas));
    listen(this);
    view.onChange((change) => {
      if (change === "data") this.stale = true;
      if (change === "hover") this.tooltip.show(view);
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.visible = !options.terse;
    new IntersectionObserver((changes) => {
      this.visible = changes[changes.length - 1].isIntersecting;
      this.draw();
    }).observe(this.element);
  }

  get scale(): Scale {
    return new Scale(this.view.range, 0, this.canvas.clientWidth);
  }

  /** Lays another view over this one, whose tracks `wanted` loads; null ends that. */
  layOver(over: { view: View; wanted: (tracks: Track[]) => void } | null): void {
    this.wantedOver = over?.wanted ?? null;
    this.painter.over = over && { view: over.view, track: (track) => counterpart(track, this.view.trace, over.view.trace) };
    if (over) over.view.onChange(() => this.painter.over?.view === over.view && this.draw());
    this.renew();
  }

  /** Draws at the next frame. */
  draw(): void {
    if (!this.visible) return;
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.drawNow();
    });
  }

  /** Draws with changed tracks, groups or colours. */
  renew(): void {
    this.stale = true;
    this.draw();
  }

  /** Shows in the corner whose tracks these are, beside the controls. */
  name(...content: (string | Node)[]): void {
    fill(this.corner, this.chooser ? [h("span", { class: "clip corner-name" }, ...content), this.chooser.tools] : content);
    this.corner.classList.toggle("choosing", this.chooser !== null);
  }

  /** Returns the canvas's opaque 2D context; it throws where the browser has none. */
  private context(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("This browser has no 2D canvas.");
    return context;
  }

  /** Sizes a canvas in device pixels, and returns its context, scaled so that it takes CSS pixels. */
  private fitted(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = this.context(canvas);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  /** Draws the timeline, after laying it out where it is stale, and asks for the tracks in sight. */
  private drawNow(): void {
    this.steps.show();
    const height = this.body.clientHeight;
    const width = this.body.clientWidth - this.headers.element.offsetWidth;
    if (width <= 0 || height <= 0 || !this.visible) return;
    const started = performance.now();
    if (this.stale) {
      this.stale = false;
      this.rows = this.laidOut;
      this.headers.show(this.rows, this.view.trace, stickyPixels(this.rows, height));
      this.chooser?.renew();
      // The name of the event under the pointer may have been loaded.
      if (this.view.hovered) this.tooltip.show(this.view);
      this.nothing.hidden = this.rows.rows.length > 0;
      this.nothing.textContent = this.arrangement.all.length > 0 ? "No track has these words in its name, or all are hidden." : this.view.trace.overview.live ? "Nothing has been recorded yet: what the GPU does appears here." : "There is nothing to draw: the trace has no GPU work, no calls and no labels with known times.";
    }
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.fitted(this.canvas, width, height);
    const scroll = this.body.scrollTop;
    this.painter.paint({ context, texts: this.texts, width, height }, this.view, this.rows, scroll);
    this.ruler.style.width = `${width}px`;
    paintRuler(this.fitted(this.ruler, width, RULER_PX), this.view, width, this.appearance.colours);
    if (this.steps.height > 0) {
      this.steps.canvas.style.width = `${width}px`;
      this.steps.paint(this.lettered(this.fitted(this.steps.canvas, width, STEPS_PX), width), this.appearance.colours);
    }
    // The range may have moved under a pointer that rests.
    this.pointAt(this.pointed_ns, this.pointer?.y ?? null);
    if (this.pointer) {
      const under = this.eventAt(this.pointer.x, this.pointer.y);
      this.view.hover(under);
      this.showCounter(under);
    }
    const seen = this.inSight(scroll, height);
    this.wanted(seen);
    const { over } = this.painter;
    if (over) this.wantedOver?.(seen.flatMap((track) => over.track(track) ?? []));
    this.publish(performance.now() - started);
  }

  /** The layout of the tracks as they are now. */
  private get laidOut(): Layout {
    return layout(this.arrangement, this.options.terse, this.painter.over !== null);
  }

  /** Returns a canvas for a row of texts. */
  private lettered(context: CanvasRenderingContext2D, width: number): Canvas {
    context.font = FONT;
    context.textBaseline = "middle";
    return { context, texts: new Texts(context), width, height: STEPS_PX };
  }

  /** The size of a picture of what is visible, in pixels of the page. */
  get pictureSize(): { width: number; height: number } {
    return { width: this.body.clientWidth, height: this.visible ? this.head_px + this.body.clientHeight : 0 };
  }

  /** The height of the ruler and of the row of steps. */
  private get head_px(): number {
    return RULER_PX + this.steps.height;
  }

  /** Paints ruler, tracks and their names as they are seen now. */
  paintPicture(context: CanvasRenderingContext2D): void {
    if (!this.visible) return;
    const { colours } = this.appearance;
    const { width, height } = this.pictureSize;
    const names_px = this.headers.element.offsetWidth;
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, height);
    context.save();
    context.translate(names_px, 0);
    paintRuler(context, this.view, width - names_px, colours);
    context.translate(0, RULER_PX);
    if (this.steps.height > 0) this.steps.paint(this.lettered(context, width - names_px), colours);
    context.translate(0, this.steps.height);
    this.painter.paint({ context, texts: new Texts(context), width: width - names_px, height: height - this.head_px }, this.view, this.rows, this.body.scrollTop);
    context.restore();
    this.headers.paint(context, { top: this.head_px, width: names_px, height: height - this.head_px });
  }

  /** Returns the tracks whose rows are visible, pinned ones included. */
  private inSight(scroll: number, height: number): Track[] {
    return this.rows.rows.flatMap((row) =>
      row.what === "track" && (row.pinned || (row.top + row.height > scroll && row.top < scroll + height)) ? [row.track] : [],
    );
  }

  /** Returns whether all visible work is loaded, or known to be missing. */
  get complete(): boolean {
    if (!this.visible) return true;
    // Before the first drawing it is unknown which tracks are in sight.
    if (this.draws === 0 && this.view.trace.tracks.length > 0) return false;
    return this.inSight(this.body.scrollTop, this.body.clientHeight).every((track) => track.kind !== "work" || (track.state !== "waiting" && track.state !== "loading"));
  }

  /** Publishes the state as data attributes, for tests and for the curious. */
  private publish(draw_ms: number): void {
    const { view } = this;
    this.draws += 1;
    const data = this.element.dataset;
    data.from = view.range.from_ns.toFixed(1);
    data.to = view.range.to_ns.toFixed(1);
    data.selection = view.selection ? `${view.selection.from_ns.toFixed(0)}-${view.selection.to_ns.toFixed(0)}` : "";
    data.event = view.event ? placeName(view.event) : "";
    data.hovered = view.hovered ? placeName(view.hovered) : "";
    data.arrows = String(view.arrows.length);
    data.tracks = String(this.rows.rows.filter((row) => row.what === "track").length);
    data.parts = String(view.trace.tracks.filter((track) => track.state === "part").length);
    data.ready = String(view.trace.tracks.filter((track) => track.state === "ready").length);
    data.events = String(view.trace.tracks.reduce((sum, track) => sum + track.count, 0));
    data.found = this.appearance.searching ? String(this.found) : "";
    data.notes = String(view.notes.length);
    data.steps = String(view.trace.steps?.ranges.length ?? "");
    data.draws = String(this.draws);
    data.drawMs = draw_ms.toFixed(2);
  }

  /** The number of loaded events of work that match the search. */
  get found(): number {
    let sum = 0;
    for (const track of this.view.trace.tracks) {
      if (track.kind !== "work" || track.state !== "ready") continue;
      track.lanes.forEach((_, lane) => (sum += this.appearance.foundIn(this.view.trace, track, lane)?.lane.count ?? 0));
    }
    return sum;
  }

  /** Converts a height on the canvas to one in the scrolled contents; pinned tracks are not scrolled. */
  private contentY(y: number): number {
    return y < stickyPixels(this.rows, this.body.clientHeight) ? y : y + this.body.scrollTop;
  }

  /** Returns the event at a point of the canvas, or at most 2 pixels beside it; null for none. */
  eventAt(x: number, y: number): EventPlace | null {
    const hit = rowAt(this.rows, this.contentY(y));
    if (!hit || hit.row.what !== "track" || hit.lane < 0) return null;
    const { track } = hit.row;
    const lane = track.lanes[hit.lane];
    if (!lane) return null;
    // The lower half of a lane has the other side of a comparison.
    if (this.painter.over && this.contentY(y) > laneTop(hit.row, hit.lane) + hit.row.lane_px / 2) return null;
    const scale = this.scale;
    const nearest = (lane: Lane): number => {
      // Where columns are drawn, the longest event under the pointer is meant, because it gave the column its colour.
      const { from, to } = lane.within({ from_ns: scale.ns(Math.floor(x)), to_ns: scale.ns(Math.floor(x) + 1) });
      return to - from > 1 ? lane.longestOf(from, to) : lane.nearest(scale.ns(x), 2 / scale.pixels_per_ns);
    };
    // Matches of the search are drawn over the rest.
    const found = this.appearance.foundIn(this.view.trace, track, hit.lane);
    const at = found ? nearest(found.lane) : -1;
    const index = found && at >= 0 ? found.place[at] : nearest(lane);
    return index < 0 ? null : { track, lane: hit.lane, index };
  }

  /** Picks the event at a point, or folds or unfolds the group whose row is there. */
  clickAt(x: number, y: number): void {
    const hit = rowAt(this.rows, this.contentY(y));
    if (hit?.row.what === "head") this.arrangement.fold(hit.row.id, !hit.row.closed);
    else this.view.pick(this.eventAt(x, y));
  }

  /** Scrolls to an event's lane, and to the timeline itself where there are several. */
  bringIntoSight(event: EventPlace): void {
    this.element.scrollIntoView({ block: "nearest" });
    this.arrangement.reveal(event.track);
    if (event.lane >= FOLDED_LANES && !this.arrangement.unfolds(event.track)) this.arrangement.foldLanes(event.track, false);
    if (this.stale) this.rows = this.laidOut;
    const row = rowOf(this.rows, event.track);
    if (!row) return;
    const top = laneTop(row, event.lane);
    const { scrollTop, clientHeight } = this.body;
    const sticky = stickyPixels(this.rows, clientHeight);
    if (!(row.pinned && sticky > 0) && (top < scrollTop + sticky || top + row.lane_px > scrollTop + clientHeight)) this.body.scrollTop = Math.max(0, top - sticky - GROUP_PX - 8);
    this.draw();
  }

  /** Scrolls to a track, and focuses its name. */
  goToTrack(track: Track): void {
    this.arrangement.reveal(track);
    this.rows = this.laidOut;
    this.stale = true;
    const row = rowOf(this.rows, track);
    if (row && !row.pinned) this.body.scrollTop = Math.max(0, row.top - stickyPixels(this.rows, this.body.clientHeight) - GROUP_PX - 8);
    this.drawNow();
    this.headers.focus(track.id);
  }

  scrollBy(pixels: number): void {
    this.body.scrollTop += pixels;
  }

  /** Moves the line to the pointer, or hides it for `null`. `y` is absent where the pointer is not on the tracks. */
  pointAt(x: number | null, y: number | null = null): void {
    this.pointed_ns = x;
    this.pointer = x === null || y === null ? null : { x, y };
    this.cursor.hidden = x === null;
    if (x === null) return;
    this.cursor.style.left = `${this.canvas.offsetLeft + x}px`;
    const step_ns = Math.max(1, length(this.view.range) / this.canvas.clientWidth);
    this.cursor.textContent = instant(this.scale.ns(x) - this.view.origin_ns, step_ns);
    this.cursor.classList.toggle("at-right", x > this.canvas.clientWidth - 110);
  }

  /** Makes an event the one under the pointer, and moves the tooltip. */
  pointTo(event: EventPlace | null, client_x: number, client_y: number): void {
    this.tooltip.at(client_x, client_y);
    this.view.hover(event);
    this.showCounter(event);
  }

  /** Shows the value of the counter under the pointer, where there is no event. */
  private showCounter(event: EventPlace | null): void {
    const hit = event || !this.pointer ? null : rowAt(this.rows, this.contentY(this.pointer.y));
    const track = hit?.row.what === "track" && hit.row.track.isCounter ? hit.row.track : null;
    if (track?.counter && this.pointer) {
      const x = Math.floor(this.pointer.x);
      this.tooltip.showCounter(this.view, track, { from_ns: this.scale.ns(x), to_ns: this.scale.ns(x + 1) });
    } else if (!event) this.tooltip.hide();
  }

}

/** Names an event by its table and row, such as `dispatches.17`. */
export function placeName(event: EventPlace): string {
  const { table, row } = event.track.rowOf(event);
  return `${table}.${row}`;
}

/** Returns the track of another trace that stands for a track: the same track of the same trace, otherwise the one with the same number among its kind. */
function counterpart(track: Track, own: Trace, other: Trace): Track | null {
  if (own === other) return track;
  const alike = (trace: Trace): Track[] => trace.tracks.filter(({ kind, overview }) => kind === track.kind && overview.rows !== 0);
  return alike(other)[alike(own).indexOf(track)] ?? null;
}
