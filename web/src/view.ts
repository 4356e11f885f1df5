// A view of a trace: what of it is visible, selected and pointed at.

import type { Note } from "./data/notes.ts";
import type { Link } from "./data/row.ts";
import type { Place, Trace, Track } from "./data/trace.ts";
import type { Lane } from "./lane/lane.ts";
import { clamped, RangeHistory, length, type Range, widened } from "./time/range.ts";

/** An event of a track. */
export interface EventPlace extends Place {
  track: Track;
}

/** An arrow between two events. */
export interface Arrow {
  from: { track: string; start_ns: number; duration_ns: number; table: string; row: number };
  to: { track: string; start_ns: number; duration_ns: number; table: string; row: number };
  kind: "submits" | "depends";
}

export type Change = "notes" | "range" | "selection" | "event" | "hover" | "arrows" | "data";

export class View {
  range: Range;
  selection: Range | null = null;
  event: EventPlace | null = null;
  hovered: EventPlace | null = null;
  arrows: Arrow[] = [];
  /** In a comparison: what is put under the other side. */
  aligned: Range | null = null;
  /** Notes that are marked on the ruler. */
  notes: readonly Note[] = [];
  /** Time that the ruler calls 0. */
  origin_ns = 0;
  /** Counts what was picked: who goes somewhere later than somebody else picked does not go there. */
  picks = 0;
  /** What was picked before the trace was reset, to be found again. */
  private sought: { track: Track; start_ns: number; duration_ns: number } | null = null;
  private readonly history = new RangeHistory();
  private readonly listeners: ((change: Change) => void)[] = [];

  constructor(
    readonly trace: Trace,
    /** What can be shown: by itself the whole trace. */
    private readonly limits: () => Range = () => trace.whole,
  ) {
    this.range = clamped(widened(this.bounds, 0.01), this.bounds);
  }

  get bounds(): Range {
    return this.limits();
  }

  onChange(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  changed(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  /** Shows a range, as near as the trace allows. */
  show(range: Range, now_ms = performance.now()): void {
    const next = clamped(range, this.bounds);
    if (next.from_ns === this.range.from_ns && next.to_ns === this.range.to_ns) return;
    this.history.leave(this.range, now_ms);
    this.range = next;
    this.changed("range");
  }

  /** Follows a trace that grows; that is not a step to go back. */
  slide(range: Range): void {
    this.range = clamped(range, this.bounds);
    this.changed("range");
  }

  /** Shows everything. */
  fit(): void {
    this.show(widened(this.bounds, 0.01));
  }

  back(): boolean {
    const before = this.history.back();
    if (!before) return false;
    this.range = before;
    this.changed("range");
    return true;
  }

  select(range: Range | null): void {
    this.selection = range && length(range) > 0 ? range : null;
    this.changed("selection");
  }

  pick(event: EventPlace | null): void {
    this.picks += 1;
    this.sought = null;
    this.event = event;
    this.arrows = [];
    this.changed("event");
  }

  hover(event: EventPlace | null): void {
    const old = this.hovered;
    if (old?.track === event?.track && old?.lane === event?.lane && old?.index === event?.index) return;
    this.hovered = event;
    this.changed("hover");
  }

  /** The trace is about to be reset: lets go of its events, to find them again. */
  releaseEvents(): void {
    this.hover(null);
    if (!this.event) return;
    const { from_ns, to_ns } = eventRange(this.event);
    const sought = { track: this.event.track, start_ns: from_ns, duration_ns: to_ns - from_ns };
    this.pick(null);
    this.sought = sought;
  }

  /** The rows of a track were replaced: finds what is held of it again, or lets it go. */
  replaced(track: Track, before: readonly Lane[]): void {
    if (this.sought?.track === track) {
      const place = track.placeAt(this.sought.start_ns, this.sought.duration_ns);
      // In another part it may be.
      if (track.state !== "part") this.sought = null;
      if (place) this.pick({ track, ...place });
      return;
    }
    const again = (held: EventPlace): EventPlace | null => {
      const [old, now] = [before[held.lane], track.lanes[held.lane]];
      if (!old) return null;
      const [start_ns, duration_ns] = [old.start_ns[held.index], old.duration_ns[held.index]];
      if (now?.start_ns[held.index] === start_ns && now.duration_ns[held.index] === duration_ns) return held;
      const place = track.placeAt(start_ns, duration_ns);
      return place && { track, ...place };
    };
    if (this.hovered?.track === track) this.hover(again(this.hovered));
    if (this.event?.track !== track) return;
    const event = again(this.event);
    if (event === this.event) return;
    const held = before[this.event.lane];
    const { index } = this.event;
    this.pick(event);
    if (!event && held && track.state === "part") this.sought = { track, start_ns: held.start_ns[index], duration_ns: held.duration_ns[index] };
  }

  /** Whether something is picked, or is to be found again. */
  get holds(): boolean {
    return this.event !== null || this.sought !== null;
  }

  setArrows(arrows: Arrow[]): void {
    this.arrows = arrows;
    this.changed("arrows");
  }

  /** Moves the view so that `range` is in it, closer only where it would be too small to see. */
  reveal(range: Range): void {
    const inside = range.from_ns >= this.range.from_ns && range.to_ns <= this.range.to_ns;
    const visible = length(this.range);
    const wanted = Math.max(length(range), 1);
    if (inside && wanted > visible / 200) return;
    const span = wanted > visible / 200 && wanted < visible * 0.8 ? visible : wanted * 8;
    const middle = (range.from_ns + range.to_ns) / 2;
    this.show({ from_ns: middle - span / 2, to_ns: middle + span / 2 });
  }
}

/** An arrow's end of a link. */
export function arrowEnd(link: Pick<Link, "track" | "start_ns" | "duration_ns" | "table" | "row">): Arrow["from"] | null {
  if (link.track === null || link.start_ns === null) return null;
  return { track: link.track, start_ns: link.start_ns, duration_ns: link.duration_ns ?? 0, table: link.table, row: link.row };
}

/** The range of an event. */
export function eventRange(event: EventPlace): Range {
  const lane = event.track.lanes[event.lane];
  return { from_ns: lane.start_ns[event.index], to_ns: lane.end_ns(event.index) };
}

/** The same, but of a part of a gap the whole gap: its parts touch each other. */
export function wholeRange(event: EventPlace): Range {
  if (event.track.kind !== "gaps") return eventRange(event);
  const lane = event.track.lanes[event.lane];
  let [first, last] = [event.index, event.index];
  while (first > 0 && lane.end_ns(first - 1) >= lane.start_ns[first]) first -= 1;
  while (last + 1 < lane.count && lane.start_ns[last + 1] <= lane.end_ns(last)) last += 1;
  return { from_ns: lane.start_ns[first], to_ns: lane.end_ns(last) };
}
