// Tests what panels show while data load, where data are missing, where there are none, and where they are loaded.

import { describe, expect, test } from "vitest";
import { Appearance } from "../src/appearance.ts";
import { DataSource } from "../src/data/source.ts";
import { Trace } from "../src/data/trace.ts";
import type { Findings, Gap, Kernel, KernelCounters, Manifest, RanksAnswer } from "../src/generated/protocol.ts";
import { AboutPanel } from "../src/panels/about.ts";
import { ComparePanel } from "../src/panels/compare.ts";
import { gapDetails } from "../src/panels/gap-details.ts";
import { GapsPanel, nextByCost, nextGap, timeBy } from "../src/panels/gaps.ts";
import { kernelTable, labelTable, limitText, namedKernels, type NamedKernel } from "../src/panels/kernels.ts";
import { Legend } from "../src/panels/legend.ts";
import { points, reached, spareText } from "../src/panels/limits.ts";
import { type FindingsSoFar, part } from "../src/panels/loadable.ts";
import { laterThan, lateRows, noSkews, whyLate } from "../src/panels/ranks.ts";
import { tsv } from "../src/panels/tsv.ts";
import { Verdict } from "../src/panels/verdict.ts";
import { FakeAnswers, traceOverview } from "./fake-answers.ts";
import { fake, fakeDocument } from "./fake-dom.ts";

fakeDocument();

const COMING = "Loading: 1 of 3 tracks of GPU work are here…";

function gap(start_ns: number, ...parts: [cause: string, duration_ns: number][]): Gap {
  let at = start_ns;
  const listed = parts.map(([cause, duration_ns]) => {
    at += duration_ns;
    return { cause, start_ns: at - duration_ns, duration_ns };
  });
  const work = (name: string): Gap["before"] => ({ name }) as Gap["before"];
  const main = [...parts].sort((a, b) => b[1] - a[1])[0][0];
  return { start_ns, duration_ns: at - start_ns, cause: main, parts: listed, before: work("sin"), after: work("cos"), host_calls: [], other_threads: [] } as unknown as Gap;
}

const GAPS = [gap(1000, ["host-late", 30_000], ["launch-latency", 900]), gap(50_000, ["launch-latency", 5000]), gap(60_000, ["launch-latency", 29]), gap(90_000, ["host-late", 4000], ["launch-latency", 1000])];

function findings(more: Partial<Findings> = {}): Findings {
  return {
    verdict: "host-bound",
    verdict_sentence: "The device waited.",
    verdict_evidence: [],
    head: { before: [], notes: [], details: [], steps: [] },
    gpu_busy_ns: 1000,
    dispatch_count: 3,
    gaps: [
      { cause: "host-late", count: 2, total_ns: 34_000, main_count: 2, main_ns: 34_000 },
      { cause: "launch-latency", count: 4, total_ns: 6929, main_count: 2, main_ns: 5029 },
    ],
    idle_time: { gap_count: 4, total_ns: 40_929, longest: GAPS },
    kernels: [],
    labels: [],
    losses: [],
    notes: [],
    unread: [],
    kernel_rows: [],
    label_names: [],
    ...more,
  } as unknown as Findings;
}

const UNREAD = { table: "dispatches", file: "dispatches.parquet", column: null, reason: "its end is missing", rows_read: 0, rows_missing: null };
const CUT = findings({ verdict: "unknown", gaps: null, idle_time: null, kernels: null, labels: null, dispatch_count: null, gpu_busy_ns: null, unread: [UNREAD] });
const EMPTY = findings({ gaps: [], idle_time: { gap_count: 0, total_ns: 0, longest: [] } as unknown as Findings["idle_time"] });
const FAILED = { missing: "the analysis of this trace failed" };
const UNKNOWN = "Unknown. dispatches.parquet cannot be read (its end is missing).";

function made(): Trace {
  return new Trace(0, traceOverview([]), new DataSource(new FakeAnswers(new Map())));
}

