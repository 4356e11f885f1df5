// A lane: events that do not overlap, in order of time, with indices that give the busy time, in which an event runs,
// and the longest event of any range in logarithmic time.

import type { Range } from "../time/range.ts";
import { Peaks } from "./peaks.ts";

/** Numbers of events' keys, in the narrowest type that holds them. */
export type Integers = Uint8Array | Uint16Array | Uint32Array;
/** Lengths of events in nanoseconds; fractions or long ones need `Float64Array`. */
export type Durations = Uint32Array | Float64Array;

/** The number of events in a block, for which the index `before` has one sum. */
const BLOCK = 64;

/** The events of a lane as columns of equal length. */
export interface LaneColumns {
  /** The start of each event in nanoseconds since the trace's start, ascending. */
  start_ns: Float64Array;
  /** The duration of each event. */
  duration_ns: Durations;
  /** The key of each event (a kernel, a call, a cause), by which it is coloured and filtered. */
  key: Integers;
}

/** The events of one lane. Methods take and return their indices in order of time; `from..to` excludes `to`. */
export class Lane {
  readonly count: number;
  readonly start_ns: Float64Array;
  readonly duration_ns: Durations;
  readonly key: Integers;
  /** The sum of the durations before each block, and after the last. */
  private readonly before: Float64Array;
  private readonly peaks: Peaks;

  constructor(columns: LaneColumns) {
    this.start_ns = columns.start_ns;
    this.duration_ns = columns.duration_ns;
    this.key = columns.key;
    this.count = Math.min(columns.start_ns.length, columns.duration_ns.length, columns.key.length);
    const blocks = Math.ceil(this.count / BLOCK);
    this.before = new Float64Array(blocks + 1);
    let sum = 0;
    for (let block = 0; block < blocks; block += 1) {
      this.before[block] = sum;
      const end = Math.min((block + 1) * BLOCK, this.count);
      for (let i = block * BLOCK; i < end; i += 1) sum += this.duration_ns[i];
    }
    this.before[blocks] = sum;
    this.peaks = new Peaks(this.duration_ns, this.count);
  }

  end_ns(i: number): number {
    return this.start_ns[i] + this.duration_ns[i];
  }

  /** Counts the events that start before `ns`. */
  startingBefore(ns: number, low = 0, high = this.count): number {
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start_ns[middle] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Counts the events that start before `ns`, from a guess that is not too large, in steps that double. */
  private startingBeforeFrom(ns: number, guess: number): number {
    let step = 1;
    let low = guess;
    while (low + step <= this.count && this.start_ns[low + step - 1] < ns) {
      low += step;
      step *= 2;
    }
    return this.startingBefore(ns, low, Math.min(low + step, this.count));
  }

  /** Returns the events `from..to` that overlap a range; an event without length counts where it is. */
  within(range: Range): { from: number; to: number } {
    const to = this.startingBefore(range.to_ns);
    let from = this.startingBefore(range.from_ns);
    if (from > 0 && this.end_ns(from - 1) > range.from_ns) from -= 1;
    return { from, to };
  }

  /** Sums the durations of the first `i` events. */
  sumBefore(i: number): number {
    const block = Math.floor(i / BLOCK);
    let sum = this.before[block];
    for (let at = block * BLOCK; at < i; at += 1) sum += this.duration_ns[at];
    return sum;
  }

  /** Returns the busy time before `ns`, given how many events start before it. */
  private busyBefore(ns: number, starting: number): number {
    if (starting === 0) return 0;
    const over = this.end_ns(starting - 1) - ns;
    return this.sumBefore(starting) - (over > 0 ? over : 0);
  }

  /** Returns the time in a range in which an event of this lane ran. */
  busy(range: Range): number {
    return (
      this.busyBefore(range.to_ns, this.startingBefore(range.to_ns)) - this.busyBefore(range.from_ns, this.startingBefore(range.from_ns))
    );
  }

  /** Returns the longest of the events `from..to`, -1 for none. */
  longestOf(from: number, to: number): number {
    return this.peaks.indexOfMax(from, to);
  }

  /**
   * Returns the event that runs at a time, and of two events the later; an event without length counts where it is.
   * -1 for none.
   */
  at(ns: number): number {
    const i = this.startingBefore(ns) - 1;
    const last = this.start_ns[i + 1] === ns ? i + 1 : i;
    return last >= 0 && (this.end_ns(last) > ns || this.start_ns[last] === ns) ? last : -1;
  }

  /** Returns the event at a time, otherwise the nearest, at most `reach_ns` away; -1 for none. */
  nearest(ns: number, reach_ns: number): number {
    const hit = this.at(ns);
    if (hit >= 0) return hit;
    const next = this.startingBefore(ns);
    const previous = next - 1;
    const after = next < this.count ? this.start_ns[next] - ns : Infinity;
    const before = previous >= 0 ? ns - this.end_ns(previous) : Infinity;
    if (Math.min(after, before) > reach_ns) return -1;
    return after < before ? next : previous;
  }

  /**
   * Splits a range into equal columns and visits those that have events, from left to right, with the events
   * `from..to` that overlap the column and the time in it in which they run.
   */
  columns(range: Range, columns: number, visit: (column: number, from: number, to: number, busy_ns: number) => void): void {
    const step = (range.to_ns - range.from_ns) / columns;
    let starting = this.startingBefore(range.from_ns);
    let busy = this.busyBefore(range.from_ns, starting);
    for (let column = 0; column < columns; column += 1) {
      const end_ns = range.from_ns + step * (column + 1);
      const carried = starting > 0 && this.end_ns(starting - 1) > range.from_ns + step * column ? 1 : 0;
      const next = this.startingBeforeFrom(end_ns, starting);
      if (next > starting || carried) {
        const until = this.busyBefore(end_ns, next);
        visit(column, starting - carried, next, until - busy);
        busy = until;
      }
      starting = next;
    }
  }

  /** Returns the events for which `keep` holds as a lane of its own, with their indices in this lane. */
  filtered(keep: (i: number) => boolean): { lane: Lane; place: Uint32Array } {
    let kept = 0;
    const marks = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i += 1) if (keep(i)) kept += marks[i] = 1;
    const start_ns = new Float64Array(kept);
    const duration_ns = this.duration_ns instanceof Float64Array ? new Float64Array(kept) : new Uint32Array(kept);
    const key = new Uint32Array(kept);
    const place = new Uint32Array(kept);
    for (let i = 0, at = 0; i < this.count; i += 1) {
      if (!marks[i]) continue;
      start_ns[at] = this.start_ns[i];
      duration_ns[at] = this.duration_ns[i];
      key[at] = this.key[i];
      place[at++] = i;
    }
    return { lane: new Lane({ start_ns, duration_ns, key }), place };
  }
}
