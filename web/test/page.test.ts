import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Appearance } from "../src/appearance.ts";
import { type SideChoice, firstPair, readSide, typicalInstance, writeSide } from "../src/comparison-sides.ts";
import { readFrame } from "../src/data/frame.ts";
import { DataSource } from "../src/data/source.ts";
import { nameOf, stepName, stepsOf, stepText } from "../src/data/steps.ts";
import { Trace } from "../src/data/trace.ts";
import { ALL_WORK, colours, inkOn, luminance, PARTS, workSlots } from "../src/draw/palette.ts";
import { Texts } from "../src/draw/texts.ts";
import { actionOf, KEYS } from "../src/input/keys.ts";
import { Lane } from "../src/lane/lane.ts";
import { partsIn, startingIn, unionBusy } from "../src/lane/statistics.ts";
import { changeText, figureText } from "../src/panels/compare.ts";
import { fieldValue } from "../src/panels/details.ts";
import { sorted } from "../src/panels/table.ts";
import { hitLanes, nextHit, hitNumber, steppedLanes } from "../src/search-hits.ts";
import { marks, pattern, typingErrors } from "../src/search-pattern.ts";
import { shownTraces } from "../src/shown-traces.ts";
import { readViewState, type ViewState, writeViewState } from "../src/view-state.ts";
import type { EventPlace } from "../src/view.ts";
import { type Event, FakeAnswers, json, trackFrame, traceOverview, trackOverview } from "./fake-answers.ts";
import type { Figure, Manifest } from "../src/generated/protocol.ts";

function lane(events: [number, number, number][]): Lane {
  return new Lane({
    start_ns: Float64Array.from(events, (event) => event[0]),
    duration_ns: Uint32Array.from(events, (event) => event[1]),
    key: Uint32Array.from(events, (event) => event[2]),
  });
}

describe("a range", () => {
  const lanes = [
    lane([
      [0, 10, 0],
      [20, 10, 1],
    ]),
    lane([
      [5, 10, 0],
      [28, 10, 0],
    ]),
  ];
  test("is busy where at least one lane is", () => {
    expect(unionBusy(lanes, { from_ns: 0, to_ns: 100 })).toBe(33);
    expect(unionBusy(lanes, { from_ns: 8, to_ns: 30 })).toBe(7 + 10);
    expect(unionBusy(lanes, { from_ns: 15, to_ns: 20 })).toBe(0);
    expect(unionBusy([], { from_ns: 0, to_ns: 5 })).toBe(0);
  });
  test("counts what starts in it, and the parts that reach into it", () => {
    expect(startingIn(lanes, { from_ns: 5, to_ns: 28 })).toEqual([
      { key: 0, count: 1, total_ns: 10, longest_ns: 10 },
      { key: 1, count: 1, total_ns: 10, longest_ns: 10 },
    ]);
    expect(partsIn(lanes, { from_ns: 5, to_ns: 28 })).toEqual([
      { key: 0, count: 2, total_ns: 15, longest_ns: 10 },
      { key: 1, count: 1, total_ns: 8, longest_ns: 8 },
    ]);
  });
});

describe("a link", () => {
  test("carries the whole view", () => {
    const state: ViewState = {
      range: { from_ns: -12.5, to_ns: 1e12 },
      selection: { from_ns: 5, to_ns: 9 },
      event: { table: "host_calls", row: 12 },
      search: "a&b#c=ü .*",
      colouring: "label",
      panel: "compare",
      cause: "host-late",
      code_cause: "submit-call",
      code_label: "step 1 / attention & more",
      compare: { before: "0:label:eager / sin", after: "1:all", instance: 0 },
    };
    expect(readViewState(`#${writeViewState(state)}`)).toEqual(state);
  });
  test("with nonsense in it shows everything", () => {
    expect(readViewState("#t=9-3&s=x&e=..&c=purple&p=__proto__&a=1&g=&i=-1")).toEqual({});
    expect(readViewState("#a=0:all&z=1:all&i=x").compare).toEqual({ before: "0:all", after: "1:all" });
    expect(writeViewState({})).toBe("");
  });
  test("names the sides of a comparison", () => {
    for (const side of [
      { trace: 1, what: "all" } as const,
      { trace: 0, what: "label", path: "a:b / c\nd" } as const,
      { trace: 0, what: "range", range: { from_ns: 3, to_ns: 9 } } as const,
    ]) {
      expect(readSide(writeSide(side))).toEqual(side);
    }
    expect(readSide("0:range:9:3")).toBeNull();
    expect(readSide("nothing")).toBeNull();
  });
});

