// Tests which names of work get a colour of their own.

import { describe, expect, test } from "vitest";
import { assigned, type NameKind, ColourSlots } from "../src/colour-slots.ts";
import { DataSource } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import { REST } from "../src/draw/palette.ts";
import { FakeAnswers, frame, json, trackFrame, traceOverview, trackOverview } from "./fake-answers.ts";

type Costs = Record<string, number>;

/** Makes a trace with one dispatch of each name on each track, as long as the name costs there. */
function made(number: number, ...tracks: Costs[]): { trace: Trace; load: (...ids: number[]) => Promise<void>; rename: (...names: string[]) => Promise<void>; grow: (track: number, costs: Costs) => Promise<void> } {
  const names = [...new Set(tracks.flatMap((costs) => Object.keys(costs)))];
  const answers = new Map<string, ArrayBuffer>();
  const put = (track: number, costs: Costs, generation = 1): void => {
    const events = Object.entries(costs).map(([name, duration], row) => ({ start: row, duration, name: names.indexOf(name), row }));
    answers.set(`t/${number}/track/q${track}.work`, trackFrame([events], ["dispatches"], generation));
    answers.set(`t/${number}/track/q${track}.work/label`, frame({}, { label: Uint32Array.from(events, ({ name }) => name) }));
  };
  tracks.forEach((costs, track) => put(track, costs));
  answers.set(`t/${number}/strings`, json({ from: 0, strings: names }));
  const trace = new Trace(number, traceOverview(tracks.map((_, track) => trackOverview(`q${track}.work`))), new DataSource(new FakeAnswers(answers)));
  return {
    trace,
    load: async (...ids) => {
      if (trace.strings.length === 0) await trace.loadStrings();
      for (const id of ids) await trace.loadTrack(trace.tracks[id]);
    },
    rename: async (...more) => {
      answers.set(`t/${number}/strings`, json({ from: trace.strings.length, strings: more }));
      names.push(...more);
      await trace.loadStrings();
    },
    grow: async (track, costs) => {
      put(track, costs, 2);
      await trace.loadTrack(trace.tracks[track]);
    },
  };
}

/** Returns the slot of each name of a trace. */
function named(slots: ColourSlots, trace: Trace, by: NameKind = "kernel"): Record<string, number> {
  const found = slots.slotsOf(trace, by);
  return Object.fromEntries(trace.strings.map((name, at) => [name, found[at]]));
}

/** Makes names with decreasing costs. */
function many(count: number, cost = 100, prefix = "k"): Costs {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, cost - at]));
}

describe("names of work", () => {
  test("go by the cost in all open traces, and are the same in each", async () => {
    // "both" is the costliest name only in both traces together.
    const one = made(0, { a: 10, both: 9, c: 1 });
    const other = made(1, { c: 2, d: 10, both: 9 });
    const slots = new ColourSlots([one.trace, other.trace]);
    await one.load(0);
    await other.load(0);
    expect(named(slots, one.trace)).toEqual({ both: 0, a: 1, c: 3 });
    expect(named(slots, other.trace)).toEqual({ both: 0, d: 2, c: 3 });
  });
  test("beyond the palette share a colour, in all of them too", async () => {
    const one = made(0, many(20));
    const other = made(1, { ...many(20, 30), ...many(2, 1000, "x") });
    const slots = new ColourSlots([one.trace, other.trace]);
    await one.load(0);
    await other.load(0);
    const [here, there] = [named(slots, one.trace), named(slots, other.trace)];
    expect([there.x0, there.x1, there.k0, there[`k${REST - 3}`]]).toEqual([0, 1, 2, REST - 1]);
    expect([there[`k${REST - 2}`], there.k19]).toEqual([REST, REST]);
    for (const name of Object.keys(here)) expect(here[name]).toBe(there[name]);
  });
  test("have their colour even without loaded work", async () => {
    const one = made(0, { a: 1, b: 2 });
    const other = made(1, { a: 1, b: 2 });
    const slots = new ColourSlots([one.trace, other.trace]);
    await one.load(0);
    await other.load();
    expect(named(slots, other.trace)).toEqual({ b: 0, a: 1 });
  });
  test("without loaded strings have none until these arrive", async () => {
    const { trace } = made(0, { a: 1 });
    const slots = new ColourSlots([trace]);
    await trace.loadTrack(trace.tracks[0]);
    expect(named(slots, trace)).toEqual({});
    await trace.loadStrings();
    expect(named(slots, trace)).toEqual({ a: 0 });
  });
  test("go by labels once these are loaded", async () => {
    const one = made(0, { a: 1, b: 2 });
    const other = made(1, { a: 5, b: 1 });
    const slots = new ColourSlots([one.trace, other.trace]);
    await one.load(0);
    await other.load(0);
    expect(named(slots, one.trace, "label")).toEqual({ a: REST, b: REST });
    for (const { trace } of [one, other]) await trace.loadLabels(trace.tracks[0]);
    expect(named(slots, one.trace, "label")).toEqual({ a: 0, b: 1 });
  });
});

