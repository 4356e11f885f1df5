// Turns a lane into rectangles: one for each event where events are wide enough, otherwise pixel columns with their
// busy share, which is the part of their time in which an event runs. The key of an event is the number of what it is
// coloured by: its kernel, call or cause. Neighbouring columns with one share and one key become one rectangle.

import type { Slices } from "../data/slices.ts";
import type { Scale } from "../time/range.ts";
import type { Lane } from "./lane.ts";

/** The number of steps in which busy shares are drawn, so that columns that look the same become one rectangle. */
export const LEVELS = 16;

/** Rectangles to draw: the first `count` entries of the arrays, which are reused for each drawing. */
export class Runs {
  count = 0;
  /** Whether each rectangle is one event; otherwise it covers pixel columns. */
  exact = true;
  /** The edges of each rectangle in pixels. */
  left = new Float32Array(256);
  right = new Float32Array(256);
  /** The busy share, from 1 to `LEVELS`; `LEVELS` for single events. */
  level = new Uint8Array(256);
  /** After `fillFromLane` the index of the event, or of the longest one that the rectangle covers; after `fillFromSlices` a key: that of the longest event in the busiest slice. */
  event = new Uint32Array(256);

  /** Returns the events that have a rectangle of at least `least_px` of their own, with its ends: all of them, or where columns are drawn those that are wide among narrow ones. */
  *wide(lane: Lane, scale: Scale, least_px: number): Iterable<{ event: number; left: number; right: number }> {
    const right_px = scale.left_px + scale.width_px;
    for (let i = 0; i < this.count; i += 1) {
      if (this.right[i] - this.left[i] < least_px) continue;
      const event = this.event[i];
      const left = this.exact ? this.left[i] : Math.max(scale.x(lane.start_ns[event]), scale.left_px);
      const right = this.exact ? this.right[i] : Math.min(scale.x(lane.end_ns(event)), right_px);
      if (right - left >= least_px) yield { event, left, right };
    }
  }

  private push(left: number, right: number, level: number, event: number): void {
    if (this.count === this.left.length) this.grow();
    this.left[this.count] = left;
    this.right[this.count] = right;
    this.level[this.count] = level;
    this.event[this.count] = event;
    this.count += 1;
  }

  private grow(): void {
    const grown = <T extends Float32Array | Uint8Array | Uint32Array>(old: T): T => {
      const larger = new (old.constructor as new (size: number) => T)(old.length * 2);
      larger.set(old);
      return larger;
    };
    this.left = grown(this.left);
    this.right = grown(this.right);
    this.level = grown(this.level);
    this.event = grown(this.event);
  }

  /** Fills in a lane within the scale's range, from slices: equal parts of time with a busy share, not events. */
  fillFromSlices(slices: Slices, lane: number, scale: Scale): this {
    this.count = 0;
    this.exact = false;
    const { busy, key } = slices.lanes[lane];
    const { from_ns } = slices.range;
    const end_px = scale.left_px + scale.width_px;
    const first = Math.max(0, Math.floor((scale.range.from_ns - from_ns) / slices.slice_ns));
    const past = Math.min(slices.count, Math.ceil((scale.range.to_ns - from_ns) / slices.slice_ns));
    // Slices narrower than a pixel are merged.
    const each = Math.max(1, Math.round(1 / (slices.slice_ns * scale.pixels_per_ns)));
    for (let slice = first - (first % each); slice < past; slice += each) {
      const end = Math.min(slice + each, slices.count);
      let [sum, most] = [0, slice];
      for (let i = slice; i < end; i += 1) {
        sum += busy[i];
        if (busy[i] > busy[most]) most = i;
      }
      if (sum === 0) continue;
      const level = Math.max(1, Math.round((sum / (end - slice) / 255) * LEVELS));
      const left = Math.max(scale.x(from_ns + slice * slices.slice_ns), scale.left_px);
      const right = Math.min(scale.x(from_ns + end * slices.slice_ns), end_px);
      const last = this.count - 1;
      if (last >= 0 && this.level[last] === level && this.event[last] === key[most] && Math.abs(this.right[last] - left) < 0.01) this.right[last] = right;
      else this.push(left, right, level, key[most]);
    }
    return this;
  }

  /** Fills in the events of a lane within the scale's range. A single event is at least `least_px` wide. */
  fillFromLane(lane: Lane, scale: Scale, least_px = 1): this {
    this.count = 0;
    const { from, to } = lane.within(scale.range);
    // With fewer than two pixels for each event, shares say more than single events.
    this.exact = (to - from) * 2 <= scale.width_px;
    const right_px = scale.left_px + scale.width_px;
    if (this.exact) {
      for (let i = from; i < to; i += 1) {
        const left = Math.max(scale.x(lane.start_ns[i]), scale.left_px);
        const right = Math.min(scale.x(lane.end_ns(i)), right_px);
        this.push(left, Math.max(right, left + least_px), LEVELS, i);
      }
      return this;
    }
    const columns = Math.max(1, Math.floor(scale.width_px));
    const column_ns = (scale.range.to_ns - scale.range.from_ns) / columns;
    const column_px = scale.width_px / columns;
    lane.columns(scale.range, columns, (column, first, past, busy_ns) => {
      const share = busy_ns / column_ns;
      const level = Math.max(1, Math.min(LEVELS, Math.round(share * LEVELS)));
      const event = past - first === 1 ? first : lane.longestOf(first, past);
      const left = scale.left_px + column * column_px;
      const last = this.count - 1;
      if (
        last >= 0 &&
        this.level[last] === level &&
        Math.abs(this.right[last] - left) < 0.01 &&
        lane.key[this.event[last]] === lane.key[event]
      ) {
        this.right[last] = left + column_px;
        if (lane.duration_ns[event] > lane.duration_ns[this.event[last]]) this.event[last] = event;
      } else {
        this.push(left, left + column_px, level, event);
      }
    });
    return this;
  }
}