describe("a comparison", () => {
  /** Returns the pair that is suggested for labels with the times at which each was set. */
  async function first(set: Record<string, number[]>, without: readonly string[] = []): Promise<string[] | undefined> {
    const answers = new FakeAnswers(new Map());
    answers.bytes = async (_key, query = {}) => {
      const instances = set[String(query.label)].map((start_ns) => ({ start_ns, duration_ns: 5, track: "q1.labels", row: 0 }));
      return json({ instances, count: instances.length });
    };
    const source = new DataSource(answers);
    const choices = Object.entries(set).map(([path, { length }]): SideChoice => ({ side: { trace: 0, what: "label", path }, instances: length, dispatches: without.includes(path) ? 0 : 3 }));
    return (await firstPair(source, [new Trace(0, traceOverview([]), source)], choices))?.map(writeSide);
  }

  test("suggests sibling labels that were set equally often, one after the other", async () => {
    expect(await first({ eager: [0, 10], "eager / sin": [1, 11], compiled: [20, 30] })).toEqual(["0:label:eager", "0:label:compiled"]);
    expect(await first({ bench: [0], "bench / a": [0, 10], "bench / b": [20, 30] })).toEqual(["0:label:bench / a", "0:label:bench / b"]);
    // A label and its own child are not compared.
    expect(await first({ step: [0], "step / a": [1] })).toBeUndefined();
    // Nor is a label without work, or one that was set more often.
    expect(await first({ "## forward ##": [0, 10], "## load_batch ##": [20, 30] }, ["## load_batch ##"])).toBeUndefined();
    expect(await first({ warmup: [0], train: [10, 20] })).toBeUndefined();
    // Nor are the phases of a step.
    expect(await first({ forward: [0, 20, 40], backward: [10, 30, 50] })).toBeUndefined();
    expect(await first({ "step 1": [0], "step 2": [10] })).toBeUndefined();
    expect(await first({ forward: [0, 20], backward: [10, 30], eager: [50, 60] })).toEqual(["0:label:forward", "0:label:eager"]);
  });

  test("suggests two traces", async () => {
    const source = new DataSource(new FakeAnswers(new Map()));
    const choices: SideChoice[] = [{ side: { trace: 0, what: "all" } }, { side: { trace: 0, what: "label", path: "a" }, instances: 1, dispatches: 1 }, { side: { trace: 1, what: "all" } }];
    expect((await firstPair(source, [], choices))?.map(writeSide)).toEqual(["0:all", "1:all"]);
    expect(await firstPair(source, [], choices.slice(0, 2))).toBeNull();
  });

  test("gives each figure its unit", () => {
    expect(figureText("submissions", 1)).toBe("1");
    expect(figureText("dispatches", 2.5)).toBe("2.5");
    expect(figureText("dispatches", 400)).toBe("400");
    expect(figureText("dispatches", 400.04)).toBe("400");
    expect(figureText("bytes bound", 2048)).toBe("2.00 KiB");
    expect(figureText("wall ns", 1500)).toBe("1.50 µs");
    expect(figureText("dispatches", null)).toBe("unknown");
  });

  test("says less, more, the same, noise and unknown", () => {
    const none = { what: "GPU busy ns" as Figure, low: null, high: null, within_noise: null, before_spread: null, after_spread: null };
    expect(changeText({ ...none, before: 4, after: 1, ratio: 4 })).toBe("0.25 × as much");
    expect(changeText({ ...none, before: 1, after: 1.8, ratio: 1 / 1.8 })).toBe("1.80 × as much");
    expect(changeText({ ...none, what: "dispatches", before: 400, after: 100, ratio: 4 })).toBe("0.25 × as many");
    expect(changeText({ ...none, before: 1000, after: 12, ratio: 1000 / 12 })).toBe("0.012 × as much");
    expect(changeText({ ...none, before: 1000, after: 1001, ratio: 1000 / 1001 })).toBe("about the same");
    expect(changeText({ ...none, before: 0, after: 7, ratio: 0 })).toBe("new");
    expect(changeText({ ...none, before: 0, after: 0, ratio: null })).toBe("the same");
    expect(changeText({ ...none, before: 3, after: 0, ratio: null })).toBe("none");
    expect(changeText({ ...none, before: null, after: null, ratio: null })).toBe("unknown");
    expect(changeText({ ...none, before: 1.02, after: 1, ratio: 1.02, within_noise: true })).toBe("within noise");
  });
});

