// Draws the tracks of a timeline on its canvas: the events of lanes as rectangles, counters as steps, and over them
// the arrows, the selected range, and outlines of the picked event and of that under the pointer. Tracks that are not
// loaded show their busy shares.

import type { Appearance } from "../appearance.ts";
import type { Counter } from "../data/counter.ts";
import type { Slices } from "../data/slices.ts";
import type { Track } from "../data/trace.ts";
import type { Canvas } from "../draw/canvas.ts";
import { inkOn } from "../draw/palette.ts";
import type { Texts } from "../draw/texts.ts";
import type { Lane } from "../lane/lane.ts";
import { LEVELS, Runs } from "../lane/runs.ts";
import { duration, quantity } from "../time/format.ts";
import { overlaps, Scale } from "../time/range.ts";
import { ticks } from "../time/ticks.ts";
import { eventRange, type EventPlace, type View } from "../view.ts";
import { paintArrows } from "./arrows.ts";
import { type HeadRow, type Layout, laneTop, type Row, settled, stickyPixels, type TrackRow } from "./layout.ts";

export const FONT = "11px system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif";
/** The room around a name in its rectangle, and the least room that a name needs. */
const NAME_PAD_PX = 3;
const MIN_NAME_PX = 9;
/** The width of the shortest duration with its unit. */
const MIN_LENGTH_PX = 30;

/** A view that is laid over another, and the track of its trace that stands for a track of the other. */
export interface Overlay {
  view: View;
  track: (track: Track) => Track | null;
}

/** Draws timelines. It keeps the arrays that drawings reuse. */
export class TimelinePainter {
  private readonly runs = new Runs();
  private readonly colours: string[] = [];
  /** The other side of a comparison, which is laid over this one: its events are drawn in the lower half of each lane. Null without one. */
  over: Overlay | null = null;

  constructor(private readonly appearance: Appearance) {}

  /**
   * Draws what of a layout is visible when it is scrolled by `scroll` pixels. Pinned rows stay at the top where they
   * leave enough room.
   */
  paint(canvas: Canvas, view: View, layout: Layout, scroll: number): void {
    const { context, width, height } = canvas;
    const colours = this.appearance.colours;
    const scale = new Scale(view.range, 0, width);
    if (context.font !== FONT) {
      context.font = FONT;
      canvas.texts.reset();
    }
    context.textBaseline = "middle";
    context.fillStyle = colours.background;
    context.fillRect(0, 0, width, height);
    const sticky = stickyPixels(layout, height);
    const rows = settled(layout, scroll, height);

    context.save();
    context.translate(0, -scroll);
    const scrolled = rows.rows.filter((row) => !(row.pinned && sticky > 0) && row.top + row.height > scroll + sticky && row.top < scroll + height);
    this.part(canvas, view, rows, scrolled, scale, scroll, sticky, height);
    if (sticky > 0) {
      this.part(canvas, view, rows, rows.rows.filter(({ pinned }) => pinned), scale, scroll, 0, sticky);
      context.fillStyle = colours.strong;
      context.fillRect(0, scroll + sticky - 2, width, 2);
    }
    this.aligned(canvas, view, scale, scroll);
    paintArrows(canvas, view, rows, scale, colours);
    this.selection(canvas, view, scale, scroll);
    context.restore();
  }

