// Compares facts that the page shows with `gapscope report --json`: a hundred, picked at random on five real traces.
// GAPSCOPE_SEED picks others, and GAPSCOPE_TRACES (files, separated by colons) takes other traces.

import { basename, join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { gapscope, temporaryFolder } from "./product.ts";

const folder = temporaryFolder();
const pages = fixture();
const FIXTURES = join(import.meta.dirname, "../../fixtures");
const TRACES = process.env.GAPSCOPE_TRACES?.split(":") ?? ["kineto/h100.json", "kineto/v100_ns.json", "kineto/v100_old.json", "imports/nsys-2025.5.2.sqlite", "imports/rocprofv3.json"].map((file) => join(FIXTURES, file));
const PICKED = 20;
const SEED = Number(process.env.GAPSCOPE_SEED ?? 39);

/** A fact as the page shows it, and as the report has it: a number in the unit of the report's key, a text, or null for unknown. */
interface Fact {
  what: string;
  shown: string;
  reported: number | string | null;
  kind: "count" | "time" | "share" | "bytes" | "text";
}

const UNITS: Record<string, number> = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, "%": 0.01, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Returns whether a text says a value as precisely as its digits tell; unknown is never a number. */
function agrees({ shown, reported, kind }: Fact): boolean {
  if (reported === null) return shown === "unknown" || shown === "–" || shown === "";
  if (kind === "text") return shown === reported;
  const [, sign, digits, unit] = /^([<>≤]?)\s*([\d,.]+)\s*(\S*)$/.exec(shown.trim()) ?? [];
  if (digits === undefined) return false;
  const scale = kind === "count" ? 1 : UNITS[unit];
  if (scale === undefined) return false;
  const value = Number(digits.replaceAll(",", "")) * scale;
  const step = 10 ** -(digits.split(".")[1]?.length ?? 0) * scale;
  const number = Number(reported);
  if (sign === "<") return number < value && number > 0;
  if (sign === ">") return number > value;
  return Math.abs(number - value) <= step * 0.5000001;
}

type Row = Record<string, unknown>;
interface Report {
  dispatch_count: number;
  verdict_sentence: string;
  verdict_evidence: { what: string; share: number; total_ns: number }[];
  kernels: Row[] | null;
  labels: (Row & { inclusive: Row })[] | null;
  gaps: Row[] | null;
  idle_time: { total_ns: number; longest: { duration_ns: number; cause: string }[] } | null;
  transfers: Row[] | null;
}

/** Returns the tables of a tab, each with its rows by the texts of its headings. */
async function tables(page: Page, tab: string): Promise<Record<string, string>[][]> {
  const button = page.locator(`[data-tab="${tab}"]`);
  if (!(await button.isVisible())) return [];
  await button.click();
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text: string) => void (document.body.dataset.copied = text);
  });
  await page.locator(".copy-table").click();
  const copied = await page.evaluate(() => document.body.dataset.copied ?? "");
  return copied.split("\n\n").map((table) => {
    const [head, ...rows] = table.trim().split("\n").map((line) => line.split("\t"));
    return rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at] ?? ""])));
  });
}

/** Makes facts of the rows of a table that the report has under the same name. Columns that the page leaves out are unknown. */
function ofRows(table: string, rows: readonly Record<string, string>[], name: string, reported: (name: string, shown: Record<string, string>) => Row | undefined, columns: Record<string, [key: string, kind: Fact["kind"]]>): Fact[] {
  return rows.flatMap((row) => {
    const of = reported(row[name], row);
    if (!of) return [{ what: `${table} ${row[name]}`, shown: "is on the page", reported: "is not in the report", kind: "text" }];
    return Object.entries(columns).map(([head, [key, kind]]): Fact => ({ what: `${table} ${row[name]}: ${head}`, shown: row[head] ?? "unknown", reported: (of[key] ?? null) as Fact["reported"], kind }));
  });
}