describe("steps", () => {
  const ranges = (lengths: readonly number[]): { from_ns: number; to_ns: number }[] => lengths.map((ns, at) => ({ from_ns: at * 1e6, to_ns: at * 1e6 + ns }));
  const found = (label: string | null): ReturnType<typeof stepsOf> => {
    const step = { is_left_out: false, is_slow: false, window_ns: 100, parts: [], idle: [] };
    const steps = [100, 101, 160].map((duration_ns, at) => ({ ...step, number: at + 11, start_ns: at * 1000, duration_ns, ...(at === 2 ? { because: "60 ns more idle" } : {}) }));
    const summary = { found_by: "markers" as const, label, process_id: 1, thread: 7, found: "", count: 3, median: 1, median_ns: 101, slow: [2], outside_ns: 0, outside: [], sentences: [] };
    return stepsOf({ steps, step_summary: summary });
  };
  test("are those of the findings, with their numbers", () => {
    const steps = found("iteration *");
    if (!steps) throw new Error("the findings have steps");
    expect(steps.ranges[2]).toEqual({ from_ns: 2000, to_ns: 2160 });
    expect(nameOf(steps, 0)).toBe("iteration 11");
    expect(stepName(steps, { from_ns: 1000, to_ns: 1101 })).toBe("iteration 12 (median)");
    expect(stepName(steps, { from_ns: 1000, to_ns: 1100 })).toBeNull();
    expect(stepText(steps, 2)).toBe("iteration 13: 160 ns, slow; 60 ns more idle");
    expect(found(null)?.name).toBe("step");
    expect(stepsOf({ steps: [] })).toBeNull();
    expect(stepsOf({ steps: null })).toBeNull();
  });
  test("are compared from the instance that is usual on both sides", () => {
    expect(typicalInstance([ranges([500, 90, 100, 101, 99]), ranges([900, 210, 200, 400, 199])])).toBe(2);
    expect(typicalInstance([ranges([5]), ranges([7])])).toBe(0);
  });
});

describe("search", () => {
  test("ignores case unless there is a capital", () => {
    const found = pattern("mat(mul|vec)");
    expect(found && "matches" in found && found.matches("MatMul_f32")).toBe(true);
    const strict = pattern("Mat");
    expect(strict && "matches" in strict && strict.matches("matmul")).toBe(false);
    const classes = pattern("\\D+x");
    expect(classes && "matches" in classes && classes.matches("AX")).toBe(true);
  });
  test("says what is wrong with an expression", () => {
    const found = pattern("a(");
    expect(found && "problem" in found && found.problem).toContain("not a regular expression");
    expect(pattern("")).toBeNull();
  });
  test("marks texts", () => {
    expect([...marks(["ab", "c", "cab"], (text) => text.includes("ab"))]).toEqual([1, 0, 1]);
  });
});