  /** Draws rows, cut off outside of the heights `from` to `to` of the canvas. */
  private part(canvas: Canvas, view: View, layout: Layout, rows: readonly Row[], scale: Scale, scroll: number, from: number, to: number): void {
    const { context, width } = canvas;
    const { colours } = this.appearance;
    context.save();
    context.beginPath();
    context.rect(0, scroll + from, width, to - from);
    context.clip();
    for (const row of rows) {
      if (row.what === "track") continue;
      context.fillStyle = colours.panel;
      context.fillRect(0, row.top, width, row.height);
    }
    this.grid(canvas, view, scale, scroll);
    for (const row of rows) if (row.what === "track") this.paintBackgrounds(canvas, row);
    this.tints(canvas, view, layout, scale);
    for (const row of rows) {
      if (row.what === "track") this.track(canvas, view, row, scale);
      else if (row.summary) this.busy(canvas, view, row, row.summary, scale, colours.host);
      if (row.what === "head" && row.depth === 0) continue;
      context.fillStyle = colours.line;
      context.fillRect(0, row.top + row.height - 1, width, 1);
    }
    this.outline(canvas, view.hovered, layout, scale, 1);
    this.outline(canvas, view.event, layout, scale, 2);
    context.restore();
  }

  /** Draws the lines of the ruler's ticks, and shades the time outside of the trace. */
  private grid({ context, width, height }: Canvas, view: View, scale: Scale, scroll: number): void {
    const { at_ns } = ticks(view.range.from_ns - view.origin_ns, view.range.to_ns - view.origin_ns, width, 90);
    context.fillStyle = this.appearance.colours.line;
    for (const at of at_ns) context.fillRect(Math.round(scale.x(at + view.origin_ns)), scroll, 1, height);
    const left = scale.x(view.bounds.from_ns);
    const right = scale.x(view.bounds.to_ns);
    context.fillStyle = this.appearance.colours.panel;
    if (left > 0) context.fillRect(0, scroll, left, height);
    if (right < width) context.fillRect(right, scroll, width - right, height);
  }

  private paintBackgrounds({ context, width }: Canvas, row: TrackRow): void {
    if (row.track.kind !== "work") return;
    context.fillStyle = this.appearance.colours.lane;
    for (let lane = 0; lane < row.lanes; lane += 1) context.fillRect(0, laneTop(row, lane) + 1, width, row.lane_px - 2);
  }

  /** Tints the lanes of a device where it has visible gaps, so that empty space shows its reason. */
  private tints({ context }: Canvas, view: View, layout: Layout, scale: Scale): void {
    for (const row of layout.rows) {
      if (row.what !== "track" || row.track.kind !== "gaps") continue;
      const lane = row.track.lanes[0];
      const work = layout.rows.filter(
        (other): other is TrackRow => other.what === "track" && other.track.kind === "work" && other.track.overview.group === row.track.overview.group,
      );
      if (!lane || work.length === 0) continue;
      const { from, to } = lane.within(scale.range);
      if (to - from > 2000) continue;
      context.globalAlpha = this.appearance.colouring === "cause" ? 0.3 : 0.13;
      for (let i = from; i < to; i += 1) {
        const left = scale.x(lane.start_ns[i]);
        const right = scale.x(lane.end_ns(i));
        if (right - left < 2) continue;
        context.fillStyle = view.trace.causes.colour(view.trace.text(lane.key[i]));
        for (const { top, height } of work) context.fillRect(left, top + 4, right - left, height - 8);
      }
      context.globalAlpha = 1;
    }
  }

  /** Draws a track: its counter, its busy shares while it is not loaded, or its pieces from slices and events. */
  private track(canvas: Canvas, view: View, row: TrackRow, scale: Scale): void {
    const { track } = row;
    if (track.isCounter) {
      if (track.counter) this.counter(canvas, row, track.counter, scale);
      return;
    }
    if (track.state !== "ready" && track.state !== "part") {
      const { work, host } = this.appearance.colours;
      if (track.summary) this.busy(canvas, view, row, track.summary, scale, track.kind === "work" ? work[work.length - 1] : host);
      return;
    }
    const { over } = this;
    this.pieces(canvas, view, row, scale, over ? "upper" : "whole");
    const other = over?.track(track);
    if (!over || !other) return;
    this.pieces(canvas, over.view, { ...row, track: other }, new Scale(over.view.range, scale.left_px, scale.width_px), "lower");
    canvas.context.fillStyle = this.appearance.colours.background;
    for (let lane = 0; lane < row.lanes; lane += 1) canvas.context.fillRect(scale.left_px, laneTop(row, lane) + row.lane_px / 2 - 0.5, scale.width_px, 1);
  }