async function factsOf(page: Page, report: Report): Promise<Fact[]> {
  const facts: Fact[] = [{ what: "the verdict's sentence", shown: await page.locator(".verdict-words p").first().innerText(), reported: report.verdict_sentence, kind: "text" }];
  for (const part of report.verdict_evidence.filter(({ total_ns }) => total_ns > 0)) {
    facts.push({ what: `the verdict's part ${part.what}`, shown: await page.locator(`.verdict [data-part="${part.what}"] b`).innerText(), reported: part.share, kind: "share" });
  }
  facts.push({ what: "dispatches", shown: await page.locator(".facts dd").nth(1).innerText(), reported: report.dispatch_count, kind: "count" });
  for (const item of await page.locator("[data-legend=transfers] li").all()) {
    const [kind, time] = await item.locator("span:not(.swatch)").allInnerTexts();
    facts.push({ what: `transfers ${kind}`, shown: time, reported: (report.transfers?.find((row) => row.kind === kind)?.busy_ns ?? null) as number | null, kind: "time" });
  }
  const [kernels = []] = await tables(page, "kernels");
  facts.push({ what: "the number of kernels", shown: String(kernels.length), reported: report.kernels?.length ?? null, kind: "count" });
  const named = new Map((report.kernels ?? []).map((row) => [row.name, row]));
  facts.push(...ofRows("kernel", kernels, "Kernel", (name) => named.get(name), { Dispatches: ["count", "count"], Busy: ["busy_ns", "time"], Share: ["busy_share", "share"], Median: ["p50_ns", "time"], p99: ["p99_ns", "time"], Longest: ["max_ns", "time"], Reads: ["bound_read_bytes", "bytes"], Writes: ["bound_written_bytes", "bytes"] }));
  const [labels = []] = await tables(page, "labels");
  // Labels are in the report's order, and their own texts may be equal.
  const inOrder = (report.labels ?? []).map(({ text, instances, inclusive }): Row => ({ text, instances, dispatch_count: inclusive.dispatch_count, transfer_count: inclusive.transfer_count, busy_ns: inclusive.busy_ns }));
  facts.push(...ofRows("label", labels, "Label", (_, row) => inOrder[labels.indexOf(row)], { Label: ["text", "text"], Set: ["instances", "count"], Dispatches: ["dispatch_count", "count"], Transfers: ["transfer_count", "count"], Busy: ["busy_ns", "time"] }));
  const [causes = [], gaps = []] = await tables(page, "gaps");
  const names = await page.evaluate(async () => ((await (await fetch("api/overview")).json()) as { traces: { causes: { cause: string; name: string }[] }[] }).traces[0].causes);
  const causeOf = (name: string): string | undefined => names.find((one) => one.name === name)?.cause;
  const idle_ns = report.idle_time?.total_ns ?? NaN;
  const shares = (report.gaps ?? []).map((row): Row => ({ ...row, of_idle: Number(row.total_ns) / idle_ns }));
  facts.push(...ofRows("cause", causes, "Cause", (name) => shares.find(({ cause }) => cause === causeOf(name.split("\n")[0])), { Gaps: ["count", "count"], Time: ["total_ns", "time"], "Of idle": ["of_idle", "share"] }));
  for (const [at, gap] of (report.idle_time?.longest ?? []).entries()) {
    const row = gaps[at];
    if (!row) break;
    facts.push({ what: `the length of gap ${at}`, shown: row.Length, reported: gap.duration_ns, kind: "time" });
  }
  return facts;
}

/** Makes a generator of pseudorandom numbers below a limit. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test.each(TRACES)("the page of %s says what the report says", async (file) => {
  const trace = join(folder, `${basename(file)}.gapscope`);
  gapscope("import", file, "-o", trace);
  const report = JSON.parse(gapscope("report", "--json", trace)) as Report;
  const page = await pages.open((await pages.serve(trace)).url);
  const facts = await factsOf(page, report);
  expect(facts.length).toBeGreaterThan(PICKED);
  const roll = dice(SEED + TRACES.indexOf(file));
  const picked = Array.from({ length: PICKED }, () => facts.splice(roll(facts.length), 1)[0]);
  expect(picked.filter((fact) => !agrees(fact)), `seed ${SEED}`).toEqual([]);
});