describe("a search with typing errors", () => {
  test.each([
    ["cudamemcpyasync", "cudaMemcpyAsync", 0],
    ["cudamemcopyasync", "cudaMemcpyAsync", 1],
    ["cudamemcypasync", "cudaMemcpyAsync", 1],
    ["zom_shift", "<built-in function zoom_shift>", 1],
    ["atension", "flash attention forward", 2],
    ["softmax", "gemm", 6],
    ["abcd", "", 4],
  ])("%s in %s has some", (word, text, errors) => {
    expect(typingErrors(word, text.toLowerCase())).toBe(errors);
  });
  test("is tried only where nothing has exactly the name, and not for expressions or short texts", () => {
    const trace = new Trace(0, traceOverview([]), new DataSource(new FakeAnswers(new Map())));
    trace.strings.push("matmul_nt", "softmax");
    const appearance = new Appearance([trace]);
    const found = (text: string): string[] => {
      appearance.search(pattern(text));
      return trace.strings.filter((name) => appearance.finds(name));
    };
    expect(found("matmul")).toEqual(["matmul_nt"]);
    expect(appearance.isLoose).toBe(false);
    expect(found("sotfmax")).toEqual(["softmax"]);
    expect(appearance.isLoose).toBe(true);
    expect(found("sotf.*max")).toEqual([]);
    expect(found("mtm")).toEqual([]);
    // A name that arrives later is exact.
    expect(found("matmull")).toEqual(["matmul_nt"]);
    trace.strings.push("matmull");
    trace.changes += 1;
    expect(trace.strings.filter((name) => appearance.finds(name))).toEqual(["matmull"]);
  });
});

describe("matches of a search", () => {
  const trace = new Trace(0, traceOverview([trackOverview("q1.work"), trackOverview("g0.gaps", "gaps")]), new DataSource(new FakeAnswers(new Map())));
  trace.strings = ["sin", "cos"];
  const event = (start: number, name: number, row: number): Event => ({ start, duration: 5, name, row });
  // The trace has two lanes with two events that start at the same time.
  trace.tracks[0].take(readFrame(trackFrame([[event(0, 0, 0), event(10, 1, 1), event(20, 0, 2)], [event(4, 0, 3), event(20, 0, 4)]], ["dispatches"])));
  trace.tracks[1].take(readFrame(trackFrame([[event(5, 1, 0)]], ["gaps"])));
  const appearance = new Appearance([trace]);
  appearance.search(pattern("sin"));
  const lanes = hitLanes(trace, appearance, "work");
  const at = (lane: number, index: number): EventPlace => ({ track: trace.tracks[0], lane, index });
  test("is counted, and each has its place in time", () => {
    expect([at(0, 0), at(1, 0), at(0, 2), at(1, 1)].map((event) => hitNumber(lanes, event))).toEqual([1, 2, 3, 4]);
    expect(hitNumber(lanes, at(0, 1))).toBeNull();
    expect(hitNumber(lanes, null)).toBeNull();
  });
  test("are those of calls, by the functions' names, where no work matches", () => {
    const trace = new Trace(0, traceOverview([trackOverview("q1.work"), trackOverview("p1.t7.calls", "calls")]), new DataSource(new FakeAnswers(new Map())));
    trace.strings = ["sin", "cudaMemcpyAsync"];
    trace.tracks[0].take(readFrame(trackFrame([[event(0, 0, 0)]], ["dispatches"])));
    trace.tracks[1].take(readFrame(trackFrame([[event(5, 1, 3)]], ["submissions"])));
    const stepped = (text: string): string[] => {
      const appearance = new Appearance([trace]);
      appearance.search(pattern(text));
      return steppedLanes(trace, appearance).map(({ track }) => track.id);
    };
    expect(stepped("memcpyasync")).toEqual(["p1.t7.calls"]);
    expect(stepped("sin")).toEqual(["q1.work"]);
    expect(stepped("nothing")).toEqual([]);
  });
  test("steps forward and backward, and wraps around", () => {
    const order = [at(0, 0), at(1, 0), at(0, 2), at(1, 1)];
    order.forEach((event, number) => {
      expect(nextHit(lanes, event, 0, true)).toEqual(order[(number + 1) % 4]);
      expect(nextHit(lanes, event, 0, false)).toEqual(order[(number + 3) % 4]);
    });
    // The search starts from the left edge, and from an event that is no match.
    expect(nextHit(lanes, null, 4, true)).toEqual(at(1, 0));
    expect(nextHit(lanes, null, 4, false)).toEqual(at(0, 0));
    expect(nextHit(lanes, at(0, 1), 0, true)).toEqual(at(0, 2));
    expect(nextHit(lanes, at(0, 1), 0, false)).toEqual(at(1, 0));
    expect(nextHit([], null, 0, true)).toBeNull();
  });
  test("leaves gaps as they are", () => {
    expect(appearance.foundIn(trace, trace.tracks[1], 0)).toBeNull();
    expect(appearance.finds("sinh") && !appearance.finds("cos")).toBe(true);
  });
});

