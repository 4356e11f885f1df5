import { describe, expect, test } from "vitest";
import { Lane } from "../src/lane/lane.ts";
import { LEVELS, Runs } from "../src/lane/runs.ts";
import { Scale } from "../src/time/range.ts";

/** Makes a generator of pseudorandom numbers with a seed, so that a failure can be repeated. */
function random(seed: number): () => number {
  return () => {
    seed = (seed * 1664525 + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

function lane(events: [start: number, duration: number, key?: number][]): Lane {
  return new Lane({
    start_ns: Float64Array.from(events, (event) => event[0]),
    duration_ns: Uint32Array.from(events, (event) => event[1]),
    key: Uint32Array.from(events, (event) => event[2] ?? 0),
  });
}

function randomLane(count: number, seed: number): Lane {
  const next = random(seed);
  let now = 0;
  const events: [number, number, number][] = [];
  for (let i = 0; i < count; i += 1) {
    now += Math.floor(next() * 50);
    const duration = Math.floor(next() * 100);
    events.push([now, duration, Math.floor(next() * 5)]);
    now += duration;
  }
  return lane(events);
}

describe("a lane", () => {
  test("says how busy any range is", () => {
    const it = randomLane(5000, 1);
    const next = random(2);
    const end = it.end_ns(it.count - 1);
    for (let n = 0; n < 300; n += 1) {
      const from_ns = Math.floor(next() * end);
      const to_ns = from_ns + Math.floor(next() * next() * (end - from_ns));
      let busy = 0;
      for (let i = 0; i < it.count; i += 1) busy += Math.max(0, Math.min(to_ns, it.end_ns(i)) - Math.max(from_ns, it.start_ns[i]));
      expect(it.busy({ from_ns, to_ns })).toBe(busy);
    }
  });

  test("finds the longest event of any range, across all levels of its index", () => {
    const it = randomLane(64 * 64 * 3 + 17, 3);
    const next = random(4);
    for (let n = 0; n < 200; n += 1) {
      const from = Math.floor(next() * it.count);
      const to = from + Math.floor(next() * (it.count - from)) + 1;
      let most = 0;
      for (let i = from; i < to; i += 1) most = Math.max(most, it.duration_ns[i]);
      const found = it.longestOf(from, to);
      expect(found >= from && found < to).toBe(true);
      expect(it.duration_ns[found]).toBe(most);
    }
    expect(it.longestOf(5, 5)).toBe(-1);
  });

  test("returns the event at a time, and a near one only within reach", () => {
    const it = lane([
      [10, 5],
      [20, 10],
      [40, 0],
    ]);
    expect(it.at(10)).toBe(0);
    expect(it.at(14.9)).toBe(0);
    expect(it.at(15)).toBe(-1);
    expect(it.at(9)).toBe(-1);
    expect(it.at(40)).toBe(2);
    expect(it.nearest(16, 2)).toBe(0);
    expect(it.nearest(18.5, 2)).toBe(1);
    expect(it.nearest(35, 2)).toBe(-1);
    expect(it.nearest(39, 2)).toBe(2);
  });

  test("gives the events of a range with those that reach into it", () => {
    const it = lane([
      [10, 5],
      [20, 10],
      [40, 2],
    ]);
    expect(it.within({ from_ns: 12, to_ns: 20 })).toEqual({ from: 0, to: 1 });
    expect(it.within({ from_ns: 15, to_ns: 20 })).toEqual({ from: 1, to: 1 });
    expect(it.within({ from_ns: 29, to_ns: 41 })).toEqual({ from: 1, to: 3 });
  });

  test("filters to a lane that has the indices of its events", () => {
    const it = randomLane(1000, 5);
    const { lane: some, place } = it.filtered((i) => it.key[i] === 2);
    expect(some.count).toBe(it.key.filter((key) => key === 2).length);
    for (let i = 0; i < some.count; i += 1) expect(some.start_ns[i]).toBe(it.start_ns[place[i]]);
  });

  test("may be empty", () => {
    const it = lane([]);
    expect(it.busy({ from_ns: 0, to_ns: 10 })).toBe(0);
    expect(it.at(1)).toBe(-1);
    expect(new Runs().fillFromLane(it, new Scale({ from_ns: 0, to_ns: 1 }, 0, 100)).count).toBe(0);
  });
});

describe("runs", () => {
  test("are the events themselves where these are wide", () => {
    const it = lane([
      [10, 5],
      [20, 10],
    ]);
    const runs = new Runs().fillFromLane(it, new Scale({ from_ns: 0, to_ns: 100 }, 0, 1000));
    expect(runs.exact).toBe(true);
    expect(Array.from(runs.left.subarray(0, runs.count))).toEqual([100, 200]);
    expect(Array.from(runs.right.subarray(0, runs.count))).toEqual([150, 300]);
  });

  test("carry the busy time of many small events", () => {
    const it = randomLane(100_000, 6);
    const range = { from_ns: 0, to_ns: it.end_ns(it.count - 1) };
    const runs = new Runs().fillFromLane(it, new Scale(range, 0, 400));
    expect(runs.exact).toBe(false);
    let drawn = 0;
    for (let i = 0; i < runs.count; i += 1) drawn += ((runs.right[i] - runs.left[i]) / 400) * (runs.level[i] / LEVELS);
    const share = it.busy(range) / range.to_ns;
    expect(Math.abs(drawn - share)).toBeLessThan(0.5 / LEVELS);
  });

  test("hide no gap that is wider than a pixel", () => {
    const events: [number, number][] = [];
    for (let i = 0; i < 1000; i += 1) events.push([i * 10, 10]);
    for (let i = 0; i < 1000; i += 1) events.push([20_000 + i * 10, 10]);
    const runs = new Runs().fillFromLane(lane(events), new Scale({ from_ns: 0, to_ns: 30_000 }, 0, 300));
    for (let i = 0; i < runs.count; i += 1) expect(runs.right[i] <= 100.5 || runs.left[i] >= 199.5).toBe(true);
  });

  test("cover an event that is longer than a column everywhere", () => {
    const events: [number, number][] = [[0, 10_000]];
    for (let i = 0; i < 1000; i += 1) events.push([10_000 + i * 10, 5]);
    const runs = new Runs().fillFromLane(lane(events), new Scale({ from_ns: 0, to_ns: 20_000 }, 0, 200));
    expect(runs.exact).toBe(false);
    expect(runs.left[0]).toBe(0);
    expect(runs.right[0]).toBeCloseTo(100, 3);
    expect(runs.level[0]).toBe(LEVELS);
  });

  test("keep the names of wide events among narrow ones", () => {
    const events: [number, number][] = [[0, 100_000]];
    for (let i = 0; i < 1000; i += 1) events.push([100_000 + i * 100, 90]);
    const it = lane(events);
    const scale = new Scale({ from_ns: 0, to_ns: 200_000 }, 0, 400);
    const runs = new Runs().fillFromLane(it, scale);
    expect(runs.exact).toBe(false);
    expect([...runs.wide(it, scale, 15)]).toEqual([{ event: 0, left: 0, right: 200 }]);
  });
});
