import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { callColour } from "../src/appearance.ts";
import { Causes } from "../src/data/causes.ts";
import { Counter } from "../src/data/counter.ts";
import { FileAnswers } from "../src/data/file.ts";
import { readFrame } from "../src/data/frame.ts";
import { DataSource, Unanswered } from "../src/data/source.ts";
import { Trace, Track } from "../src/data/trace.ts";
import { colours, mixed } from "../src/draw/palette.ts";
import { FakeAnswers, frame, json, LANES, packed, trackFrame, traceOverview, trackOverview } from "./fake-answers.ts";
import type { Cause, CauseFacts, Side } from "../src/generated/protocol.ts";

describe("a frame", () => {
  test("gives its columns where they are", () => {
    const made = frame({ generation: 3 }, { start: Float64Array.of(1.5, 2.5), duration: Uint32Array.of(7, 8), name: Uint8Array.of(1, 2) });
    const { header, columns } = readFrame(made);
    expect(header.generation).toBe(3);
    expect([...(columns.get("start") ?? [])]).toEqual([1.5, 2.5]);
    expect([...(columns.get("duration") ?? [])]).toEqual([7, 8]);
    expect(columns.get("start")?.buffer).toBe(made);
  });
  test("that is cut short or not a frame is refused", () => {
    const made = frame({}, { start: Float64Array.of(1, 2, 3) });
    expect(() => readFrame(made.slice(0, made.byteLength - 8))).toThrow("cut short");
    expect(() => readFrame(made.slice(0, 20))).toThrow("cut short");
    expect(() => readFrame(new ArrayBuffer(2))).toThrow("not a frame");
    expect(() => readFrame(new TextEncoder().encode("<html></html>").buffer)).toThrow("not a frame");
  });
  test("with a column of an unknown type is refused", () => {
    const text = JSON.stringify({ rows: 1, columns: [{ name: "start", type: "i128", offset: 0 }] });
    const bytes = new Uint8Array(8 + Math.ceil(text.length / 8) * 8 + 16).fill(32);
    bytes.set(new TextEncoder().encode("GSC1"));
    new DataView(bytes.buffer).setUint32(4, Math.ceil(text.length / 8) * 8, true);
    bytes.set(new TextEncoder().encode(text), 8);
    expect(() => readFrame(bytes.buffer)).toThrow("i128");
  });
});

describe("a track", () => {
  test("splits its frame into lanes, and finds rows again", () => {
    const track = new Track(trackOverview("q1.work"));
    track.take(readFrame(trackFrame(LANES, ["dispatches", "transfers"])));
    expect(track.lanes.map((lane) => lane.count)).toEqual([2, 1]);
    expect(track.rowOf({ lane: 0, index: 1 })).toEqual({ table: "transfers", row: 1 });
    expect(track.placeOf("transfers", 1, 10)).toEqual({ lane: 0, index: 1 });
    expect(track.placeOf("dispatches", 2, 4)).toEqual({ lane: 1, index: 0 });
    expect(track.placeOf("dispatches", 9, 4)).toBeNull();
  });
  test("grows by later rows, also into new lanes", () => {
    const track = new Track(trackOverview("q1.work"));
    track.take(readFrame(trackFrame(LANES, ["dispatches", "transfers"], 1)));
    track.take(readFrame(trackFrame([[{ start: 15, duration: 1, name: 0, row: 3 }], [], [{ start: 16, duration: 9, name: 0, row: 4 }]], ["dispatches", "transfers"], 2)));
    expect(track.lanes.map((lane) => lane.count)).toEqual([3, 1, 1]);
    expect(track.generation).toBe(2);
    expect(track.placeOf("dispatches", 4, 16)).toEqual({ lane: 2, index: 0 });
    expect(track.lanes[0].busy({ from_ns: 0, to_ns: 100 })).toBe(16);
  });
  test("has the summary of the overview", () => {
    expect([...(new Track(trackOverview("q1.work", "work", btoa("\x00\xff\x80"))).summary ?? [])]).toEqual([0, 255, 128]);
  });
});

