// The timelines on the page: the main one with those of other ranks below it, or the two of a comparison. A side of a
// comparison is a trace, a label or a range; an instance is one place where a label was set, and a stretch is a range
// of a side that can be aligned.

import type { Appearance } from "./appearance.ts";
import type { Side } from "./comparison-sides.ts";
import { link, linkedViews, sideName, stretches, typicalInstance } from "./comparison-sides.ts";
import type { DataSource } from "./data/source.ts";
import type { Trace, Track } from "./data/trace.ts";
import { fill, h } from "./dom.ts";
import { duration } from "./time/format.ts";
import { length, type Range } from "./time/range.ts";
import { Timeline } from "./timeline/timeline.ts";
import { View } from "./view.ts";

/** The kinds of tracks that are shown in a comparison and for other ranks. */
const COMPARED_KINDS = ["work", "gaps", "labels"];

/** Makes the timelines, and shows either all of them or those of a comparison. */
export class TimelineStack {
  readonly element = h("div", { class: "timeline-stack" });
  readonly main: Timeline;
  /** The timelines below the main one: traces of the same program and clock. */
  private readonly others: Timeline[];
  /** The timelines of the comparison; null without one. */
  private pair: [Timeline, Timeline] | null = null;
  /** Whether the sides are drawn over each other, in the upper and the lower half of each lane. */
  private laidOver = false;
  /** The sides of the comparison with their ranges, and `at`, the index of those that are shown. */
  private sides: { before: Side; after: Side; stretches: [Range[], Range[]]; at: number } | null = null;

  constructor(
    readonly view: View,
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly appearance: Appearance,
    /** Loads tracks that have come into sight of a view. */
    private readonly wanted: (tracks: Track[], view: View) => void,
    /** Called with the index of the shown instance and the number of instances; with 0 and 0 after a comparison. */
    private readonly instances: (shown: number, of_all: number) => void,
    /** Called with each view that is made for a comparison. */
    private readonly made: (view: View) => void,
    beside: readonly Trace[],
  ) {
    this.main = new Timeline(
      view,
      appearance,
      { shown: hasRows, name: "Timeline", chooses: true },
      (tracks) => wanted(tracks, view),
    );
    this.others = beside.map((trace) => this.besideMain(trace));
    const views = [view, ...this.others.map((timeline) => timeline.view)];
    link(views);
    pickOne(views);
    this.showMain();
  }

  /** Makes the timeline of another rank, with fewer kinds of tracks. */
  private besideMain(trace: Trace): Timeline {
    const view = new View(trace, () => this.view.bounds);
    const timeline = new Timeline(view, this.appearance, { shown: (track) => hasRows(track) && COMPARED_KINDS.includes(track.kind), name: trace.overview.name, terse: true }, (tracks) => this.wanted(tracks, view));
    timeline.element.classList.add("beside");
    timeline.element.dataset.trace = trace.overview.name;
    return timeline;
  }

  private showMain(): void {
    fill(this.element, this.main.element, this.others.map((timeline) => timeline.element));
    this.element.classList.toggle("several-ranks", this.others.length > 0);
  }

  get comparing(): boolean {
    return this.pair !== null;
  }

  /** The views of all timelines, hidden ones included. */
  get views(): View[] {
    return [this.main, ...this.others, ...(this.pair ?? [])].map((timeline) => timeline.view);
  }

  get timelines(): Timeline[] {
    return this.pair ?? [this.main, ...this.others];
  }

  /** Draws all timelines with changed tracks or colours, hidden ones included. */
  renew(): void {
    for (const timeline of [this.main, ...this.others, ...(this.pair ?? [])]) timeline.renew();
  }

  /** Aligns two sides below each other, if that is still `wanted` when their ranges are known. Of labels the median instance is shown first. */
  async compare(before: Side, after: Side, wanted: () => boolean, instance?: number): Promise<void> {
    const [first, second] = [this.traces[before.trace], this.traces[after.trace]];
    if (!first || !second) throw new Error("One of the traces of this comparison is not open.");
    const found: [Range[], Range[]] = [await stretches(this.source, first, before), await stretches(this.source, second, after)];
    if (!wanted()) return;
    if (found[0].length === 0 || found[1].length === 0) throw new Error("One side has no times, so the two cannot be aligned.");
    this.sides = { before, after, stretches: found, at: Math.min(instance ?? typicalInstance(found), found[0].length - 1, found[1].length - 1) };
    this.showPair();
  }

