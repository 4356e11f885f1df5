// Ranges of time in nanoseconds since the trace's start, and the operations of pan and zoom.

/** A stretch of time with its start and without its end. */
export interface Range {
  readonly from_ns: number;
  readonly to_ns: number;
}

/** The shortest visible range. */
export const CLOSEST_NS = 50;

export function length(range: Range): number {
  return range.to_ns - range.from_ns;
}

/** Returns whether two ranges have time in common; ranges that only touch do not. */
export function overlaps(a: Range, b: Range): boolean {
  return a.from_ns < b.to_ns && b.from_ns < a.to_ns;
}

/** Returns the overlap of two ranges; null for none. */
export function shared(a: Range, b: Range): Range | null {
  return overlaps(a, b) ? { from_ns: Math.max(a.from_ns, b.from_ns), to_ns: Math.min(a.to_ns, b.to_ns) } : null;
}

/** Returns the range between two times in any order. */
export function between(a_ns: number, b_ns: number): Range {
  return { from_ns: Math.min(a_ns, b_ns), to_ns: Math.max(a_ns, b_ns) };
}

/** Returns the range from the earliest start to the latest end. */
export function coveringRange(ranges: readonly Range[]): Range {
  return { from_ns: Math.min(...ranges.map(({ from_ns }) => from_ns)), to_ns: Math.max(...ranges.map(({ to_ns }) => to_ns)) };
}

/** Extends a range by a part of its length, or at least 1 ns, on both sides. */
export function widened(range: Range, part: number): Range {
  const margin = Math.max(length(range) * part, 1);
  return { from_ns: range.from_ns - margin, to_ns: range.to_ns + margin };
}

/** Limits a visible range: not shorter than `CLOSEST_NS`, and within `whole` with a little margin. */
export function clamped(range: Range, whole: Range): Range {
  const bounds = widened(whole, 0.02);
  const span = Math.min(Math.max(length(range), CLOSEST_NS), Math.max(length(bounds), CLOSEST_NS));
  const middle = (range.from_ns + range.to_ns) / 2;
  let from_ns = length(range) === span ? range.from_ns : middle - span / 2;
  from_ns = Math.max(bounds.from_ns, Math.min(from_ns, bounds.to_ns - span));
  return { from_ns, to_ns: from_ns + span };
}

/** Zooms by `factor`, below 1 to come closer, while `at_ns` stays at its place on the screen. */
export function zoomed(range: Range, at_ns: number, factor: number, whole: Range): Range {
  const limit = Math.max(factor, CLOSEST_NS / length(range));
  return clamped({ from_ns: at_ns - (at_ns - range.from_ns) * limit, to_ns: at_ns + (range.to_ns - at_ns) * limit }, whole);
}

/** Moves a range by a part of its length, later for a positive one, within the margin around `whole`. */
export function panned(range: Range, part: number, whole: Range): Range {
  const by = length(range) * part;
  return clamped({ from_ns: range.from_ns + by, to_ns: range.to_ns + by }, whole);
}

/** Returns the visible range after a trace has grown from `before` to `now`: a view of everything or of the end keeps showing that. */
export function followed(visible: Range, before: Range, now: Range): Range {
  if (visible.to_ns < before.to_ns) return visible;
  if (visible.from_ns <= before.from_ns) return widened(now, 0.01);
  const by = now.to_ns - before.to_ns;
  return { from_ns: visible.from_ns + by, to_ns: visible.to_ns + by };
}

/** Converts times to pixels and back: the range begins at `left_px` and is `width_px` wide. */
export class Scale {
  readonly pixels_per_ns: number;
  constructor(
    readonly range: Range,
    readonly left_px: number,
    readonly width_px: number,
  ) {
    this.pixels_per_ns = width_px / Math.max(length(range), 1e-9);
  }
  x(ns: number): number {
    return this.left_px + (ns - this.range.from_ns) * this.pixels_per_ns;
  }
  ns(x: number): number {
    return this.range.from_ns + (x - this.left_px) / this.pixels_per_ns;
  }
  /** Returns the same scale for a part of its range. */
  part(range: Range): Scale {
    return range === this.range ? this : new Scale(range, this.x(range.from_ns), length(range) * this.pixels_per_ns);
  }
}

/**
 * The ranges that were visible before, for going back: the latest `most`. Steps that follow each other within
 * `pause_ms` are one gesture, of which only the range before it is kept.
 */
export class RangeHistory {
  private past: Range[] = [];
  private last_at = -Infinity;
  constructor(
    private readonly pause_ms = 500,
    private readonly most = 200,
  ) {}
  /** Remembers the range that is left at time `now_ms`. */
  leave(left: Range, now_ms: number): void {
    if (now_ms - this.last_at > this.pause_ms) {
      this.past.push(left);
      if (this.past.length > this.most) this.past.shift();
    }
    this.last_at = now_ms;
  }
  /** Takes the latest range off the history; undefined where it is empty. The next step counts as another gesture. */
  back(): Range | undefined {
    this.last_at = -Infinity;
    return this.past.pop();
  }
}
