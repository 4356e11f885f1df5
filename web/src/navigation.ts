// Moves the view to rows, gaps, matches of the search, and neighbouring events. A row is an event's place in a table
// of the trace. Moves that need answers end without effect when a later one begins.

import type { Appearance } from "./appearance.ts";
import { deviceOfGaps } from "./data/gaps.ts";
import { isMissing } from "./data/missing.ts";
import { contains } from "./data/slices.ts";
import type { DataSource } from "./data/source.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { Gap } from "./generated/protocol.ts";
import { LatestRequest } from "./latest-request.ts";
import type { GapsPanel } from "./panels/gaps.ts";
import type { SqlPlace } from "./panels/sql.ts";
import { nextHit, steppedLanes } from "./search-hits.ts";
import { length, type Range, widened } from "./time/range.ts";
import type { TimelineStack } from "./timeline-stack.ts";
import type { Timeline } from "./timeline/timeline.ts";
import { type EventPlace, eventRange, type View, wholeRange } from "./view.ts";

/** The visible time before and after a row that is shown from afar, in lengths of the row. */
const CONTEXT_LENGTHS = 4;

/** Moves the views of the page. */
export class Navigation {
  private readonly going = new LatestRequest();
  /** The gap that was shown last, with the event and range that were shown of it. */
  private gap: { start_ns: number; event: EventPlace | null; range: Range } | null = null;
  /** A move to a gap that waits for the analysis of the gaps. */
  private waiting: { order: "cost" | "time"; forward: boolean } | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly source: DataSource,
    private readonly timelineStack: TimelineStack,
    private readonly gaps: GapsPanel,
    private readonly stopComparing: () => void,
    private readonly showMessage: (problem: string) => void,
  ) {}

  private get view(): View {
    return this.timelineStack.view;
  }

  /** Begins a move, and clears the message about an earlier one. */
  private begin(): () => boolean {
    this.showMessage("");
    this.waiting = null;
    return this.going.begin();
  }

  /** Shows and picks a row, unless the reader goes elsewhere or picks another event meanwhile. With `stays` the visible range does not change. */
  async goTo(view: View, table: string, row: number, stays = false): Promise<void> {
    const { trace, picks } = view;
    const isLatest = this.begin();
    const wanted = (): boolean => isLatest() && view.picks === picks;
    try {
      const found = table === "samples" ? await trace.sampleRow(row) : await this.source.row(trace.number, table, row);
      if (!wanted()) return;
      const track = trace.track(found.track);
      if (!track || found.start_ns === null) return this.showMessage(found.times_unknown_because ?? "This row is not drawn, because its times are unknown.");
      await trace.awaitTrack(track);
      if (track.state === "part") {
        // A track that is too large to be held has rows only near the visible range.
        const range = { from_ns: found.start_ns, to_ns: found.start_ns + (found.duration_ns ?? 0) };
        if (!wanted()) return;
        if (!track.has(view.range) || !contains(view.range, range)) view.show(widened(range, CONTEXT_LENGTHS));
        await trace.awaitRows(track, view.range);
      }
      // The row may be newer than the loaded track.
      if (!track.placeOf(table, row, found.start_ns) && trace.overview.live) await trace.loadTrack(track);
      if (!wanted()) return;
      const place = track.placeOf(table, row, found.start_ns);
      if (!place) return this.showMessage(track.state === "part" ? "Too much other work runs beside this row to draw it: zoom in." : "This row is not drawn.");
      if (view === this.view) this.stopComparing();
      const timeline = this.timelineStack.timelines.find((timeline) => timeline.view === view);
      timeline?.renew();
      if (!stays) view.reveal({ from_ns: found.start_ns, to_ns: found.start_ns + (found.duration_ns ?? 0) });
      view.pick({ track, ...place });
      timeline?.bringIntoSight({ track, ...place });
    } catch (error) {
      if (wanted()) this.showMessage(errorMessage(error));
    }
  }

  /** Shows the row that a row of an SQL answer stands for, or its time where the row is not known. */
  async goToAnswer({ trace, start_ns, duration_ns, row }: SqlPlace): Promise<void> {
    const isLatest = this.begin();
    const timeline = this.timelineStack.timelines.find(({ view }) => view.trace === trace) ?? (trace === this.view.trace ? this.timelineStack.main : null);
    if (!timeline) return this.showMessage(`${trace.overview.name} is not on the timeline now.`);
    const { view } = timeline;
    const { picks } = view;
    const range = { from_ns: start_ns, to_ns: start_ns + duration_ns };
    if (row?.table === "gaps") {
      const part = partOfGap(trace, range);
      if (part) return this.show(timeline, part);
    }
    const found = row && row.table !== "gaps" ? await this.source.rowWith(trace.number, row.table, row.values).catch(() => null) : null;
    if (!isLatest() || view.picks !== picks) return;
    if (row && found && !isMissing(found)) return this.goTo(view, row.table, found.row);
    view.reveal(range);
    view.select(duration_ns > 0 ? range : null);
  }

  private show(timeline: Timeline, event: EventPlace): void {
    timeline.view.reveal(eventRange(event));
    timeline.view.pick(event);
    timeline.bringIntoSight(event);
  }

  /** Shows a whole gap and picks its longest part with a cause. */
  async goToGap(gap: Gap, cause: string = gap.cause): Promise<void> {
    const range = { from_ns: gap.start_ns, to_ns: gap.start_ns + gap.duration_ns };
    const isLatest = this.begin();
    this.stopComparing();
    const margin = length(range) * 1.5;
    this.view.show({ from_ns: range.from_ns - margin, to_ns: range.to_ns + margin });
    this.root.dataset.gap = String(gap.start_ns);
    this.gap = { start_ns: gap.start_ns, event: null, range: this.view.range };
    const { picks, trace } = this.view;
    for (const track of trace.tracks) {
      if (deviceOfGaps(track.id) !== gap.device) continue;
      const came = !track.has(this.view.range);
      await trace.awaitRows(track, this.view.range);
      if (came) this.timelineStack.main.renew();
      if (!isLatest() || this.view.picks !== picks) return;
      const of_cause = gap.parts.filter((part) => part.cause === cause);
      const part = of_cause.sort((a, b) => b.duration_ns - a.duration_ns)[0] ?? gap.parts[0];
      const middle = part ? part.start_ns + part.duration_ns / 2 : range.from_ns;
      for (let lane = 0; lane < track.lanes.length; lane += 1) {
        const index = track.lanes[lane].at(middle);
        const found = index >= 0 ? { track, lane, index } : null;
        if (!found || Math.abs(eventRange(found).from_ns - (part?.start_ns ?? range.from_ns)) > 1) continue;
        this.view.pick(found);
        if (this.gap) this.gap.event = found;
        this.timelineStack.main.bringIntoSight(found);
        return;
      }
    }
  }

  /** Goes to another gap, in order of cost or of time, from the one that is picked or was gone to last; before the gaps are analysed, as soon as they are. */
  jump(order: "cost" | "time", forward: boolean): void {
    const found = order === "cost" ? this.gaps.jumpByCost(this.picked(), forward) : this.gaps.jumpInTime(this.picked(), this.view.range.from_ns, forward);
    if (found) return;
    this.waiting = this.gaps.isLoading ? { order, forward } : null;
    this.showMessage(this.waiting ? "The trace is being analysed: the gap is shown as soon as that is done." : this.gaps.why);
  }

  /** Does the move that waited for the gaps, once they are there. */
  resume(): void {
    if (!this.waiting || this.gaps.isLoading) return;
    const { order, forward } = this.waiting;
    this.waiting = null;
    this.showMessage("");
    this.jump(order, forward);
  }

  /** Goes to the next or the previous match of the search. */
  hit(appearance: Appearance, forward: boolean): void {
    const { view } = this;
    const lanes = steppedLanes(view.trace, appearance);
    const from = lanes.some(({ track }) => track === view.event?.track) ? view.event : null;
    const next = nextHit(lanes, from, view.range.from_ns, forward);
    if (!next) return this.showMessage("No loaded work, call or label matches the search.");
    this.goToEvent(next);
  }

  /** Shows and picks an event of the main timeline. */
  goToEvent(event: EventPlace): void {
    this.begin();
    this.stopComparing();
    this.view.reveal(eventRange(event));
    this.view.pick(event);
    this.timelineStack.main.bringIntoSight(event);
  }

  /** Returns the start of the gap that is picked, or that is still shown as it was gone to; null for none. */
  private picked(): number | null {
    const { gap, view } = this;
    if (gap && (view.event ? view.event === gap.event : view.range === gap.range)) return gap.start_ns;
    return view.event?.track.kind === "gaps" ? wholeRange(view.event).from_ns : null;
  }

  /** Goes to the event that is `by` places further in the same lane. */
  step(by: number): void {
    const event = this.view.event ?? this.firstInSight();
    if (!event) return;
    const lane = event.track.lanes[event.lane];
    const index = this.view.event ? event.index + by : event.index;
    if (index < 0 || index >= lane.count) return;
    this.begin();
    const next = { ...event, index };
    this.view.reveal(eventRange(next));
    this.view.pick(next);
    this.timelineStack.main.bringIntoSight(next);
  }

  /** Returns the first visible work, where stepping through events begins. */
  private firstInSight(): EventPlace | null {
    for (const track of this.view.trace.tracks) {
      if (track.kind !== "work") continue;
      const { from, to } = track.lanes[0]?.within(this.view.range) ?? { from: 0, to: 0 };
      if (from < to) return { track, lane: 0, index: from };
    }
    return null;
  }
}

/** Returns the part of a gap that begins or ends with a range, if only one device has such a part. */
function partOfGap(trace: Trace, { from_ns, to_ns }: Range): EventPlace | null {
  const middle = (from_ns + to_ns) / 2;
  const found = trace.tracks.flatMap((track) =>
    track.kind === "gaps" ? track.lanes.map((it, lane) => ({ track, lane, index: it.at(middle) })).filter(({ index }) => index >= 0) : [],
  );
  const exact = found.filter((place) => eventRange(place).from_ns === from_ns || eventRange(place).to_ns === to_ns);
  return exact.length === 1 ? exact[0] : null;
}
