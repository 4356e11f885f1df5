// Tests a live trace while it grows and ends, in every order in which answers can arrive.

import { describe, expect, test } from "vitest";
import { Appearance } from "../src/appearance.ts";
import { DataSource, Outdated } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import { FindingsLoader } from "../src/findings-loader.ts";
import type { TraceOverview } from "../src/generated/protocol.ts";
import { Loader } from "../src/loader.ts";
import { pattern } from "../src/search-pattern.ts";
import { followed } from "../src/time/range.ts";
import { View } from "../src/view.ts";
import { type Event, HeldAnswers, json, LANES, trackFrame, traceOverview, trackOverview } from "./fake-answers.ts";

function fail(problem: string): never {
  throw new Error(problem);
}

const TABLES = ["dispatches", "transfers"];
const MORE: Event[][] = [[{ start: 15, duration: 1, name: 0, row: 3 }], []];

function strings(...texts: string[]): ArrayBuffer {
  return json({ from: 0, strings: texts });
}

function overviews(...traces: TraceOverview[]): ArrayBuffer {
  return json({ protocol: 1, traces });
}

function grownTo(generation: number, edition = 1, live = true): TraceOverview {
  return traceOverview([trackOverview("q1.work")], { generation, edition, live });
}

function told(...traces: TraceOverview[]): ArrayBuffer {
  return json({ traces: traces.map(({ generation, edition, live }) => ({ generation, edition, live })) });
}

/** Makes a live trace with one loaded track, which a loader follows. */
async function following(): Promise<{ answers: HeldAnswers; trace: Trace; view: View; events: string[]; ended: Promise<void> }> {
  const answers = new HeldAnswers();
  const source = new DataSource(answers);
  const trace = new Trace(0, grownTo(1), source);
  const view = new View(trace);
  trace.replaced = (track, before) => view.replaced(track, before);
  const events: string[] = [];
  const loading = Promise.all([trace.loadStrings(), trace.loadTrack(trace.tracks[0])]);
  await answers.answer("t/0/strings", strings("sin", "cos"));
  await answers.answer("t/0/track/q1.work", trackFrame(LANES, TABLES, 1));
  await loading;
  const loader = new Loader(
    source,
    new Appearance([trace]),
    () => undefined,
    (problem) => events.push(problem),
    () => true,
  );
  const ended = loader.follow([trace], { resetting: () => (events.push("resetting"), view.releaseEvents()), grown: () => events.push("grown"), appeared: () => events.push("appeared") });
  return { answers, trace, view, events, ended };
}

