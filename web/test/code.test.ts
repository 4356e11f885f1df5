// Tests samples of stacks, their share in idle time, and the tree of a flame graph, on a FAKE of the server's answers.

import { describe, expect, test } from "vitest";
import { Appearance } from "../src/appearance.ts";
import { Code, commonest, IdleSamples } from "../src/data/code.ts";
import { flame, placed } from "../src/data/flame.ts";
import { readFrame } from "../src/data/frame.ts";
import { DataSource } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import { CodePanel, NO_SAMPLES } from "../src/panels/code.ts";
import { View } from "../src/view.ts";
import { FakeAnswers, frame, traceOverview, trackOverview } from "./fake-answers.ts";
import { fake, fakeDocument } from "./fake-dom.ts";

fakeDocument();

const NONE = 0xffffffff;
const code = (name: string, own: boolean): object => ({ text: `${own ? "train.py" : "lib.py"}:1 ${name}`, name, function: name, file: null, line: 1, library: null, kind: "python", own, source: null });

const HEADER = {
  generation: 1,
  told_by: "samples",
  rate_hz: 100,
  threads: [
    { process: 1, thread: 7, name: "main", track: "p1.t7.samples", worker: false },
    { process: 2, thread: 8, name: "worker", track: "p2.t8.samples", worker: true },
  ],
  calls: ["futex"],
  states: ["running", "blocked"],
  sources: ["sampled", "after-wait"],
  frames: [code("runpy", false), code("main", true), code("load", true), code("resize", false), code("crop", true)],
  stacks: { frame: [0, 1, 2, 3, 4], parent: [null, 0, 1, 2, 1], line: [null, null, null, 0, 1] },
  lines: [
    { text: "train.py:1 load > resize", frame: 2 },
    { text: "train.py:1 crop", frame: 4 },
  ],
};

/** The stacks of samples every 10 ns from 100 on: `resize` six times, `crop` three times, one unknown; then one by a hook, and one of a worker. */
const STACKS = [3, 3, 4, 3, 3, 4, 3, 3, 4, NONE, 3, 4];
const SAMPLES = frame(HEADER, {
  at: Float64Array.from(STACKS, (_, i) => (i < 10 ? 100 + 10 * i : i === 10 ? 200 : 150)),
  period: Float64Array.from(STACKS, (_, i) => (i === 10 ? NaN : 12)),
  thread: Uint32Array.from(STACKS, (_, i) => (i === 11 ? 1 : 0)),
  stack: Uint32Array.from(STACKS),
  call: Uint32Array.from(STACKS, (_, i) => (i === 2 ? 0 : NONE)),
  gil: Uint32Array.from(STACKS, (_, i) => (i === 2 ? 9 : NONE)),
  state: Uint8Array.from(STACKS, (_, i) => (i === 2 ? 1 : 0)),
  source: Uint8Array.from(STACKS, (_, i) => (i === 10 ? 1 : 0)),
});
const IDLE = frame(
  { parts: ["sampled", "exact", "worker"], causes: [{ cause: "host-late", total_ns: 130, without_samples_ns: 30, samples: 10 }] },
  {
    sample: Uint32Array.from(STACKS, (_, i) => i),
    device: Uint32Array.from(STACKS, () => 0),
    weight: Float64Array.from(STACKS, (_, i) => (i < 10 ? 10 : 0)),
    cause: Uint32Array.from(STACKS, (_, i) => (i < 5 ? 0 : 1)),
    label: Uint32Array.from(STACKS, (_, i) => (i < 5 ? 2 : NONE)),
    part: Uint8Array.from(STACKS, (_, i) => (i < 10 ? 0 : i - 9)),
  },
);

function read(): IdleSamples {
  return new IdleSamples(new Code(readFrame(SAMPLES)), readFrame(IDLE));
}

describe("samples", () => {
  test("a track has the samples of its thread without overlaps, and those of hooks below", () => {
    const { lanes, rows } = read().code.lanesOf("p1.t7.samples");
    expect(lanes.map((lane) => lane.count)).toEqual([10, 1]);
    expect([...rows[1]]).toEqual([10]);
    expect([...lanes[0].duration_ns]).toEqual([10, 10, 10, 10, 10, 10, 10, 10, 10, 12]);
    expect([...lanes[0].key]).toEqual([0, 0, 1, 0, 0, 1, 0, 0, 1, 2]);
  });

  test("a sample shows its stack, its state and the holder of the lock", () => {
    const { code } = read();
    const sample = code.sample(2);
    expect(sample.frames.map(({ name }) => name)).toEqual(["crop", "main", "runpy"]);
    expect(sample).toMatchObject({ line: "train.py:1 crop", state: "blocked", system_call: "futex", gil_holder: 9, source: "sampled" });
    expect(code.sample(9)).toMatchObject({ line: "unknown code", frames: [], system_call: null, gil_holder: null });
  });

  test("parents in a circle end", () => {
    const circle = frame({ ...HEADER, stacks: { frame: [0, 1, 2, 3, 4], parent: [3, 0, 1, 2, 99], line: [] } }, columnsOf(SAMPLES));
    expect(new Code(readFrame(circle)).framesOf(0)).toHaveLength(4096);
  });
});