describe("a trace", () => {
  test("keeps a reason for a track that cannot be had", async () => {
    const source = new DataSource(new FakeAnswers(new Map()));
    const trace = new Trace(0, traceOverview([trackOverview("q1.work")]), source);
    await trace.loadTrack(trace.tracks[0]);
    expect(trace.tracks[0].state).toEqual({ missing: "nothing is known of t/0/track/q1.work" });
  });
  test("appends strings, and asks only for those that it lacks", async () => {
    const answers = new FakeAnswers(new Map([["t/0/strings", json({ from: 0, strings: ["a", "b"] })]]));
    const trace = new Trace(0, traceOverview([]), new DataSource(answers));
    await trace.loadStrings();
    answers.answers.set("t/0/strings", json({ from: 2, strings: ["c"] }));
    await trace.loadStrings();
    expect(trace.strings).toEqual(["a", "b", "c"]);
    expect(answers.asked).toEqual(["t/0/strings?after=0", "t/0/strings?after=2"]);
  });
  test("asks once for a track that two wait for, and both have it", async () => {
    const answers = new FakeAnswers(new Map([["t/0/track/q1.work", trackFrame(LANES, ["dispatches", "transfers"])]]));
    const trace = new Trace(0, traceOverview([trackOverview("q1.work")]), new DataSource(answers));
    const first = trace.loadTrack(trace.tracks[0]);
    await trace.awaitTrack(trace.tracks[0]);
    expect(trace.tracks[0].state).toBe("ready");
    await first;
    await trace.awaitTrack(trace.tracks[0]);
    expect(answers.asked).toHaveLength(1);
  });
});

describe("a counter", () => {
  const counter = new Counter(readFrame(frame({ unit: "celsius" }, { at: Float64Array.of(0, 10, 20, 30), value: Float64Array.of(-5, NaN, 40, 30) })));
  test("has the range of its values", () => {
    expect([counter.least, counter.most]).toEqual([-5, 40]);
    expect(counter.startingBefore(20)).toBe(2);
    expect(counter.mostOf(2, 4)).toBe(40);
  });
  test("says nothing where its value is not known", () => {
    expect(counter.mostOf(1, 2)).toBeNull();
    const empty = new Counter(readFrame(frame({ unit: "count" }, { at: new Float64Array(0), value: new Float64Array(0) })));
    expect([empty.least, empty.most, empty.mostOf(0, 0)]).toEqual([null, null, null]);
    expect(empty.in({ from_ns: 0, to_ns: 10 })).toBeNull();
  });
  test("has a mean over the time of a range in which it is known", () => {
    expect(counter.in({ from_ns: 0, to_ns: 40 })).toEqual({ mean: (-5 * 10 + 40 * 10 + 30 * 10) / 30, least: -5, most: 40, known: 0.75 });
    expect(counter.in({ from_ns: 25, to_ns: 35 })).toEqual({ mean: 35, least: 30, most: 40, known: 1 });
    expect(counter.in({ from_ns: 20, to_ns: 30 })).toEqual({ mean: 40, least: 40, most: 40, known: 1 });
    expect(counter.in({ from_ns: 12, to_ns: 18 })).toBeNull();
    expect(counter.in({ from_ns: -20, to_ns: -10 })).toBeNull();
    expect(counter.in({ from_ns: 50, to_ns: 60 })).toEqual({ mean: 30, least: 30, most: 30, known: 1 });
  });
  test("has the steps that lie wholly in a range, if all are known", () => {
    const steps = new Counter(readFrame(frame({ unit: "percent" }, { at: Float64Array.of(0, 10, 20, 30, 40, 50), value: Float64Array.of(1, 2, 3, NaN, 4, NaN) })));
    expect(steps.wholeIn({ from_ns: 0, to_ns: 30 })).toEqual({ from_ns: 0, to_ns: 30, count: 3 });
    expect(steps.wholeIn({ from_ns: 5, to_ns: 29 })).toEqual({ from_ns: 10, to_ns: 20, count: 1 });
    expect(steps.wholeIn({ from_ns: 5, to_ns: 15 })).toBeNull();
    expect(steps.wholeIn({ from_ns: 5, to_ns: 50 })).toBeNull();
    expect(steps.wholeIn({ from_ns: 38, to_ns: 99 })).toEqual({ from_ns: 40, to_ns: 50, count: 1 });
    expect(steps.wholeIn({ from_ns: 60, to_ns: 99 })).toBeNull();
  });
  test("of a million samples answers each pixel quickly", () => {
    const million = Float64Array.from({ length: 1_000_000 }, (_, at) => at);
    const many = new Counter(readFrame(frame({ unit: "count" }, { at: million, value: million.map((at) => at % 100) })));
    const started = performance.now();
    const means = new Set(Array.from({ length: 2000 }, (_, pixel) => many.in({ from_ns: pixel * 500, to_ns: (pixel + 1) * 500 })?.mean));
    expect([...means]).toEqual([49.5]);
    expect([many.meanOf(0, 100), many.meanOf(100, 102)]).toEqual([49.5, 0.5]);
    expect(performance.now() - started).toBeLessThan(500);
  });
});