  /** Draws the pieces of a track into its lanes, or into the upper or lower half of each. */
  private pieces(canvas: Canvas, view: View, row: TrackRow, scale: Scale, part: LanePart): void {
    for (const { range, slices } of row.track.pieces(scale.range)) {
      if (slices) this.slices(canvas, view, row, slices, scale.part(range), part);
      else this.lanes(canvas, view, row, scale.part(range), part);
    }
  }

  /**
   * Draws the lanes of a track from slices, which are equal spans of time with a busy share. Those that the search
   * does not find are pale.
   */
  private slices(canvas: Canvas, view: View, row: TrackRow, slices: Slices, scale: Scale, part: LanePart): void {
    const { track } = row;
    const colour = this.appearance.keyColour(view.trace, track);
    const finds = this.appearance.findsKey(view.trace, track);
    for (let lane = 0; lane < row.lanes && lane < slices.lanes.length; lane += 1) {
      const runs = this.runs.fillFromSlices(slices, lane, scale);
      const { top, height } = within(row, lane, part);
      this.rectangles(canvas, track, runs, top, height, (key) => (finds(key) ? colour(key) : this.appearance.pale(colour(key))));
    }
  }

  /** Draws the lanes of a track from events. Those that the search does not find are pale and have no names. */
  private lanes(canvas: Canvas, view: View, row: TrackRow, scale: Scale, part: LanePart): void {
    const { track } = row;
    for (let lane = 0; lane < row.lanes && lane < track.lanes.length; lane += 1) {
      const found = this.appearance.foundIn(view.trace, track, lane);
      const { top, height } = within(row, lane, part);
      const colour = this.appearance.colourOf(view.trace, track, lane);
      // Tracks without any match keep their colours.
      if (!found || (found.lane.count === 0 && track.kind !== "work")) {
        this.lane(canvas, view, track, track.lanes[lane], scale, top, height, colour, (event) => event);
      } else {
        this.lane(canvas, view, track, track.lanes[lane], scale, top, height, (event) => this.appearance.pale(colour(event)), null);
        this.lane(canvas, view, track, found.lane, scale, top, height, (event) => colour(found.place[event]), (event) => event);
      }
    }
  }

  /** Draws a lane. `named` maps its events to those of the names; null draws none. */
  private lane(
    canvas: Canvas,
    view: View,
    track: Track,
    lane: Lane,
    scale: Scale,
    top: number,
    height: number,
    colourOf: (event: number) => string,
    named: ((event: number) => number) | null,
  ): void {
    const { context, texts } = canvas;
    const runs = this.runs.fillFromLane(lane, scale);
    this.rectangles(canvas, track, runs, top, height, colourOf);
    if (!named || height < 9) return;
    for (const { event, left, right } of runs.wide(lane, scale, MIN_NAME_PX + 2 * NAME_PAD_PX)) {
      const room = right - left - 2 * NAME_PAD_PX;
      const text = texts.cut(this.caption(texts, view, track, lane, event, room), room);
      if (!text) continue;
      context.fillStyle = inkOn(colourOf(event));
      context.fillText(text, left + NAME_PAD_PX, top + height / 2 + 0.5);
    }
  }

