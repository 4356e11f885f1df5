// A counter: a quantity over time, as steps.

import { Peaks } from "../lane/peaks.ts";
import { column, type Frame } from "./frame.ts";

export class Counter {
  private readonly at_ns: Float64Array;
  /** The value from each time on; below every number where it is not known. */
  private readonly value: Float64Array;
  private readonly peaks: Peaks;
  /** Null where no value is known. */
  readonly least: number | null;
  readonly most: number | null;

  constructor(frame: Frame) {
    this.at_ns = column(frame, "at") as Float64Array;
    this.value = Float64Array.from(column(frame, "value"), (value) => (Number.isNaN(value) ? -Infinity : value));
    this.peaks = new Peaks(this.value);
    const least = this.value.reduce((least, value) => (value === -Infinity ? least : Math.min(least, value)), Infinity);
    this.least = least === Infinity ? null : least;
    this.most = this.mostOf(0, this.value.length);
  }

  /** Steps before a time. */
  startingBefore(ns: number): number {
    let low = 0;
    let high = this.at_ns.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.at_ns[middle] < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The greatest of the steps `from..to`; null where none is known. */
  mostOf(from: number, to: number): number | null {
    const value = this.value[this.peaks.of(from, to)] ?? -Infinity;
    return value === -Infinity ? null : value;
  }
}
