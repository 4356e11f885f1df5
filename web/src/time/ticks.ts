// Computes the ticks of the ruler, which are the round times that it marks.

export interface Ticks {
  /** The distance of two ticks: 1, 2 or 5 times a power of ten, at least 1 ns. */
  step_ns: number;
  /** The times of the ticks, each a multiple of the step. */
  at_ns: number[];
}

/**
 * Returns the ticks between two times, which are at least `room_px` apart where the times are `width_px` apart; none
 * for an empty range.
 */
export function ticks(from_ns: number, to_ns: number, width_px: number, room_px: number): Ticks {
  const span = to_ns - from_ns;
  if (!(span > 0) || !(width_px > 0)) return { step_ns: 1, at_ns: [] };
  const least = Math.max(1, (span * room_px) / width_px);
  // The sums with 1e-12 keep a step that rounding has made a little too small.
  const power = 10 ** Math.floor(Math.log10(least) + 1e-12);
  const step_ns = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-12)) ?? 10 * power;
  const at_ns: number[] = [];
  for (let n = Math.ceil(from_ns / step_ns); n * step_ns <= to_ns; n += 1) at_ns.push(n * step_ns);
  return { step_ns, at_ns };
}
