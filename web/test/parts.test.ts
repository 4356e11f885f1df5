// Tests tracks that are too large to be held and are shown in parts.

import { describe, expect, test } from "vitest";
import { Appearance } from "../src/appearance.ts";
import { readFrame } from "../src/data/frame.ts";
import { Slices } from "../src/data/slices.ts";
import { type Answers, DataSource } from "../src/data/source.ts";
import { Trace, Track } from "../src/data/trace.ts";
import type { Lane } from "../src/lane/lane.ts";
import { LEVELS, Runs } from "../src/lane/runs.ts";
import { Loader } from "../src/loader.ts";
import { type Range, Scale } from "../src/time/range.ts";
import { View } from "../src/view.ts";
import { frame, traceOverview, trackOverview } from "./fake-answers.ts";

/** A FAKE server of one track with a thousand rows of 8 ns, one every 10 ns. It answers with slices of 100 ns for parts with more rows than an answer may have. */
class Parts implements Answers {
  readonly file = false;
  readonly rowsInAnswer = 1;
  readonly asked: string[] = [];
  constructor(
    private readonly most: number,
    public generation = 1,
  ) {}
  async bytes(key: string, query: Record<string, string | number> = {}): Promise<ArrayBuffer> {
    const { from, to } = { from: Number(query.from), to: Number(query.to) };
    this.asked.push(`${key} ${from}..${to}`);
    if (Number.isNaN(from)) throw new Error("the whole track is asked for");
    return part(from, to, this.most, this.generation, key.endsWith("/label"));
  }
}

function part(from: number, to: number, most: number, generation = 1, labels = false): ArrayBuffer {
  const rows = Array.from({ length: 1000 }, (_, row) => row).filter((row) => row * 10 + 8 > from && row * 10 < to);
  const header = { part: [from, to], generation, tables: ["dispatches"] };
  if (rows.length > most) {
    const count = (to - from) / 100;
    const key = Uint32Array.from({ length: count }, (_, slice) => slice % 3);
    return frame({ ...header, slices: count, lanes: [0, count] }, { busy: new Uint8Array(count).fill(204), name: key });
  }
  const lanes = { ...header, lanes: [0, rows.length] };
  if (labels) return frame(lanes, { label: Uint32Array.from(rows) });
  return frame(lanes, { start: Float64Array.from(rows, (row) => row * 10), duration: new Uint32Array(rows.length).fill(8), name: Uint32Array.from(rows, (row) => row % 3), row: Uint32Array.from(rows) });
}

function large(answers: Answers, most_rows = 500): { trace: Trace; track: Track } {
  const trace = new Trace(0, traceOverview([{ ...trackOverview("q1.work"), rows: 1000 }], { extent: [0, 10_000] }), new DataSource(answers), most_rows);
  return { trace, track: trace.tracks[0] };
}

const WHOLE: Range = { from_ns: 0, to_ns: 10_000 };
const CLOSE: Range = { from_ns: 4000, to_ns: 4100 };

describe("a track of a trace that is too large", () => {
  test("comes in slices first, and in rows from close by", async () => {
    const answers = new Parts(100);
    const { trace, track } = large(answers);
    await trace.loadTrack(track);
    expect([track.state, track.count, track.laneCount]).toEqual(["part", 0, 1]);
    expect([track.shows(WHOLE), track.shows(CLOSE), track.has(CLOSE)]).toEqual([true, false, false]);
    await trace.loadPart(track, CLOSE);
    // Half of the visible length is loaded on each side.
    expect(answers.asked).toEqual(["t/0/track/q1.work 0..10000", "t/0/track/q1.work 3950..4150"]);
    expect([track.state, track.count, track.has(CLOSE), track.has(WHOLE), track.shows(CLOSE)]).toEqual(["part", 20, true, false, true]);
    expect(track.rowOf({ lane: 0, index: 0 })).toEqual({ table: "dispatches", row: 395 });
    expect(track.placeOf("dispatches", 400, 4000)).toEqual({ lane: 0, index: 5 });
    // Slices still show the whole track.
    expect(track.shows(WHOLE)).toBe(true);
    expect(track.extent).toEqual(WHOLE);
    expect(track.pieces({ from_ns: 3900, to_ns: 4300 }).map(({ range, slices }) => [range.from_ns, range.to_ns, slices === null])).toEqual([
      [3900, 3950, false],
      [3950, 4150, true],
      [4150, 4300, false],
    ]);
  });
  test("has finer slices where its rows are too many", async () => {
    const { trace, track } = large(new Parts(100));
    await trace.loadTrack(track);
    const seen = { from_ns: 2000, to_ns: 4000 };
    expect(track.shows(seen)).toBe(false);
    await trace.loadPart(track, seen);
    expect([track.count, track.part?.slices?.range, track.shows(seen)]).toEqual([0, { from_ns: 1000, to_ns: 5000 }, true]);
    // For a fourth of their range the slices are too coarse.
    expect(track.shows({ from_ns: 2000, to_ns: 2999 })).toBe(false);
  });
  test("is loaded as a whole where its rows are few", async () => {
    const { trace, track } = large(new Parts(1000));
    await trace.loadTrack(track);
    expect([track.state, track.count, track.coarse]).toEqual(["ready", 1000, null]);
  });
  test("is loaded as a whole where the page can hold the trace", async () => {
    const { trace, track } = large(new Parts(100), 1000);
    await trace.loadTrack(track);
    expect(track.state).toEqual({ missing: "the whole track is asked for" });
  });
  test("has the labels of its rows", async () => {
    const { trace, track } = large(new Parts(100));
    await trace.awaitRows(track, CLOSE);
    await trace.loadLabels(track);
    expect([...(track.labels?.[0] ?? [])].slice(0, 2)).toEqual([395, 396]);
    await trace.loadPart(track, { from_ns: 7000, to_ns: 7100 });
    expect(track.labels).toBeNull();
  });
  test("is requested again when it has grown", async () => {
    const answers = new Parts(100);
    const { trace, track } = large(answers);
    await trace.awaitRows(track, CLOSE);
    answers.generation = 2;
    trace.renew({ ...trace.overview, generation: 2 });
    expect([track.shows(WHOLE), track.count]).toEqual([false, 20]);
    await trace.loadPart(track, CLOSE);
    expect([track.generation, track.part, track.shows(WHOLE)]).toEqual([2, null, true]);
  });
});