/** Returns what a panel shows in each state. */
function told(show: (findings: FindingsSoFar) => string): Record<string, string> {
  return { coming: show(null), failed: show(FAILED), cut: show(CUT), empty: show(EMPTY), there: show(findings()) };
}

describe("idle time", () => {
  test("is not called empty before that is known", () => {
    const panel = new GapsPanel(made(), () => undefined);
    const says = told((found) => (panel.show(found, COMING), fake(panel.element).innerText));
    expect(says.coming).toBe(COMING);
    expect(says.failed).toBe(FAILED.missing);
    expect(says.cut).toBe(UNKNOWN);
    expect(says.empty).toContain("never idle");
    expect(says.there).toContain("host-late");
    expect(says.there).not.toContain("never idle");
  });
  test("without any known times says so", () => {
    const panel = new GapsPanel(made(), () => undefined);
    panel.show({ ...EMPTY, gpu_busy_ns: null }, COMING);
    expect(fake(panel.element).innerText).toContain("No GPU work has known times");
  });
  test("goes back to loading with another edition", () => {
    const panel = new GapsPanel(made(), () => undefined);
    panel.show(findings(), COMING);
    panel.show(null, COMING);
    expect(fake(panel.element).innerText).toBe(COMING);
  });
});

describe("a gap's details", () => {
  test("list a cause once, however often it comes, and draw each of its parts", () => {
    const details = fake(gapDetails(gap(0, ["host-late", 600], ["launch-latency", 100], ["host-late", 300]), "host-late", made().causes, null));
    expect(details.all("li").map((row) => row.innerText)).toEqual(["host-late900 ns90.0 %", "launch-latency100 ns10.0 %"]);
    expect(details.all("div").find(({ className }) => className === "bar")?.all("span").length).toBe(3);
  });
});

describe("a list of gaps", () => {
  test("goes to the whole gap with the listed cause", () => {
    const gone: [number, string][] = [];
    const panel = new GapsPanel(made(), (gap, cause) => gone.push([gap.start_ns, cause]));
    panel.show(findings(), COMING);
    const rows = (): string[] => fake(panel.element).all("tr").map((row) => row.innerText);
    const click = (text: string): void => fake(panel.element).all("tr").find((row) => row.innerText.includes(text))?.click();
    click("30.9 µs");
    expect(gone).toEqual([[1000, "host-late"]]);
    // The gaps of a cause are sorted by its time in each.
    click("launch-latency4");
    expect(fake(panel.element).dataset.cause).toBe("launch-latency");
    const listed = rows().filter((row) => row.includes("sin → cos"));
    expect(listed.map((row) => /launch-latency([\d.]+ [µn]s)/.exec(row)?.[1])).toEqual(["5.00 µs", "1.00 µs", "900 ns", "29 ns"]);
    click("900 ns");
    expect(gone[1]).toEqual([1000, "launch-latency"]);
  });
  test("takes the part of a cause", () => {
    expect(timeBy(GAPS[0], "launch-latency")).toBe(900);
    expect(timeBy(GAPS[0], "host-wait")).toBe(0);
    expect(timeBy(GAPS[0], null)).toBe(30_900);
  });
  test("is walked by cost, the longest first, and wraps around", () => {
    const starts = (cause: string | null, picked: number | null, forward = true): number | undefined => nextByCost(GAPS, cause, picked, forward)?.start_ns;
    expect(starts(null, null)).toBe(1000);
    expect(starts(null, 1000)).toBe(50_000);
    expect(starts(null, 90_000)).toBe(60_000);
    expect(starts(null, 60_000)).toBe(1000);
    expect(starts(null, 50_000, false)).toBe(1000);
    expect(starts("launch-latency", null)).toBe(50_000);
    expect(starts("launch-latency", 50_000)).toBe(90_000);
    expect(nextByCost([], null, null, true)).toBeNull();
  });
  test("is walked in time from the left edge, without short gaps", () => {
    const starts = (cause: string | null, picked: number | null, left_ns: number, forward = true): number | undefined => nextGap(GAPS, cause, picked, left_ns, forward)?.start_ns;
    expect(starts(null, null, 0)).toBe(1000);
    // The keys begin at the left edge.
    expect(starts(null, null, 1000)).toBe(1000);
    expect(starts(null, 1000, 0)).toBe(50_000);
    expect(starts(null, 50_000, 0)).toBe(90_000);
    expect(starts(null, 90_000, 0)).toBe(1000);
    expect(starts(null, 90_000, 0, false)).toBe(50_000);
    expect(starts(null, null, 2000, false)).toBe(1000);
    expect(starts(null, null, 0, false)).toBe(90_000);
    expect(starts("launch-latency", 1000, 0)).toBe(50_000);
    expect(nextGap([], null, null, 0, true)).toBeNull();
  });
});