function columnsOf(buffer: ArrayBuffer): Record<string, Float64Array | Uint32Array | Uint8Array> {
  return Object.fromEntries(readFrame(buffer).columns) as Record<string, Float64Array | Uint32Array | Uint8Array>;
}

describe("idle time by code", () => {
  test("lines have the time of their samples, by cause, label and range", () => {
    const idle = read();
    const lines = (asked: object): [string, number, number][] => idle.lines("sampled", asked).map(({ text, total_ns, samples }) => [text, total_ns, samples]);
    expect(lines({})).toEqual([
      ["train.py:1 load > resize", 60, 6],
      ["train.py:1 crop", 30, 3],
      ["unknown code", 10, 1],
    ]);
    expect(lines({ cause: 0 })).toEqual([
      ["train.py:1 load > resize", 40, 4],
      ["train.py:1 crop", 10, 1],
    ]);
    expect(lines({ label: 2 })).toEqual(lines({ cause: 0 }));
    // Lines with equal time are sorted by text.
    expect(lines({ range: { from_ns: 110, to_ns: 130 } })).toEqual([
      ["train.py:1 crop", 10, 1],
      ["train.py:1 load > resize", 10, 1],
    ]);
    expect(lines({ device: 1 })).toEqual([]);
    expect(idle.labels).toEqual([2]);
    // A hook's sample at the end of a wait belongs to the gap that ends there.
    expect(idle.lines("exact", { range: { from_ns: 100, to_ns: 200 } })).toHaveLength(1);
    expect(idle.lines("worker", {})[0]).toMatchObject({ text: "train.py:1 crop", samples: 1, total_ns: 0 });
  });

  test("the most frequent stack is found", () => {
    const { code } = read();
    expect(commonest(code, [2, 0, 1, 9])).toBe(0);
    expect(commonest(code, [])).toBeNull();
  });

  test("a flame graph is the tree of the stacks, without what runs the program", () => {
    const tree = flame(read(), { label: 2 });
    expect(tree).toMatchObject({ frame: -1, total_ns: 50, samples: 5 });
    const [main] = tree.children;
    expect(main).toMatchObject({ frame: 1, total_ns: 50 });
    expect(main.children.map(({ frame, total_ns }) => [frame, total_ns])).toEqual([
      [2, 40],
      [4, 10],
    ]);
    // The time of a sample without a stack has no frames.
    expect(flame(read(), {}).children.map(({ total_ns }) => total_ns)).toEqual([90]);
  });

  test("the zoomed node has the full width, below its ancestors", () => {
    const tree = flame(read(), { label: 2 });
    const [main] = tree.children;
    const all = placed(tree, tree, 0.01);
    expect(all.map(({ node, from, width, depth }) => [node.frame, from, width, depth])).toEqual([
      [-1, 0, 1, 0],
      [1, 0, 1, 1],
      [2, 0, 0.8, 2],
      [3, 0, 0.8, 3],
      [4, 0.8, 0.2, 2],
    ]);
    const zoomed = placed(tree, main.children[0], 0.01);
    expect(zoomed.map(({ node, width, around }) => [node.frame, width, around])).toEqual([
      [-1, 1, true],
      [1, 1, true],
      [2, 1, false],
      [3, 1, false],
    ]);
    expect(placed(tree, tree, 0.5).map(({ node }) => node.frame)).toEqual([-1, 1, 2, 3]);
  });
});