  /** Lays the sides of the comparison over each other, or shows them below each other. */
  layOver(over: boolean): void {
    this.laidOver = over;
    if (this.pair) this.showPair();
  }

  /** Shows the next or the previous instance of the labels on both sides. */
  step(by: number): void {
    if (!this.sides) return;
    const most = Math.min(this.sides.stretches[0].length, this.sides.stretches[1].length);
    this.sides.at = (this.sides.at + by + most) % most;
    this.showPair();
  }

  private showPair(): void {
    const { sides } = this;
    if (!sides) return;
    const stretch: [Range, Range] = [sides.stretches[0][sides.at], sides.stretches[1][sides.at]];
    const traces: [Trace, Trace] = [this.traces[sides.before.trace], this.traces[sides.after.trace]];
    const views = linkedViews({ trace: traces[0], stretch: stretch[0] }, { trace: traces[1], stretch: stretch[1] });
    const most = Math.min(sides.stretches[0].length, sides.stretches[1].length);
    const made = views.map((view, number) => {
      const side = number === 0 ? sides.before : sides.after;
      const timeline = new Timeline(
        view,
        this.appearance,
        { shown: (track) => hasRows(track) && COMPARED_KINDS.includes(track.kind), name: `${number === 0 ? "Before" : "After"}: ${sideName(side, this.traces)}` },
        (tracks) => this.wanted(tracks, view),
      );
      timeline.element.classList.add("compared", number === 0 ? "before" : "after");
      timeline.element.dataset.side = number === 0 ? "before" : "after";
      timeline.element.dataset.stretchNs = length(stretch[number]).toFixed(0);
      timeline.name(h("b", { title: sideName(side, this.traces) }, sideName(side, this.traces)), h("span", { class: "note" }, ` ${duration(Math.round(length(stretch[number])))}`));
      this.made(view);
      return timeline;
    });
    pickOne(views);
    this.releaseEvents();
    this.pair = [made[0], made[1]];
    if (this.laidOver) {
      made[0].layOver({ view: views[1], wanted: (tracks) => this.wanted(tracks, views[1]) });
      made[0].name(h("span", { title: `Upper half: ${sideName(sides.before, this.traces)}. Lower half: ${sideName(sides.after, this.traces)}.` }, h("b", {}, "▀"), " before  ", h("b", {}, "▄"), " after"));
    }
    fill(this.element, made[0].element, this.laidOver ? null : made[1].element);
    this.element.classList.remove("several-ranks");
    this.element.classList.add("comparing");
    this.instances(sides.at, most);
  }

  /** Clears the events that are picked in views that are about to be hidden, so that their details go, too. */
  private releaseEvents(): void {
    for (const { view } of this.timelines) if (view.event) view.pick(null);
  }

  /** Ends the comparison and shows the main timeline again. */
  stop(): void {
    this.releaseEvents();
    this.pair = null;
    this.sides = null;
    this.element.classList.remove("comparing");
    this.showMain();
    this.renew();
    this.instances(0, 0);
  }

  /** The compared sides, with the instance unless it is the one that is shown first; null without a comparison. */
  get comparedSides(): { before: Side; after: Side; instance?: number } | null {
    if (!this.sides) return null;
    const { before, after, stretches, at } = this.sides;
    return { before, after, ...(at === typicalInstance(stretches) ? {} : { instance: at }) };
  }
}

/** Clears the picked events of the other views when one is picked. */
function pickOne(views: readonly View[]): void {
  for (const view of views) {
    view.onChange((change) => {
      if (change !== "event" || !view.event) return;
      for (const other of views) if (other !== view && other.holds) other.pick(null);
    });
  }
}

/** Returns whether a track has anything to show: rows, values, or work without times. */
function hasRows(track: Track): boolean {
  return track.overview.rows === null || track.overview.rows > 0 || track.isCounter || track.overview.untimed > 0;
}
