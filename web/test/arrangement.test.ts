import { expect, test } from "vitest";
import { DataSource } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import { Arrangement } from "../src/timeline/arrangement.ts";
import { FakeAnswers, traceOverview, trackOverview } from "./fake-answers.ts";

const IDS = ["a", "b", "c", "d", "e", "f"];

function made(threads = 0, sampled = false): { trace: Trace; arrangement: Arrangement } {
  const calls = Array.from({ length: threads }, (_, thread) => [
    { ...trackOverview(`p1.t${thread}.calls`, "calls"), group: "p1", process: 1, thread, only_call: "create-pipelines" },
    ...(sampled ? [{ ...trackOverview(`p1.t${thread}.samples`, "samples"), group: "p1", process: 1, thread }] : []),
  ]).flat();
  const groups = [{ id: "g0", kind: "gpu" as const, name: "GPU" }, ...(threads > 0 ? [{ id: "p1", kind: "process" as const, name: "made" }] : [])];
  const facts = [{ name: "create-pipelines", call: "create-pipelines", cause: "host-compile" as const, waits: false }];
  const overview = traceOverview([...IDS.map((id) => trackOverview(id)), ...calls], { groups, calls: facts });
  const trace = new Trace(0, overview, new DataSource(new FakeAnswers(new Map())));
  return { trace, arrangement: new Arrangement(trace, () => true) };
}

/** Returns the ids of the visible tracks, pinned tracks first. */
function drawn(arrangement: Arrangement): string[] {
  const { pinned, sections } = arrangement.arranged;
  return [...pinned, ...sections.flatMap(({ folded, tracks }) => (folded ? [] : tracks))].map(({ id }) => id);
}

/** Makes a generator of pseudorandom numbers, the same for each seed. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("any arrangement is read back as it was written", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const roll = dice(seed);
    const { trace, arrangement } = made();
    for (let step = 0; step < 12; step += 1) {
      const track = trace.tracks[roll(IDS.length)];
      const siblings = arrangement.siblings(track.id);
      const expected = siblings.filter((id) => id !== track.id);
      switch (roll(4)) {
        case 0:
          arrangement.show([track], roll(2) === 0);
          break;
        case 1:
          arrangement.pin(track, roll(2) === 0);
          break;
        default: {
          if (siblings.length === 0) break;
          const at = roll(siblings.length);
          const before = expected[at] ?? null;
          arrangement.move(track.id, before);
          expected.splice(before === null ? expected.length : at, 0, track.id);
          // Only the moved track has another place.
          expect(arrangement.siblings(track.id)).toEqual(expected);
        }
      }
    }
    const again = new Arrangement(trace, () => true);
    again.read(arrangement.written);
    expect(drawn(again)).toEqual(drawn(arrangement));
    expect(again.written).toEqual(arrangement.written);
  }
});

test("an order is written no longer than needed", () => {
  const { arrangement } = made();
  arrangement.move("f", "a");
  expect(arrangement.written).toEqual({ order: "f" });
  arrangement.move("f", null);
  expect(arrangement.written).toEqual({});
});

test("ids that the trace does not have are ignored", () => {
  const { arrangement } = made();
  for (const written of [{ tracks: "hnot-there*pneither*xa*" }, { order: "zz**" }, { tracks: "", order: "", text: "" }, { tracks: "constructor*__proto__" }]) {
    arrangement.read(written);
    expect(drawn(arrangement)).toEqual(IDS);
  }
});

test("three threads that do the same are bundled, two are not, and a pinned one is left out", () => {
  expect(made(2).arrangement.arranged.sections[1].bundles).toEqual([]);
  const { trace, arrangement } = made(4);
  const [bundle] = arrangement.arranged.sections[1].bundles;
  expect([bundle.name, bundle.folded, bundle.tracks.length]).toEqual(["4 threads that only compile", true, 4]);
  const track = trace.tracks[IDS.length];
  arrangement.pin(track, true);
  expect(arrangement.arranged.sections[1].bundles[0].name).toBe("3 threads that only compile");
  arrangement.pin(track, false);
  arrangement.reveal(track);
  expect(arrangement.arranged.sections[1].bundles[0].folded).toBe(false);
  // Hiding the bundle hides all of its tracks, and each can be shown again.
  arrangement.show(trace.tracks.slice(IDS.length), false);
  expect(arrangement.arranged.sections.length).toBe(1);
  arrangement.reveal(track);
  expect(arrangement.arranged.sections[1].tracks).toEqual([track]);
});

test("threads are bundled with their sampled code, and hidden together", () => {
  const { trace, arrangement } = made(4, true);
  const [bundle] = arrangement.arranged.sections[1].bundles;
  expect([bundle.name, bundle.tracks.length]).toEqual(["4 threads that only compile", 8]);
  expect(arrangement.arranged.sections[1].tracks).toEqual([]);
  arrangement.show(bundle.tracks, false);
  expect(arrangement.arranged.sections.length).toBe(1);
  expect(arrangement.hiddenCount).toBe(8);
  // A thread with a label of its own is not bundled.
  trace.tracks.push(...new Trace(0, traceOverview([{ ...trackOverview("p1.t0.labels", "thread-labels"), group: "p1", process: 1, thread: 0 }]), new DataSource(new FakeAnswers(new Map()))).tracks);
  arrangement.reset();
  expect(arrangement.arranged.sections[1].bundles[0].name).toBe("3 threads that only compile");
});
