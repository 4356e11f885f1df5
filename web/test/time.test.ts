import { describe, expect, test } from "vitest";
import { bytes, count, duration, instant, quantity, share, times } from "../src/time/format.ts";
import { CLOSEST_NS, clamped, RangeHistory, length, panned, Scale, zoomed } from "../src/time/range.ts";
import { ticks } from "../src/time/ticks.ts";

describe("quantities", () => {
  test("read as in the terminal report", () => {
    expect(duration(873)).toBe("873 ns");
    expect(duration(12_345)).toBe("12.3 µs");
    expect(duration(999_960)).toBe("1.00 ms");
    expect(duration(96e9)).toBe("96.0 s");
    expect(duration(-1500)).toBe("-1.50 µs");
    expect(duration(0.5)).toBe("0.50 ns");
    expect(bytes(512)).toBe("512 B");
    expect(bytes(1536)).toBe("1.50 KiB");
    expect(count(1234567)).toBe("1,234,567");
    expect(times(4.567)).toBe("4.57 ×");
    expect(times(0.012)).toBe("0.012 ×");
  });
  test("of counters have their units", () => {
    expect(quantity(1.98e9, "hertz")).toBe("1.98 GHz");
    expect(quantity(12.5, "percent")).toBe("12.5 %");
    expect(quantity(65_536, "bytes")).toBe("64.0 KiB");
    expect(quantity(2 ** 30, "bytes/s")).toBe("1.00 GiB/s");
    expect(quantity(312.4, "watts")).toBe("312 W");
    expect(quantity(-4, "celsius")).toBe("-4.0 °C");
    expect(quantity(1204, "count")).toBe("1,204");
    expect(quantity(0.5, "count")).toBe("0.50");
  });
  test("never round a little to nothing, nor nearly all to all", () => {
    expect(share(0.0001)).toBe("<0.1 %");
    expect(share(0.99999)).toBe(">99.9 %");
    expect(share(0)).toBe("0 %");
    expect(share(1)).toBe("100 %");
    expect(share(NaN)).toBe("unknown");
  });
  test("points in time have as many digits as their steps need", () => {
    expect(instant(1_003_400_000, 100_000)).toBe("1.0034 s");
    expect(instant(12_000, 1_000)).toBe("12 µs");
    expect(instant(0, 10)).toBe("0 ns");
  });
});

describe("ticks", () => {
  test("stand at multiples of 1, 2 or 5 and never too close", () => {
    for (const span of [7, 120, 9_999, 3.3e6, 8.1e9]) {
      const { step_ns, at_ns } = ticks(12, 12 + span, 1000, 100);
      expect([1, 2, 5]).toContain(Math.round(step_ns / 10 ** Math.floor(Math.log10(step_ns) + 1e-9)));
      expect((step_ns / span) * 1000).toBeGreaterThanOrEqual(Math.min(100, 1000 / span) - 1e-6);
      expect(at_ns.every((at) => at >= 12 && at <= 12 + span && Number.isInteger(at / step_ns))).toBe(true);
    }
  });
  test("of no names are none", () => {
    expect(ticks(5, 5, 100, 10).at_ns).toEqual([]);
  });
});

describe("the visible range", () => {
  const whole = { from_ns: 0, to_ns: 1_000_000 };
  test("keeps the time under the pointer where it is while zooming", () => {
    const before = { from_ns: 100_000, to_ns: 300_000 };
    const after = zoomed(before, 150_000, 0.5, whole);
    expect(new Scale(after, 0, 100).x(150_000)).toBeCloseTo(new Scale(before, 0, 100).x(150_000));
    expect(length(after)).toBeCloseTo(100_000);
  });
  test("never leaves the trace, and has a closest zoom", () => {
    expect(length(zoomed(whole, 500_000, 1e-12, whole))).toBeCloseTo(CLOSEST_NS);
    const far = panned({ from_ns: 0, to_ns: 1000 }, 1e9, whole);
    expect(far.to_ns).toBeLessThanOrEqual(1_020_000);
    expect(length(far)).toBeCloseTo(1000);
    expect(length(clamped({ from_ns: -1e12, to_ns: 1e12 }, whole))).toBeCloseTo(1_040_000);
  });
  test("goes back by gestures, not by single steps", () => {
    const history = new RangeHistory(500);
    history.leave({ from_ns: 0, to_ns: 1 }, 1000);
    history.leave({ from_ns: 0, to_ns: 2 }, 1100);
    history.leave({ from_ns: 0, to_ns: 3 }, 1500);
    history.leave({ from_ns: 0, to_ns: 4 }, 9000);
    expect(history.back()).toEqual({ from_ns: 0, to_ns: 4 });
    expect(history.back()).toEqual({ from_ns: 0, to_ns: 1 });
    expect(history.back()).toBeUndefined();
  });
});