  /**
   * Draws the rectangles of a lane. Where they stand for many events, their height, or for gaps and samples their
   * opacity, is the busy share.
   */
  private rectangles({ context }: Canvas, track: Track, runs: Runs, top: number, height: number, colourOf: (event: number) => string): void {
    const full = track.kind === "gaps" || track.kind === "samples";
    // Draw one colour after the other: changing the colour costs more than scanning the rectangles.
    const { colours } = this;
    const different = new Set<string>();
    for (let i = 0; i < runs.count; i += 1) different.add((colours[i] = colourOf(runs.event[i])));
    for (const colour of different) {
      context.fillStyle = colour;
      for (let i = 0; i < runs.count; i += 1) {
        if (colours[i] !== colour) continue;
        const left = runs.left[i];
        // Leave a hairline between events that touch, where there is room for it.
        const width = runs.right[i] - left - (runs.exact && runs.right[i] - left > 3 ? 0.5 : 0);
        const part = runs.exact || full ? height : Math.max(2, (height * runs.level[i]) / LEVELS);
        if (full && !runs.exact) context.globalAlpha = 0.25 + (0.75 * runs.level[i]) / LEVELS;
        context.fillRect(left, top + height - part, width, part);
      }
    }
    context.globalAlpha = 1;
  }

  /** Returns the name of an event, with its duration where both fit. */
  private caption(texts: Texts, view: View, track: Track, lane: Lane, event: number, room: number): string {
    const name = view.trace.nameOf(track, lane.key[event]);
    if (track.kind === "calls" || track.kind === "samples" || name.length > 300 || texts.width(name) + MIN_LENGTH_PX > room) return name;
    const both = `${name}  ${duration(lane.duration_ns[event])}`;
    return texts.width(both) <= room ? both : name;
  }

  /** Draws busy shares from the overview: of tracks that are not loaded, and bundles (threads that do the same). */
  private busy({ context }: Canvas, view: View, row: HeadRow | TrackRow, summary: Uint8Array, scale: Scale, colour: string): void {
    const { from_ns, to_ns } = view.trace.whole;
    const bin_ns = (to_ns - from_ns) / summary.length;
    context.fillStyle = colour;
    const top = row.top + 6;
    const height = row.height - 12;
    const first = Math.max(0, Math.floor((view.range.from_ns - from_ns) / bin_ns));
    const last = Math.min(summary.length, Math.ceil((view.range.to_ns - from_ns) / bin_ns));
    for (let bin = first; bin < last; bin += 1) {
      if (summary[bin] === 0) continue;
      const left = scale.x(from_ns + bin * bin_ns);
      const part = Math.max(2, (height * summary[bin]) / 255);
      context.fillRect(left, top + height - part, Math.max(1, bin_ns * scale.pixels_per_ns), part);
    }
  }

  /** Draws a counter as steps, on a scale from 0 or from a negative least value. Where the value is unknown nothing is drawn. */
  private counter({ context, texts, width }: Canvas, row: TrackRow, counter: Counter, scale: Scale): void {
    const { least, most } = counter;
    if (most === null || least === null) return;
    const colours = this.appearance.colours;
    const [low, high] = [Math.min(0, least), Math.max(0, most)];
    const bottom = row.top + row.height - 5;
    const height = row.height - 10;
    const y = (value: number): number => bottom - (high > low ? ((value - low) / (high - low)) * height : 0);
    context.fillStyle = colours.line;
    context.fillRect(0, Math.round(y(0)), width, 1);
    context.lineWidth = 1;
    context.fillStyle = context.strokeStyle = colours.counter;
    let first = counter.startingBefore(scale.range.from_ns);
    /** The height of the line in each column, or null where the value is unknown. */
    const line: (number | null)[] = [];
    for (let x = 0; x < width; x += 1) {
      const next = counter.startingBefore(scale.ns(x + 1));
      // The step in effect at the column's start counts, too.
      const from = Math.max(0, first - 1);
      const greatest = counter.mostOf(from, next);
      first = next;
      if (greatest === null) {
        line.push(null);
        continue;
      }
      // Where a column has many values, the line is their mean, and a paler band reaches to the greatest.
      const [top, at] = [y(greatest), next - from > 2 ? y(counter.meanOf(from, next)) : y(greatest)];
      context.globalAlpha = 0.25;
      context.fillRect(x, Math.min(at, y(0)), 1, Math.abs(y(0) - at));
      context.globalAlpha = 0.12;
      if (top < at) context.fillRect(x, top, 1, at - top);
      line.push(at);
    }
    context.globalAlpha = 1;
    context.beginPath();
    line.forEach((at, x) => {
      if (at === null) return;
      if (x === 0 || line[x - 1] === null) context.moveTo(x, at);
      else context.lineTo(x, at);
      context.lineTo(x + 1, at);
    });
    context.stroke();
    const unit = row.track.overview.counter?.unit ?? "count";
    this.scaleMark({ context, texts }, `most ${quantity(most, unit)}`, row.top + 11);
    if (low < 0) this.scaleMark({ context, texts }, `least ${quantity(least, unit)}`, row.top + row.height - 10);
  }