describe("a live trace", () => {
  test("that grew keeps its tracks and the picked event", async () => {
    const { answers, trace, view, events, ended } = await following();
    const [track] = trace.tracks;
    view.pick({ track, lane: 1, index: 0 });
    await answers.answer("live", told(grownTo(2)));
    await answers.answer("overview", overviews(grownTo(2)));
    await answers.answer("t/0/strings", json({ from: 2, strings: ["exp"] }));
    expect(await answers.answer("t/0/track/q1.work", trackFrame(MORE, TABLES, 2))).toEqual({ edition: 1, after: 1 });
    await answers.answer("live", told(grownTo(3, 2, false)));
    expect(trace.tracks[0]).toBe(track);
    expect(track.lanes.map((lane) => lane.count)).toEqual([3, 1]);
    expect(trace.strings).toEqual(["sin", "cos", "exp"]);
    expect(view.event).toEqual({ track, lane: 1, index: 0 });
    expect(events).toEqual(["grown"]);
    await answers.answer("overview", overviews(grownTo(3, 2, false)));
    await answers.answer("t/0/strings", strings("cos", "sin"));
    await answers.answer("t/0/track/q1.work", trackFrame(LANES, TABLES, 3));
    await ended;
  });

  test("that grew while a track was loading requests the rest of it", async () => {
    const { answers, trace, ended } = await following();
    // The answer to this earlier question arrives late.
    const late = trace.loadTrack(trace.tracks[0]);
    await answers.answer("live", told(grownTo(2)));
    await answers.answer("overview", overviews(grownTo(2)));
    await answers.answer("t/0/strings", json({ from: 2, strings: [] }));
    await answers.answer("t/0/track/q1.work", trackFrame([[], []], TABLES, 1));
    await late;
    // An answer for the present generation leads to no further question.
    await answers.answer("live", told(grownTo(3)));
    await answers.answer("overview", overviews(grownTo(3)));
    await answers.answer("t/0/strings", json({ from: 2, strings: [] }));
    await answers.answer("t/0/track/q1.work", trackFrame(MORE, TABLES, 2));
    await answers.answer("t/0/track/q1.work", trackFrame([[{ start: 17, duration: 1, name: 0, row: 4 }], []], TABLES, 3));
    await answers.answer("live", new Error("stopped"));
    await expect(ended).rejects.toThrow("stopped");
    expect(trace.tracks[0].lanes.map((lane) => lane.count)).toEqual([4, 1]);
  });

  test("that ends between two answers is reloaded with its names", async () => {
    const { answers, trace, view, events, ended } = await following();
    view.pick({ track: trace.tracks[0], lane: 0, index: 1 });
    // The trace had only grown at the first question. By the time of the overview it is complete, and its strings have other places.
    await answers.answer("live", told(grownTo(2)));
    await answers.answer("overview", overviews(grownTo(3, 2, false)));
    expect(await answers.answer("t/0/strings", strings("cos", "better name"))).toEqual({ edition: 2, after: 0 });
    expect(await answers.answer("t/0/track/q1.work", trackFrame([[LANES[0][1]], LANES[1]], TABLES, 3))).toEqual({ edition: 2, after: 0 });
    await ended;
    expect(events).toEqual(["resetting", "grown"]);
    expect(trace.strings).toEqual(["cos", "better name"]);
    // The same event is picked at its new place.
    expect(view.event).toEqual({ track: trace.tracks[0], lane: 0, index: 0 });
  });

  test("that ends during a request tries again", async () => {
    const { answers, trace, ended } = await following();
    await answers.answer("live", told(grownTo(2)));
    await answers.answer("overview", overviews(grownTo(2)));
    await answers.answer("t/0/strings", new Outdated("completed"));
    await answers.answer("live", told(grownTo(3, 2, false)));
    await answers.answer("overview", overviews(grownTo(3, 2, false)));
    await answers.answer("t/0/strings", strings("a", "b"));
    await answers.answer("t/0/track/q1.work", trackFrame(LANES, TABLES, 3));
    await ended;
    expect([trace.strings, trace.tracks[0].generation]).toEqual([["a", "b"], 3]);
  });

  test("that grew retries what was missing", async () => {
    const answers = new HeldAnswers();
    const trace = new Trace(0, grownTo(1), new DataSource(answers));
    const [track] = trace.tracks;
    const loading = trace.loadTrack(track);
    await answers.answer("t/0/track/q1.work", new Error("There is no such thing."));
    await loading;
    expect(track.state).toEqual({ missing: "There is no such thing." });
    trace.renew(grownTo(2));
    expect(track.state).toBe("waiting");
  });

  test("that was reset takes no earlier answer", async () => {
    const { answers, trace } = await following();
    const [track] = trace.tracks;
    const late = trace.loadTrack(track);
    const names = trace.loadStrings();
    trace.reset(grownTo(2, 2, false), ["new"]);
    await answers.answer("t/0/track/q1.work", trackFrame(MORE, TABLES, 1));
    await answers.answer("t/0/strings", json({ from: 2, strings: ["old"] }));
    await Promise.all([late, names]);
    expect([track.state, track.count, trace.strings]).toEqual(["waiting", 0, ["new"]]);
    const loading = trace.loadTrack(track);
    await answers.answer("t/0/track/q1.work", trackFrame(LANES, TABLES, 2));
    await loading;
    expect([track.state, track.count]).toEqual(["ready", 3]);
  });

  test("drops its event when the reset trace does not have it", async () => {
    const { answers, trace, view } = await following();
    const [track] = trace.tracks;
    view.pick({ track, lane: 0, index: 1 });
    view.hover({ track, lane: 0, index: 1 });
    view.releaseEvents();
    trace.reset(grownTo(2, 2, false), ["new"]);
    expect([view.event, view.hovered]).toEqual([null, null]);
    const loading = trace.loadTrack(track);
    await answers.answer("t/0/track/q1.work", trackFrame([[{ start: 90, duration: 1, name: 0, row: 0 }]], TABLES, 2));
    await loading;
    expect(view.event).toBeNull();
  });

  test("is no longer followed when another trace appears", async () => {
    const { answers, events, ended } = await following();
    await answers.answer("live", told(grownTo(1), grownTo(1)));
    await ended;
    expect(events).toEqual(["appeared"]);
  });
});