describe("times in ranges of threads", () => {
  /** The samples as times in ranges that lie behind each other: 40 ns of `resize`, then 100 ns of `crop`, then 10 ns of `resize`. */
  const ranges = (): ArrayBuffer =>
    frame({ ...HEADER, told_by: "ranges", calls: [], states: ["unknown"], sources: ["range"] }, {
      at: Float64Array.from([100, 140, 240]),
      period: Float64Array.from([40, 100, 10]),
      thread: Uint32Array.from([0, 0, 0]),
      stack: Uint32Array.from([3, 4, 3]),
      call: Uint32Array.from([NONE, NONE, NONE]),
      gil: Uint32Array.from([NONE, NONE, NONE]),
      state: Uint8Array.from([0, 0, 0]),
      source: Uint8Array.from([0, 0, 0]),
    });
  const idle = (): ArrayBuffer =>
    frame({ parts: ["sampled"], causes: [{ cause: "host-late", total_ns: 180, without_samples_ns: 30, samples: 3 }] }, {
      sample: Uint32Array.from([0, 1, 2]),
      device: Uint32Array.from([0, 0, 0]),
      weight: Float64Array.from([40, 100, 10]),
      cause: Uint32Array.from([0, 0, 0]),
      label: Uint32Array.from([NONE, NONE, NONE]),
      part: Uint8Array.from([0, 0, 0]),
    });

  test("count as far as they lie in the asked range", () => {
    const all = new IdleSamples(new Code(readFrame(ranges())), readFrame(idle()));
    const lines = (asked: object): [string, number][] => all.lines("sampled", asked).map(({ text, total_ns }) => [text, total_ns]);
    expect(lines({})).toEqual([
      ["train.py:1 crop", 100],
      ["train.py:1 load > resize", 50],
    ]);
    expect(lines({ range: { from_ns: 130, to_ns: 200 } })).toEqual([
      ["train.py:1 crop", 60],
      ["train.py:1 load > resize", 10],
    ]);
    expect(flame(all, { range: { from_ns: 130, to_ns: 200 } }).total_ns).toBe(70);
    // The stack with the most time, and not the one of the most rows.
    expect(commonest(all.code, [0, 1, 2])).toBe(1);
  });

  test("have exact shares and no samples in the panel", async () => {
    const answers = new FakeAnswers(new Map([["t/0/code", ranges()], ["t/0/code/idle", idle()]]));
    const trace = new Trace(0, traceOverview([trackOverview("q1.work")], { code: "ranges" }), new DataSource(answers));
    trace.loadStrings = () => Promise.resolve();
    trace.strings.push("host-late");
    const panel = new CodePanel(new View(trace), new Appearance([trace]), () => undefined, () => undefined);
    await panel.open();
    const text = fake(panel.element).innerText;
    expect(text).toContain("of idle time in ranges of submitting threads");
    expect(text).toContain("30 ns more in no range");
    expect(text).toContain("66.7");
    expect(text).not.toContain("too few");
  });
});

describe("a trace", () => {
  const track = trackOverview("p1.t7.samples", "samples");
  const answers = (): FakeAnswers => new FakeAnswers(new Map([["t/0/code", SAMPLES], ["t/0/code/idle", IDLE]]));

  test("loads samples once for all their tracks, and for the code of idle time", async () => {
    const fakeAnswers = answers();
    const trace = new Trace(0, traceOverview([track, { ...track, id: "p2.t8.samples" }]), new DataSource(fakeAnswers));
    await Promise.all(trace.tracks.map((track) => trace.loadTrack(track)));
    await trace.loadIdle();
    expect(trace.tracks.map(({ count, state }) => [count, state])).toEqual([
      [11, "ready"],
      [1, "ready"],
    ]);
    expect(fakeAnswers.asked).toEqual(["t/0/code?", "t/0/code/idle?"]);
    expect(trace.tracks[0].rowOf({ lane: 1, index: 0 })).toEqual({ table: "samples", row: 10 });
    expect(trace.nameOf(trace.tracks[0], 1)).toBe("train.py:1 crop");
    expect(await trace.sampleRow(11)).toMatchObject({ track: "p2.t8.samples", start_ns: 150 });
  });

  test("says why samples are missing, and requests them again", async () => {
    const fakeAnswers = new FakeAnswers(new Map());
    const trace = new Trace(0, traceOverview([track]), new DataSource(fakeAnswers));
    await trace.loadTrack(trace.tracks[0]);
    expect(trace.tracks[0].state).toEqual({ missing: "nothing is known of t/0/code" });
    fakeAnswers.answers.set("t/0/code", SAMPLES);
    trace.tracks[0].state = "waiting";
    await trace.loadTrack(trace.tracks[0]);
    expect(trace.tracks[0].state).toBe("ready");
  });

  test("without samples requests none and says how to get them", async () => {
    const fakeAnswers = answers();
    const trace = new Trace(0, traceOverview([trackOverview("q1.work")]), new DataSource(fakeAnswers));
    const panel = new CodePanel(new View(trace), new Appearance([trace]), () => undefined, () => undefined);
    await panel.open();
    expect(fake(panel.element).innerText).toBe(NO_SAMPLES);
    expect(fakeAnswers.asked).toEqual([]);
  });
});