describe("ranks", () => {
  const source = new DataSource(new FakeAnswers(new Map()));
  const of = (number: number, name: string, rank: number | null, tracks = 1): Trace =>
    new Trace(number, { ...traceOverview(tracks > 0 ? [trackOverview("q1.work")] : [], { name }), manifest: { rank: rank === null ? null : { rank, local_rank: null, world_size: 12 } } as Manifest }, source);
  // Traces come in the order of their appearance.
  const traces = [of(0, "run", null, 0), of(1, "rank 10", 10), of(2, "rank 2", 2), of(3, "rank 11", 11, 0)];
  const names = (together: string | null, search: string): string[] => {
    const { first, beside } = shownTraces({ protocol: 1, gapscope: "", file: null, traces: [], together, bins: 1 }, traces, search);
    return [first, ...beside].map((trace) => trace.overview.name);
  };
  test("are shown by number if they have tracks", () => {
    expect(names("run", "")).toEqual(["rank 2", "rank 10"]);
  });
  test("can each come first", () => {
    expect(names("run", "?first=rank+10")).toEqual(["rank 10", "rank 2"]);
    expect(names("run", "?first=rank+11")).toEqual(["rank 2", "rank 10"]);
  });
  test("are not suggested where two traces are compared", () => {
    expect(names(null, "?first=rank+10")).toEqual(["run"]);
  });
});

describe("a text on a canvas", () => {
  // An m is three times as wide as an i.
  const measureText = (text: string): { width: number } => ({ width: [...text].reduce((sum, letter) => sum + ({ m: 9, i: 3 }[letter] ?? 6), 0) });
  const texts = new Texts({ measureText } as CanvasRenderingContext2D);
  test("is never wider than its room, and left out where too little of it would remain", () => {
    for (const text of ["mmmmmmmmmmmm", "iiiiiiiiiiiiiiiiii", "mixed", "mul_mat_vec_q8"]) {
      for (let room = 5; room < 140; room += 1) {
        const cut = texts.cut(text, room);
        expect(measureText(cut).width).toBeLessThanOrEqual(room);
        expect(cut === text || cut === "" || cut.length >= 5, `${cut} in ${room}`).toBe(true);
      }
    }
    expect(texts.cut("mixed", 200)).toBe("mixed");
  });
});