describe("causes", () => {
  const facts = (cause: Cause, side: Side, colour: string): CauseFacts => ({ cause, side, colour, family: "host", letter: "x", name: cause.replace("-", " "), sentence: `${cause}.`, advice: "do", host_was: null });
  const causes = new Causes([facts("host-late", "host", "#110000"), facts("host-compile", "host", "#220000"), facts("unknown", "unknown", "#333333")], [{ name: "cudaLaunchKernel", call: "submit", cause: "host-compile", waits: false }]);
  test("have their colours, and an unknown one that of `unknown`", () => {
    expect(causes.colour("host-compile")).toBe("#220000");
    expect(causes.colour("of-a-later-version")).toBe("#333333");
    expect(causes.colourOfSide("host")).toBe("#110000");
    expect(causes.colourOfSide("none")).toBe("#333333");
  });
  test("have names for people", () => {
    expect(causes.name("host-late")).toBe("host late");
    expect(causes.name("of-a-later-version")).toBe("of-a-later-version");
  });
  test("colour the host calls that they explain", () => {
    const { background, host } = colours("light");
    expect(callColour("cudaLaunchKernel", causes, colours("light"))).toBe(mixed("#220000", background, 0.45));
    expect(callColour("present", causes, colours("light"))).toBe(host);
  });
});

describe("a saved page", () => {
  const answers = new Map([
    ["overview", json({ protocol: 1 })],
    ["t/0/rows/dispatches/0", json(Array.from({ length: 256 }, (_, row) => ({ row })))],
    ["t/0/rows/dispatches/1", json([{ row: 256 }])],
  ]);
  test("gives its answers, rows by blocks", async () => {
    const text = gzipSync(new Uint8Array(packed(answers))).toString("base64");
    const source = new DataSource(await FileAnswers.open(`\n${text}\n`));
    expect(await source.overview()).toEqual({ protocol: 1 });
    expect(await source.row(0, "dispatches", 17)).toEqual({ row: 17 });
    expect(await source.row(0, "dispatches", 256)).toEqual({ row: 256 });
    await expect(source.row(0, "dispatches", 257)).rejects.toThrow("no row 257");
  });
  test("names what it does not have, whatever the key", async () => {
    const source = new DataSource(FileAnswers.fromBuffer(packed(answers)));
    await expect(source.range(0, 0, 1)).rejects.toThrow(Unanswered);
    await expect(FileAnswers.fromBuffer(packed(answers)).bytes("constructor")).rejects.toThrow("gapscope view");
  });
});
