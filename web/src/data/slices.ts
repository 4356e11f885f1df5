// Equal slices of a range of time, which stand for the events of a lane (events that do not overlap) where it has too
// many of them.

import { length, type Range } from "../time/range.ts";
import { column, type Frame } from "./frame.ts";

/** How many times longer than the visible range the slices may be: then about one of them is left for each pixel. */
const MAX_ZOOM = 4;

/** The slices of one lane. */
export interface SlicedLane {
  /** The share of each slice in which an event ran, times 255; 0 only where none ran. */
  busy: Uint8Array;
  /** The name of the event that ran longest in each slice, as its index in the strings of the trace. */
  key: Uint32Array;
}

/** The slices of all lanes of a track over one range. */
export class Slices {
  constructor(
    readonly range: Range,
    /** The number of slices of each lane. */
    readonly count: number,
    readonly lanes: readonly SlicedLane[],
  ) {}

  /** Reads the slices from a frame (the columns of an answer) over the range that was asked for. */
  static fromFrame(frame: Frame, range: Range): Slices {
    const busy = column(frame, "busy") as Uint8Array;
    const key = column(frame, "name") as Uint32Array;
    const count = frame.header.slices ?? frame.header.rows;
    const lanes = Array.from({ length: Math.floor(frame.header.rows / Math.max(count, 1)) }, (_, lane) => ({
      busy: busy.subarray(lane * count, (lane + 1) * count),
      key: key.subarray(lane * count, (lane + 1) * count),
    }));
    return new Slices(range, count, lanes);
  }

  get slice_ns(): number {
    return length(this.range) / this.count;
  }

  /** The range from the first to the last event of each lane that has any. */
  get extents(): Range[] {
    return this.lanes.flatMap(({ busy }) => {
      const first = busy.findIndex((share) => share > 0);
      const last = busy.findLastIndex((share) => share > 0);
      return first < 0 ? [] : [{ from_ns: this.range.from_ns + first * this.slice_ns, to_ns: this.range.from_ns + (last + 1) * this.slice_ns }];
    });
  }

  /** Returns whether the slices are fine enough for a visible range. */
  suffice(seen: Range): boolean {
    return contains(this.range, seen) && length(this.range) <= MAX_ZOOM * length(seen);
  }
}

/** Returns whether all of `part` lies in a range. */
export function contains(range: Range, part: Range): boolean {
  return range.from_ns <= part.from_ns && part.to_ns <= range.to_ns;
}