describe("tables", () => {
  test("of kernels say that they load, why they cannot, or that there are none", () => {
    const table = kernelTable(made(), new Appearance([]), () => undefined);
    const says = told((found) => (table.take(part(found, COMING, namedKernels)), fake(table.element).innerText));
    expect(says).toMatchObject({ coming: expect.stringMatching(COMING), failed: FAILED.missing, cut: UNKNOWN, empty: "The trace has no dispatches." });
  });
  test("of limits have the kernels with a known memory and pipe share", () => {
    const kernel = (name: string, busy_ns: number, shares: { unit: string; share: number }[] | null): NamedKernel => ({ name, busy_ns, limit: null, winnable_ns: null, counters: shares && { shares } }) as NamedKernel;
    const all = [
      kernel("walk", 1, [{ unit: "dram", share: 0.3 }, { unit: "issue", share: 0.25 }, { unit: "fma", share: 0.2 }, { unit: "tensor", share: 0 }]),
      kernel("gemm", 5, [{ unit: "tensor", share: 0.9 }, { unit: "dram", share: 0.2 }]),
      kernel("blind", 9, [{ unit: "tensor", share: 0.9 }]),
      kernel("rare", 9, null),
    ];
    const found = points(all).map(({ kernel: { name }, memory, compute, unit }) => [name, memory, compute, unit]);
    expect(found).toEqual([["gemm", 0.2, 0.9, "tensor"], ["walk", 0.3, 0.2, "fma"]]);
    const counters = (covered_share: number, shares: { unit: string; share: number }[]): KernelCounters => ({ covered_share, shares }) as KernelCounters;
    expect(spareText(counters(0.667, [{ unit: "tensor", share: 0.9 }, { unit: "dram", share: 0.2 }]))).toBe("DRAM 20.0 %, tensor 90.0 %, 66.7 % covered");
    expect(spareText(counters(0, []))).toBe("0 % covered");
    expect(reached(0.654, 0.011)).toBe("65 % ± 2");
    expect([reached(null, null), reached(0.5, null)]).toEqual(["unknown", "50.0 %"]);
  });
  test("of kernels show the limit by the shape of launches, or that it is unknown", () => {
    const launches = { multiprocessors: 132, mean_multiprocessors: 132, waves: 2.5, occupancy: 0.125, occupancy_limited_by: "registers" };
    const row = (limit: string | null, winnable_ns: number | null): Kernel => ({ limit, winnable_ns, launches }) as Kernel;
    expect(limitText(row("tail", 17e6))).toBe("tail ≤ 17.0 ms");
    expect(limitText(row("too-small", 2e6))).toBe("too small ≤ 2.00 ms");
    expect(limitText(row("short", null))).toBe("short");
    expect(limitText(row(null, null))).toBe("–");
    expect(limitText({ ...row(null, null), launches: null })).toBe("unknown");
  });
  test("of labels, too", () => {
    const table = labelTable(() => undefined);
    const says = told((found) => (table.take(part(found, COMING, ({ labels }) => labels && [])), fake(table.element).innerText));
    expect(says).toMatchObject({ coming: expect.stringMatching(COMING), failed: FAILED.missing, cut: UNKNOWN });
    expect(says.empty).toContain("The trace has no labels.");
  });
});

