// A counter: a quantity over time as steps, each of which has one value until the next step begins. Indices answer
// questions about ranges in logarithmic time.

import { Peaks } from "../lane/peaks.ts";
import type { Range } from "../time/range.ts";
import { column, type Frame } from "./frame.ts";

/** The values of a counter in a range of time. */
export interface CounterStatistics {
  /** The mean over the time in which the value is known. */
  mean: number;
  least: number;
  most: number;
  /** The share of the range in which the value is known. */
  known: number;
}

/** The steps of one counter, from the answer `counter/ID`. */
export class Counter {
  /** When each step begins, ascending. */
  private readonly at_ns: Float64Array;
  /** The value from each time on; negative infinity where it is unknown. */
  private readonly value: Float64Array;
  private readonly peaks: Peaks;
  /** The peaks of the negated values, which find the least. */
  private readonly valleys: Peaks;
  /** The integral of the value up to each step, and the time in which it is known up to there. */
  private readonly area: Float64Array;
  private readonly known_ns: Float64Array;
  /** The least value of all; null where no value is known. */
  readonly least: number | null;
  readonly most: number | null;

  constructor(frame: Frame) {
    this.at_ns = column(frame, "at") as Float64Array;
    this.value = Float64Array.from(column(frame, "value"), (value) => (Number.isNaN(value) ? -Infinity : value));
    this.peaks = new Peaks(this.value);
    this.valleys = new Peaks(this.value.map((value) => (value === -Infinity ? value : -value)));
    const steps = this.value.length;
    this.area = new Float64Array(steps);
    this.known_ns = new Float64Array(steps);
    for (let i = 1; i < steps; i += 1) {
      const known = this.value[i - 1] !== -Infinity;
      const ns = known ? this.at_ns[i] - this.at_ns[i - 1] : 0;
      this.area[i] = this.area[i - 1] + (known ? this.value[i - 1] * ns : 0);
      this.known_ns[i] = this.known_ns[i - 1] + ns;
    }
    const least = this.value.reduce((least, value) => (value === -Infinity ? least : Math.min(least, value)), Infinity);
    this.least = least === Infinity ? null : least;
    this.most = this.mostOf(0, this.value.length);
  }

  /** Counts the steps that begin before a time. */
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

  /** Returns the greatest value of the steps `from..to`; null where none is known. */
  mostOf(from: number, to: number): number | null {
    const value = this.value[this.peaks.indexOfMax(from, to)] ?? -Infinity;
    return value === -Infinity ? null : value;
  }

  /** Returns the mean over the time of the steps `from..to`, which must have some length; 0 where no value is known. */
  meanOf(from: number, to: number): number {
    const end = Math.min(to, this.value.length - 1);
    const known_ns = this.known_ns[end] - this.known_ns[from];
    return known_ns > 0 ? (this.area[end] - this.area[from]) / known_ns : 0;
  }

  /** Returns the range and number of the steps wholly in a range; null without any, or if one has no value. */
  wholeIn(range: Range): (Range & { count: number }) | null {
    const from = this.startingBefore(range.from_ns);
    // A step ends where the next one begins.
    let to = this.startingBefore(range.to_ns);
    if (this.at_ns[to] !== range.to_ns) to -= 1;
    if (to <= from) return null;
    const [from_ns, to_ns] = [this.at_ns[from], this.at_ns[to]];
    const known = this.known_ns[to] - this.known_ns[from] === to_ns - from_ns;
    return known ? { from_ns, to_ns, count: to - from } : null;
  }

  /** Returns the statistics of a range; null where no value is known in it. */
  in(range: Range): CounterStatistics | null {
    // The step that is in effect at the beginning of the range counts, too.
    const before = this.startingBefore(range.from_ns);
    const from = this.at_ns[before] === range.from_ns ? before : Math.max(0, before - 1);
    const to = this.startingBefore(range.to_ns);
    const most = this.mostOf(from, to);
    if (most === null) return null;
    const [start, end] = [this.until(range.from_ns), this.until(range.to_ns)];
    const [area, known_ns] = [end.area - start.area, end.known_ns - start.known_ns];
    const span = range.to_ns - range.from_ns;
    const valley = this.valleys.indexOfMax(from, to);
    return { mean: known_ns > 0 ? area / known_ns : most, least: this.value[valley], most, known: span > 0 ? Math.min(1, known_ns / span) : 0 };
  }

  /** Returns the integral of the value, and the time in which it is known, from the first step to a time. */
  private until(ns: number): { area: number; known_ns: number } {
    const at = this.startingBefore(ns) - 1;
    if (at < 0) return { area: 0, known_ns: 0 };
    const value = this.value[at];
    const rest = value === -Infinity ? 0 : ns - this.at_ns[at];
    return { area: this.area[at] + (rest > 0 ? value * rest : 0), known_ns: this.known_ns[at] + rest };
  }
}