describe("keys", () => {
  const press = (key: string, held = {}): ReturnType<typeof actionOf> => actionOf({ key, ctrlKey: false, metaKey: false, altKey: false, ...held });
  test("do what the help says", () => {
    for (const { keys, action } of KEYS) for (const key of keys) expect(press(key)).toBe(action);
    expect(press("W")).toBe("zoom-in");
  });
  test("with Control belong to the browser", () => {
    expect(press("f", { ctrlKey: true })).toBeUndefined();
    expect(press("x")).toBeUndefined();
  });
  test("have one meaning each", () => {
    const all = KEYS.flatMap(({ keys }) => keys);
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("tables", () => {
  test("sort unknown values last in both directions", () => {
    const rows = [{ n: 2 }, { n: null }, { n: 3 }, { n: 1 }];
    expect(sorted(rows, (row) => row.n, true).map((row) => row.n)).toEqual([3, 2, 1, null]);
    expect(sorted(rows, (row) => row.n, false).map((row) => row.n)).toEqual([1, 2, 3, null]);
  });
  test("write times and sizes in readable units", () => {
    expect(fieldValue("busy_ns", "1500000")).toBe("1500000 (1.50 ms)");
    expect(fieldValue("bytes", "2048")).toBe("2048 (2.00 KiB)");
    expect(fieldValue("groups_x", "2048")).toBe("2048");
    expect(fieldValue("name", null)).toBe("unknown");
    expect(fieldValue("name", "")).toBe("");
  });
});

/** Matrices for the complete lack of one kind of cone, on linear RGB, from Machado, Oliveira, Fernandes 2009, severity 1. */
const SEEN_BY: Record<string, number[]> = {
  everyone: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};

/** Returns the place of a colour in OKLab (Ottosson 2020), where distances match perceived differences. */
function seen(colour: string, by: number[]): number[] {
  const linear = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const [r, g, b] = [0, 3, 6].map((row) => Math.max(0, by[row] * linear[0] + by[row + 1] * linear[1] + by[row + 2] * linear[2]));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
  ];
}

/** The causes and their colours as the analysis defines them. */
const CAUSES = [...readFileSync(join(import.meta.dirname, "../../crates/analysis/src/gaps/cause.rs"), "utf8").matchAll(/= "([a-z-]+)" \{[^}]*?colour: "(#[0-9a-f]{6})"/g)].map(([, cause, colour]) => ({ cause, colour }));

describe("colours", () => {
  test("are there for every cause", () => {
    expect(CAUSES.length).toBeGreaterThan(12);
  });
  test("of causes are distinct with each kind of colour blindness", () => {
    // A distance of about 0.02 is just noticeable side by side.
    for (const [who, matrix] of Object.entries(SEEN_BY)) {
      for (const [at, one] of CAUSES.entries()) {
        for (const other of CAUSES.slice(at + 1)) {
          const [a, b] = [seen(one.colour, matrix), seen(other.colour, matrix)];
          const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
          expect(distance, `${one.cause} and ${other.cause} for ${who}`).toBeGreaterThan(0.09);
        }
      }
    }
  });
  test("have one meaning: those of transfers and of all computing are no kernel's and no cause's", () => {
    const parts = Object.entries(PARTS);
    const others = [...ALL_WORK, ...CAUSES.map(({ colour }) => colour)].map((colour) => [colour, colour]);
    for (const [at, [name, colour]] of parts.entries()) {
      for (const [other, its] of [...others, ...parts.slice(at + 1)]) {
        const [a, b] = [seen(colour, SEEN_BY.everyone), seen(its, SEEN_BY.everyone)];
        expect(Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), `${name} and ${other}`).toBeGreaterThan(0.06);
      }
    }
  });
  test("of text are readable on their backgrounds", () => {
    const contrast = (a: string, b: string): number => {
      const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
      return (x + 0.05) / (y + 0.05);
    };
    for (const theme of ["light", "dark"] as const) {
      const { text, faint, background, panel, work } = colours(theme);
      for (const on of [background, panel]) {
        expect(contrast(text, on)).toBeGreaterThan(7);
        expect(contrast(faint, on)).toBeGreaterThan(4.5);
      }
      for (const colour of [...work, ...CAUSES.map(({ colour }) => colour)]) expect(contrast(inkOn(colour), colour), `${colour} in ${theme}`).toBeGreaterThan(4);
    }
  });
  test("go to the costliest names", () => {
    const costs = Array.from({ length: 30 }, (_, key) => key);
    const slots = workSlots(costs);
    expect(slots[29]).toBe(0);
    expect(slots[28]).toBe(1);
    expect(new Set(slots).size).toBe(colours("light").work.length);
    expect(slots[1]).toBe(slots[0]);
  });
});