describe("findings", () => {
  const found = (number: number): ArrayBuffer => json({ dispatch_count: number });
  const none = json({ from: 0, strings: [] });
  const count = (trace: Trace): unknown => trace.findings && "dispatch_count" in trace.findings && trace.findings.dispatch_count;

  test("of a trace that grew are requested once more, after the answer", async () => {
    const answers = new HeldAnswers();
    const source = new DataSource(answers);
    const trace = new Trace(0, grownTo(1), source);
    const told: unknown[] = [];
    const explainer = new FindingsLoader(source, () => told.push(count(trace)), fail);
    const done = explainer.ask(trace);
    void explainer.ask(trace);
    void explainer.ask(trace);
    expect(answers.waiting).toEqual(["t/0/findings"]);
    await answers.answer("t/0/findings", found(1));
    await answers.answer("t/0/strings", none);
    await answers.answer("t/0/findings", found(2));
    await answers.answer("t/0/strings", none);
    await done;
    expect(told).toEqual([1, 2]);
  });

  test("of another edition are never taken", async () => {
    const answers = new HeldAnswers();
    const source = new DataSource(answers);
    const trace = new Trace(0, grownTo(1), source);
    const explainer = new FindingsLoader(source, () => undefined, fail);
    const done = explainer.ask(trace);
    await answers.answer("t/0/findings", found(1));
    // The reset comes while strings are being loaded.
    trace.reset(grownTo(2, 2, false), ["new"]);
    await answers.answer("t/0/strings", none);
    await done;
    expect(trace.findings).toBeNull();
    const again = explainer.ask(trace);
    await answers.answer("t/0/findings", new Outdated("completed"));
    await again;
    expect(trace.findings).toBeNull();
  });

  test("that fail later leave the earlier ones", async () => {
    const answers = new HeldAnswers();
    const source = new DataSource(answers);
    const trace = new Trace(0, grownTo(1), source);
    const said: string[] = [];
    const explainer = new FindingsLoader(source, () => undefined, (problem) => said.push(problem));
    const first = explainer.ask(trace);
    await answers.answer("t/0/findings", found(1));
    await answers.answer("t/0/strings", none);
    await first;
    const second = explainer.ask(trace);
    await answers.answer("t/0/findings", new Error("It was made to fail."));
    await second;
    expect([count(trace), said]).toEqual([1, ["It was made to fail."]]);
  });
});

test("a search before the strings are loaded gets the same matches afterwards", async () => {
  const answers = new HeldAnswers();
  const trace = new Trace(0, grownTo(1), new DataSource(answers));
  const appearance = new Appearance([trace]);
  appearance.search(pattern("cos"));
  const loading = trace.loadTrack(trace.tracks[0]);
  await answers.answer("t/0/track/q1.work", trackFrame(LANES, TABLES, 1));
  await loading;
  expect(appearance.foundIn(trace, trace.tracks[0], 0)?.lane.count).toBe(0);
  const named = trace.loadStrings();
  await answers.answer("t/0/strings", strings("sin", "cos"));
  await named;
  expect(appearance.foundIn(trace, trace.tracks[0], 0)?.lane.count).toBe(1);
});

test("a view of everything or of the end follows a growing trace, and a view of a part stays", () => {
  const [before, now] = [
    { from_ns: 0, to_ns: 100 },
    { from_ns: 0, to_ns: 150 },
  ];
  expect(followed({ from_ns: -1, to_ns: 101 }, before, now)).toEqual({ from_ns: -1.5, to_ns: 151.5 });
  expect(followed({ from_ns: 80, to_ns: 102 }, before, now)).toEqual({ from_ns: 130, to_ns: 152 });
  expect(followed({ from_ns: 20, to_ns: 40 }, before, now)).toEqual({ from_ns: 20, to_ns: 40 });
});