  /** Writes the least or greatest value of a counter at its left. */
  private scaleMark({ context, texts }: Pick<Canvas, "context" | "texts">, text: string, y: number): void {
    const { colours } = this.appearance;
    context.globalAlpha = 0.75;
    context.fillStyle = colours.background;
    context.fillRect(2, y - 7, texts.width(text) + 5, 13);
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    context.fillText(text, 4, y);
  }

  /** Draws a frame of `line` pixels around an event, if its lane is drawn. */
  private outline({ context, width }: Canvas, event: EventPlace | null, layout: Layout, scale: Scale, line: number): void {
    if (!event) return;
    const row = layout.rows.find((row): row is TrackRow => row.what === "track" && row.track === event.track);
    const range = eventRange(event);
    if (!row || event.lane >= row.lanes || !overlaps(range, { from_ns: scale.range.from_ns - 1, to_ns: scale.range.to_ns + 1 })) return;
    const left = Math.max(scale.x(range.from_ns), -4);
    const right = Math.min(scale.x(range.to_ns), width + 4);
    context.strokeStyle = line > 1 ? this.appearance.colours.text : this.appearance.colours.faint;
    context.lineWidth = line;
    context.strokeRect(left - 0.5, laneTop(row, event.lane) + 0.5, Math.max(right - left, 2) + 1, row.lane_px - 1);
  }

  /** Fades everything outside of the range that is aligned with the other side of a comparison. */
  private aligned({ context, width, height }: Canvas, view: View, scale: Scale, scroll: number): void {
    if (!view.aligned) return;
    const left = scale.x(view.aligned.from_ns);
    const right = scale.x(view.aligned.to_ns);
    context.globalAlpha = 0.6;
    context.fillStyle = this.appearance.colours.background;
    context.fillRect(0, scroll, Math.max(0, left), height);
    context.fillRect(right, scroll, Math.max(0, width - right), height);
    context.globalAlpha = 1;
    context.fillStyle = this.appearance.colours.accent;
    context.fillRect(left - 1, scroll, 1, height);
    context.fillRect(right, scroll, 1, height);
  }

  private selection({ context, height }: Canvas, view: View, scale: Scale, scroll: number): void {
    if (!view.selection) return;
    const left = scale.x(view.selection.from_ns);
    const right = scale.x(view.selection.to_ns);
    context.fillStyle = this.appearance.colours.selection;
    context.fillRect(left, scroll, right - left, height);
    context.fillStyle = this.appearance.colours.accent;
    context.fillRect(left - 0.5, scroll, 1, height);
    context.fillRect(right - 0.5, scroll, 1, height);
  }
}

/** The part of a lane in which events are drawn. */
type LanePart = "whole" | "upper" | "lower";

/** Returns the place of a part of a lane. */
function within(row: TrackRow, lane: number, part: LanePart): { top: number; height: number } {
  const [top, height] = [laneTop(row, lane) + 1, row.lane_px - 2];
  const half = Math.floor(height / 2);
  return part === "whole" ? { top, height } : part === "upper" ? { top, height: half } : { top: top + height - half, height: half };
}
