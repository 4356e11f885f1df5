// A view of a trace: its visible range, selection, picked event and pointed-at event. Listeners are told of changes.
// Several views may show one trace. Rows are replaced while a trace loads; a view then finds its events again.

import type { LanePlace, Trace, Track } from "./data/trace.ts";
import type { Link, Note } from "./generated/protocol.ts";
import type { Lane } from "./lane/lane.ts";
import { clamped, RangeHistory, length, type Range, widened } from "./time/range.ts";

/** An event of a track. */
export interface EventPlace extends LanePlace {
  track: Track;
}

/** An arrow between two events. */
export interface Arrow {
  from: { track: string; start_ns: number; duration_ns: number; table: string; row: number };
  to: { track: string; start_ns: number; duration_ns: number; table: string; row: number };
  kind: "submits" | "depends";
}

/** What has changed in a view; `data` means that rows, names or findings have arrived. */
export type Change = "notes" | "range" | "selection" | "event" | "hover" | "arrows" | "data";

/** What one timeline shows of a trace. Methods that change it tell the listeners. */
export class View {
  range: Range;
  selection: Range | null = null;
  event: EventPlace | null = null;
  hovered: EventPlace | null = null;
  arrows: Arrow[] = [];
  /** The range that is aligned with the other side of a comparison. */
  aligned: Range | null = null;
  /** The notes that are marked on the ruler. */
  notes: readonly Note[] = [];
  /** The time that the ruler shows as 0. */
  origin_ns = 0;
  /** The number of picks so far. A slow move compares it, so that it does not override a later pick. */
  picks = 0;
  /** The event that was picked before its rows were dropped, to be found again. */
  private awaited: { track: Track; start_ns: number; duration_ns: number } | null = null;
  private readonly history = new RangeHistory();
  private readonly listeners: ((change: Change) => void)[] = [];

  constructor(
    readonly trace: Trace,
    /** Returns the bounds of the visible range; by default the whole trace. */
    private readonly limits: () => Range = () => trace.whole,
  ) {
    this.range = clamped(widened(this.bounds, 0.01), this.bounds);
  }

  /** The range within which the visible range stays, with a small margin. */
  get bounds(): Range {
    return this.limits();
  }

  onChange(listener: (change: Change) => void): void {
    this.listeners.push(listener);
  }

  changed(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  /** Shows a range, as near as the bounds allow. */
  show(range: Range, now_ms = performance.now()): void {
    const next = clamped(range, this.bounds);
    if (next.from_ns === this.range.from_ns && next.to_ns === this.range.to_ns) return;
    this.history.leave(this.range, now_ms);
    this.range = next;
    this.changed("range");
  }

  /** Moves the visible range with a trace that grows, without an entry in the history. */
  slide(range: Range): void {
    this.range = clamped(range, this.bounds);
    this.changed("range");
  }

  /** Shows the whole trace. */
  fit(): void {
    this.show(widened(this.bounds, 0.01));
  }

  /** Shows the range that was visible before, and returns whether there was one. */
  back(): boolean {
    const before = this.history.back();
    if (!before) return false;
    this.range = before;
    this.changed("range");
    return true;
  }

  /** Selects a range; an empty one or null clears the selection. */
  select(range: Range | null): void {
    this.selection = range && length(range) > 0 ? range : null;
    this.changed("selection");
  }

  /** Picks an event, or none, and clears the arrows of the one before. */
  pick(event: EventPlace | null): void {
    this.picks += 1;
    this.awaited = null;
    this.event = event;
    this.arrows = [];
    this.changed("event");
  }

  /** Sets the event under the pointer; the listeners are told only of another event. */
  hover(event: EventPlace | null): void {
    const old = this.hovered;
    if (old?.track === event?.track && old?.lane === event?.lane && old?.index === event?.index) return;
    this.hovered = event;
    this.changed("hover");
  }

  /** Drops all events before the trace is reset, and remembers the picked one. */
  releaseEvents(): void {
    this.hover(null);
    if (!this.event) return;
    const { from_ns, to_ns } = eventRange(this.event);
    const awaited = { track: this.event.track, start_ns: from_ns, duration_ns: to_ns - from_ns };
    this.pick(null);
    this.awaited = awaited;
  }

  /** Finds the picked and the pointed-at event again after the rows of a track were replaced, or drops them. */
  replaced(track: Track, before: readonly Lane[]): void {
    if (this.awaited?.track === track) {
      const place = track.placeAt(this.awaited.start_ns, this.awaited.duration_ns);
      // In a track in parts, a later part may have the event.
      if (track.state !== "part") this.awaited = null;
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
    if (!event && held && track.state === "part") this.awaited = { track, start_ns: held.start_ns[index], duration_ns: held.duration_ns[index] };
  }

  /** Returns whether an event is picked, or is to be found again. */
  get holds(): boolean {
    return this.event !== null || this.awaited !== null;
  }

  /** Draws these arrows until another event is picked. */
  setArrows(arrows: Arrow[]): void {
    this.arrows = arrows;
    this.changed("arrows");
  }

  /** Shows `range`, and zooms in only where it would be too small to see. */
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

/** Returns the end of an arrow at a linked row; null where its times are unknown. */
export function arrowEnd(link: Pick<Link, "track" | "start_ns" | "duration_ns" | "table" | "row">): Arrow["from"] | null {
  if (link.track === null || link.start_ns === null) return null;
  return { track: link.track, start_ns: link.start_ns, duration_ns: link.duration_ns ?? 0, table: link.table, row: link.row };
}

export function eventRange(event: EventPlace): Range {
  const lane = event.track.lanes[event.lane];
  return { from_ns: lane.start_ns[event.index], to_ns: lane.end_ns(event.index) };
}

/** Returns the range of an event; for a part of a gap, that of the whole gap, whose parts touch each other. */
export function wholeRange(event: EventPlace): Range {
  if (event.track.kind !== "gaps") return eventRange(event);
  const lane = event.track.lanes[event.lane];
  let [first, last] = [event.index, event.index];
  while (first > 0 && lane.end_ns(first - 1) >= lane.start_ns[first]) first -= 1;
  while (last + 1 < lane.count && lane.start_ns[last + 1] <= lane.end_ns(last)) last += 1;
  return { from_ns: lane.start_ns[first], to_ns: lane.end_ns(last) };
}