describe("the loaded part of a large track", () => {
  // Parts are requested once a view has rested for 80 ms.
  const settled = (): Promise<void> => new Promise((done) => setTimeout(done, 300));
  test("follows the views, and two views of one trace do not take turns for ever", async () => {
    const answers = new Parts(100);
    const { trace, track } = large(answers);
    const appearance = new Appearance([trace]);
    const views = [CLOSE, { from_ns: 8000, to_ns: 8100 }].map((range) => ({ trace, range }));
    const loader: Loader = new Loader(new DataSource(answers), appearance, () => views.forEach((view) => loader.wanted([track], view)), (problem) => expect.fail(problem), () => true);
    for (const view of views) loader.wanted([track], view);
    await settled();
    expect(answers.asked.map((asked) => asked.split(" ")[1])).toEqual(["0..10000", "3950..4150", "7950..8150"]);
    // A view that moves elsewhere is served.
    views[0].range = { from_ns: 1000, to_ns: 1100 };
    loader.wanted([track], views[0]);
    await settled();
    expect([answers.asked.at(-1), answers.asked.length]).toEqual(["t/0/track/q1.work 950..1150", 4]);
  });
  test("is loaded as a whole after the analyses if the page can hold it", async () => {
    const asked: string[] = [];
    const answers: Answers = {
      file: false,
      rowsInAnswer: 1,
      bytes: async (key, query = {}) => {
        asked.push(`${key} ${new URLSearchParams(query as Record<string, string>)}`);
        return query.from === undefined ? part(0, 10_000, 1000) : part(Number(query.from), Number(query.to), 100);
      },
    };
    // The overview's number of rows decides; the fake server has fewer.
    const overview = traceOverview([{ ...trackOverview("q1.work"), rows: 3_000_000 }], { extent: [0, 10_000] });
    const trace = new Trace(0, overview, new DataSource(answers), 16_000_000);
    const [track] = trace.tracks;
    const view = { trace, range: WHOLE };
    let answered = false;
    const loader: Loader = new Loader(new DataSource(answers), new Appearance([trace]), () => loader.wanted([track], view), (problem) => expect.fail(problem), () => answered);
    loader.wanted([track], view);
    await settled();
    expect([track.state, asked]).toEqual(["part", ["t/0/track/q1.work from=0&to=10000"]]);
    answered = true;
    loader.wanted([track], view);
    await settled();
    expect([track.state, track.count, track.part, track.coarse]).toEqual(["ready", 1000, null, null]);
    expect(asked.slice(1)).toEqual(["t/0/track/q1.work after=0"]);
  });
  test("leaves what is picked, and finds it again", async () => {
    const { trace, track } = large(new Parts(100));
    const view = new View(trace, () => WHOLE);
    trace.replaced = (track: Track, before: readonly Lane[]) => view.replaced(track, before);
    await trace.awaitRows(track, CLOSE);
    view.pick({ track, lane: 0, index: 5 });
    await trace.loadPart(track, { from_ns: 4050, to_ns: 4150 });
    expect(view.event).toEqual({ track, lane: 0, index: 0 });
    await trace.loadPart(track, { from_ns: 9000, to_ns: 9100 });
    expect([view.event, view.holds]).toEqual([null, true]);
    await trace.loadPart(track, { from_ns: 2000, to_ns: 6000 });
    await trace.loadPart(track, CLOSE);
    expect(view.event).toEqual({ track, lane: 0, index: 5 });
  });
});

describe("slices", () => {
  const slices = (busy: number[], key: number[]): Slices =>
    Slices.fromFrame(readFrame(frame({ slices: busy.length }, { busy: Uint8Array.from(busy), name: Uint32Array.from(key) })), { from_ns: 0, to_ns: busy.length * 10 });
  const runs = (it: Slices, scale: Scale): number[][] => {
    const found = new Runs().fillFromSlices(it, 0, scale);
    return Array.from({ length: found.count }, (_, i) => [found.left[i], found.right[i], found.level[i], found.event[i]]);
  };
  test("are drawn where they lie, those that look alike as one, and nothing where nothing ran", () => {
    const it = slices([255, 255, 0, 128, 1], [7, 7, 0, 7, 2]);
    expect(runs(it, new Scale({ from_ns: 0, to_ns: 50 }, 100, 500))).toEqual([
      [100, 300, LEVELS, 7],
      [400, 500, LEVELS / 2, 7],
      [500, 600, 1, 2],
    ]);
    expect(runs(it, new Scale({ from_ns: 15, to_ns: 35 }, 0, 200))).toEqual([
      [0, 50, LEVELS, 7],
      [150, 200, LEVELS / 2, 7],
    ]);
  });
  test("narrower than a pixel are merged in the colour of the longest event", () => {
    const it = slices([255, 0, 0, 0, 10, 20, 30, 40], [1, 0, 0, 0, 2, 3, 4, 5]);
    expect(runs(it, new Scale({ from_ns: 0, to_ns: 80 }, 0, 2))).toEqual([
      [0, 1, LEVELS / 4, 1],
      [1, 2, 2, 5],
    ]);
  });
});