describe("while tracks are loading, colours", () => {
  test("do not depend on the order of answers while tracks are loading", async () => {
    const found = await Promise.all(
      [[0, 1], [1, 0]].map(async (order) => {
        const ranks = [made(0, { a: 1, b: 2 }), made(1, { a: 5, b: 1 })];
        const slots = new ColourSlots(ranks.map(({ trace }) => trace));
        for (const rank of order) {
          await ranks[rank].load(0);
          slots.slotsOf(ranks[rank].trace, "kernel");
        }
        slots.settle();
        return named(slots, ranks[0].trace);
      }),
    );
    expect(found).toEqual([{ a: 0, b: 1 }, { a: 0, b: 1 }]);
  });
  test("stay when a further rank comes in sight, and when a trace grows", async () => {
    const one = made(0, { a: 1, b: 2 });
    const other = made(1, { a: 50, c: 100, b: 1 });
    const slots = new ColourSlots([one.trace, other.trace]);
    await one.load(0);
    slots.settle();
    await other.load(0);
    expect(named(slots, other.trace)).toEqual({ b: 0, a: 1, c: 2 });
    await one.rename("d");
    await one.grow(0, { d: 1000 });
    await one.rename("e");
    expect(named(slots, one.trace)).toEqual({ b: 0, a: 1, d: 3, e: REST });
  });
  test("stay the same when a live trace only gains rows", async () => {
    const one = made(0, { a: 1, b: 2 });
    const slots = new ColourSlots([one.trace]);
    await one.load(0);
    const before = slots.slotsOf(one.trace, "kernel");
    await one.grow(0, { a: 100 });
    expect(slots.slotsOf(one.trace, "kernel")).toBe(before);
  });
  test("stay in another edition with other strings", async () => {
    const one = made(0, { a: 1, b: 2 });
    const slots = new ColourSlots([one.trace]);
    await one.load(0);
    slots.settle();
    expect(named(slots, one.trace)).toEqual({ b: 0, a: 1 });
    one.trace.reset(one.trace.overview, ["z", "b", "a"]);
    expect(named(slots, one.trace)).toEqual({ z: REST, b: 0, a: 1 });
  });
  test("move from the cheapest name to a costlier one when none are left", () => {
    const before = assigned(new Map(Object.entries(many(REST))), new Map());
    const after = assigned(new Map(Object.entries({ ...many(REST), x: 1000 })), before);
    const last = `k${REST - 1}`;
    expect(after.get("x")).toBe(before.get(last));
    expect(after.has(last)).toBe(false);
    for (const [name, slot] of before) if (name !== last) expect(after.get(name)).toBe(slot);
  });
  test("stay with a name whose work is missing for a moment, while no other needs them", () => {
    const before = assigned(new Map(Object.entries({ a: 2, b: 1 })), new Map());
    expect(Object.fromEntries(assigned(new Map([["c", 1]]), before))).toEqual({ a: 0, b: 1, c: 2 });
  });
});
