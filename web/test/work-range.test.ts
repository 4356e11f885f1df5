import { expect, test } from "vitest";
import { DataSource } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import { workRange } from "../src/work-range.ts";
import { FakeAnswers, traceOverview, trackOverview } from "./fake-answers.ts";

function made(...busy: number[][]): Trace {
  const tracks = busy.map((shares, number) => trackOverview(`q${number}.work`, "work", btoa(String.fromCharCode(...shares))));
  return new Trace(0, traceOverview([...tracks, trackOverview("p1.t1.calls", "calls", btoa("\xff".repeat(10)))], { extent: [0, 1000] }), new DataSource(new FakeAnswers(new Map())));
}

test("the part with GPU work is shown first where most of a trace has none", () => {
  expect(workRange(made([0, 0, 0, 0, 0, 0, 9, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 255, 0]))).toEqual({ from_ns: 588, to_ns: 912 });
  expect(workRange(made([0, 0, 1, 0, 0, 0, 0, 0, 0, 1]))).toBeNull();
  expect(workRange(made([0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))).toBeNull();
  expect(workRange(made())).toBeNull();
});