describe("a copied table", () => {
  test("keeps each value in its cell, and has nothing that a spreadsheet would compute", () => {
    expect(tsv([["Kernel", "Time"], ["a\tb\nc", "-1.5 ms"], ["=1+1", "@sum"], ["", "−3"]])).toBe("Kernel\tTime\na b c\t-1.5 ms\n'=1+1\t'@sum\n\t−3\n");
  });
});

describe("other panels", () => {
  test("the verdict shows the progress, and no unknown number", () => {
    const trace = made();
    const verdict = new Verdict(null, trace);
    const says = told((found) => (verdict.show(found, { ...trace.overview, tables: [{ name: "dispatches", rows: null, bytes: 1 }] }, COMING), fake(verdict.element).innerText));
    expect(says.coming).toContain(COMING);
    expect(says.coming).toContain("Dispatchesunknown");
    expect(says.failed).toContain(FAILED.missing);
    expect(says.cut).toContain("Dispatchesunknown");
    expect(says.there).toContain("Dispatches3");
  });
  test("the verdict stands between what makes it doubtful and the notes on it, in the report's words", () => {
    const trace = made();
    const verdict = new Verdict(null, trace);
    const head = { before: ["Host and device times contradict each other."], notes: ["The first 1 s: host-bound.", "1 of 2 GPUs was never used: B."], details: ["No warm-up was found."], steps: ["The median of 5 steps takes 1 ms."] };
    verdict.show(findings({ head }), trace.overview, COMING);
    const text = fake(verdict.element).innerText;
    const order = [head.before[0], "Host-bound", "The device waited.", ...head.notes, ...head.steps, ...head.details].map((part) => text.indexOf(part));
    expect(order).not.toContain(-1);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    verdict.show(findings(), trace.overview, COMING);
    expect(fake(verdict.element).innerText).not.toContain(head.notes[0]);
  });
  test("the legend is empty without findings", () => {
    const trace = made();
    const legend = new Legend(trace, new Appearance([trace]));
    const says = told((found) => ((trace.findings = found), legend.show(), fake(legend.element).innerText));
    expect(says.coming).toContain("once the trace has been analysed");
    expect(says).toMatchObject({ failed: "", cut: "", empty: "" });
    expect(says.there).toContain("host-late");
  });
  test("the choices of a comparison are not called empty before labels are known", () => {
    const trace = made();
    const panel = new ComparePanel([trace], new DataSource(new FakeAnswers(new Map())), { start: () => undefined, stop: () => undefined, step: () => undefined, layOver: () => undefined, selection: () => null });
    const says = told((found) => ((trace.findings = found), panel.fillChoices(), fake(panel.element).all("p").map((p) => p.innerText).join("")));
    expect(says.coming).toContain("once the trace has been analysed");
    expect(says).toMatchObject({ failed: FAILED.missing, cut: UNKNOWN });
    expect(says.empty).toContain("Open two traces");
  });
  test("a device's clock is described as the command describes it", () => {
    const about = new AboutPanel();
    const says = (device: object, hook: string): string => {
      const manifest = { processes: [{ id: 1, hook }], devices: [{ id: 1, process: 1, api: "cuda", name: "Made GPU", driver: "", clock: { method: "calibrated", error_ns: null }, ...device }] };
      about.show(traceOverview([], { manifest: manifest as unknown as Manifest }), null, null);
      return fake(about.element).all("dd").map((dd) => dd.innerText).find((text) => text.startsWith("Made GPU")) ?? "";
    };
    expect(says({}, "Kineto")).toBe("Made GPU (cuda); clock mapped by the tool that wrote the file (Kineto), error unknown");
    expect(says({ driver: "CUDA 12.9", clock: { method: "calibrated", error_ns: 100 } }, "cuda")).toBe("Made GPU (cuda, CUDA 12.9); clock calibrated by the driver, error at most 100 ns");
    expect(says({ clock: { method: "brackets", error_ns: 2000 } }, "cuda")).toContain("clock bounded by submissions and waits, error at most 2.00 µs");
    expect(says({ clock: { method: "none", error_ns: null } }, "cuda")).toContain("clock not mapped to the host's clock");
  });
  test("large counts have separators", () => {
    const trace = made();
    const panel = new ComparePanel([trace], new DataSource(new FakeAnswers(new Map())), { start: () => undefined, stop: () => undefined, step: () => undefined, layOver: () => undefined, selection: () => null });
    panel.instances(1233, 10_000);
    expect(fake(panel.element).innerText).toContain("instance 1,234 of 10,000");
  });
  test("unreadable data are listed beside losses", () => {
    const about = new AboutPanel();
    about.show(traceOverview([], { unread: [UNREAD] }), null, null);
    const text = fake(about.element).innerText;
    expect(text).toContain("dispatches.parquet cannot be read (its end is missing).");
    expect(text).not.toContain("Nothing is known to be missing");
    about.show(traceOverview([]), null, null);
    expect(fake(about.element).innerText).toContain("Nothing is known to be missing");
  });
});

describe("skews of collectives", () => {
  const kind = (more: Partial<RanksAnswer["collectives"][number]>): RanksAnswer["collectives"][number] =>
    ({ kind: "AllReduce", counts: [10, 10], matched_count: 10, uncertain_count: 10, unassigned_count: 0, incomplete_count: 0, unpaired_count: 0, ...more }) as RanksAnswer["collectives"][number];
  const said = (collectives: RanksAnswer["collectives"], more: Partial<RanksAnswer> = {}): string => noSkews({ collectives, clock_error_ns: 50, not_comparable_because: null, not_matched_because: null, ...more });
  test("are none only where each is known to be within the clocks' error", () => {
    expect(said([kind({})])).toBe("No collective has a skew above the clocks' error.");
    expect(said([kind({})], { not_comparable_because: "other machines" })).toContain("unknown");
    expect(said([kind({})], { clock_error_ns: null })).toContain("unknown");
    expect(said([kind({ uncertain_count: null })])).toContain("unknown");
    expect(said([kind({ matched_count: 0, uncertain_count: 0, unassigned_count: 20 })], { not_matched_because: "there are no payloads" })).toBe("Skews are unknown: no collective was matched across the ranks, because there are no payloads.");
    expect(said([kind({ matched_count: 8, uncertain_count: 6, unpaired_count: 2 })])).toBe("The skew of 6 collectives is within the clocks' error; that of 2 matched collectives and 2 collectives without a counterpart is unknown.");
    expect(said([])).toBe("No collective was recorded.");
  });
});

describe("late ranks", () => {
  const cause = { what: "compute", longer_ns: 1e6, share: 1 };
  const late = (rank: number, late_ns: number): RanksAnswer["late_ranks"][number] => ({
    rank, group_count: 1, late_ns, late_count: 80, of_count: 80, chance: 0, later_than: [0], cause, reason: "more-work", evidence: "it launched 1.20 times as many kernels", longer: [cause], stretch: null,
  });
  const straggler: NonNullable<RanksAnswer["straggler"]> = {
    rank: 3, last_count: 7, of_count: 9, skew_ns: 9e6, group_count: 1, cost_ns: 5e6, share: 1, chance: 0, stretch: null, cause: { ...cause, what: "host-late" }, reason: null, evidence: null, longer: [],
  };

  test("has each rank once, the latest first", () => {
    const rows = lateRows({ straggler, late_ranks: [late(1, 2e6), late(2, 7e6)] });
    expect(rows.map(({ rank }) => rank)).toEqual([2, 3, 1]);
    expect(rows.map(({ than }) => laterThan(than))).toEqual(["rank 0", "all others", "rank 0"]);
    expect(lateRows({ straggler: { ...straggler, rank: 2 }, late_ranks: [late(2, 7e6)] })).toHaveLength(1);
  });

  test("says why in a word, and what the device did", () => {
    const [first, second] = lateRows({ straggler, late_ranks: [late(2, 7e6)] });
    expect(whyLate(first, (name) => name)).toBe("more work (computes longer)");
    expect(whyLate(second, () => "host late")).toBe("idle: host late");
    expect(whyLate({ ...first, cause: null }, (name) => name)).toBe("several causes");
  });
});
