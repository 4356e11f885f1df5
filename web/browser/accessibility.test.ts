// Checks the page in each of its states against the accessibility rules of axe-core.

import axe from "axe-core";
import { cpSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { COUNTED } from "./counted.ts";
import { fixture } from "./fixture.ts";
import { writeRanks } from "./known-ranks.ts";
import { KNOWN } from "./known.ts";
import { FIREFOX, loaded, temporaryFolder, type Viewer, writeTrace } from "./product.ts";
import { SAMPLED } from "./sampled.ts";

const pages = fixture();
let viewer: Viewer;
let empty: Viewer;
let ranks: Viewer;
let waiting: Viewer;
let sampled: Viewer;
let counted: Viewer;
let capture: Viewer;

beforeAll(async () => {
  const folder = temporaryFolder();
  const known = writeTrace(folder, "known", KNOWN);
  viewer = await pages.serve(known);
  const heads = /^(manifest|process|thread|device|queue|loss) /;
  empty = await pages.serve(writeTrace(folder, "empty", KNOWN.split("\n").filter((line) => heads.test(line)).join("\n")));
  sampled = await pages.serve(writeTrace(folder, "sampled", SAMPLED));
  counted = await pages.serve(writeTrace(folder, "counted", COUNTED));
  for (const rank of [0, 1]) cpSync(known, join(folder, "run", `rank=${rank}`), { recursive: true });
  ranks = await pages.serve(join(folder, "run"));
  waiting = await pages.serve(writeRanks(folder));
  capture = await pages.serve(join(import.meta.dirname, "../../fixtures/fusion.gapcapture"));
});

/** Returns the broken rules, each with the first places. */
async function broken(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

describe.each([false, true])("accessibility, dark: %s", (dark) => {
  test.skipIf(FIREFOX && dark).each([
    ["the page as it opens", ""],
    ["kernels", "#p=kernels"],
    ["labels", "#p=labels"],
    ["limits without counters", "#p=limits"],
    ["code that was not sampled", "#p=code"],
    ["dependencies", "#p=dependencies"],
    ["the folded graph", "#p=graph"],
    ["a comparison", "#p=compare&a=0:label:eager&z=0:label:compiled"],
    ["unlike work compared", "#p=compare&a=0:range:1000000:5000000&z=0:range:12000000:14000000"],
    ["the trace", "#p=about"],
    ["details of work", "#e=dispatches.9&q=cos"],
    ["a selected range", "#s=1000000-9000000"],
  ])("of %s", async (_, hash) => {
    await check(viewer.url + hash, dark);
  });
  test.skipIf(FIREFOX && dark)("of SQL with an answer", async () => {
    const page = await pages.open(`${viewer.url}#p=sql&sql=${encodeURIComponent("select kernel_name, start_ns, null as nothing from dispatches limit 5")}`, { dark });
    await page.waitForSelector('.sql-panel[data-rows="5"]');
    await page.waitForSelector('.sql-panel[data-catalogue="there"]');
    await page.locator(".sql-list summary").first().click();
    expect(await broken(page)).toEqual([]);
  });
  test.skipIf(FIREFOX && dark)("of all tracks, a track's menu, search results and the form of a note", async () => {
    const page = await pages.open(`${viewer.url}#k=pq1.work&q=sin&s=1000000-9000000`, { dark });
    await page.locator(".all-tracks").click();
    expect(await broken(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.locator('[data-track="q1.labels"] .track-handle').click();
    expect(await broken(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.locator(".search input").focus();
    await page.waitForSelector(".results h3");
    expect(await broken(page)).toEqual([]);
    await page.locator('[data-tab="notes"]').click();
    await page.getByRole("button", { name: "New note" }).click();
    await page.waitForSelector(".note-form:not([hidden])");
    expect(await broken(page)).toEqual([]);
  });
  test.skipIf(FIREFOX && dark).each([
    ["the code of idle time", "#p=code", ".flame-node"],
    ["the same with a search", "#p=code&q=next_batch", ".flame-node.found"],
    ["the code of a gap", "#p=code&e=gaps.1", ".gap-code .stack"],
    ["a sample", "#e=samples.9", ".details-panel .stack"],
  ])("of %s", async (_, hash, shown) => {
    await check(sampled.url + hash, dark, shown);
  });
  test.skipIf(FIREFOX && dark).each([
    ["limits of kernels", "#p=limits", ".kernel-mark"],
    ["a kernel's counters", "#e=dispatches.0&s=0-9000000", ".kernel-counters"],
  ])("of %s", async (_, hash, shown) => {
    await check(counted.url + hash, dark, shown);
  });
  test.skipIf(FIREFOX && dark)("of an empty trace", async () => {
    const page = await check(empty.url, dark);
    expect(await page.locator(".nothing").innerText()).toContain("no GPU work");
    expect(await page.locator(".gaps-panel").innerText()).not.toContain("never idle");
  });
  test.skipIf(FIREFOX && dark)("of a capture, with something picked", async () => {
    const page = await pages.openPage(`${capture.url}#n=5`, { dark });
    await page.waitForSelector(".dependencies-details .neighbours");
    expect(await broken(page)).toEqual([]);
  });
  test.skipIf(FIREFOX && dark)("of ranks", async () => {
    const page = await check(ranks.url, dark);
    expect(await page.locator(".timeline.beside").count()).toBe(1);
    expect(await page.locator(".trace-name").innerText()).toBe("run");
  });
  test.skipIf(FIREFOX && dark)("of ranks that wait for one of them", async () => {
    await check(`${waiting.url}#p=ranks`, dark, ".ranks-table tbody tr");
  });
  test.skipIf(FIREFOX && dark)("of the dialog that shares a view", async () => {
    const page = await check(viewer.url, dark);
    await page.locator(".topbar button", { hasText: "Link" }).click();
    expect(await broken(page)).toEqual([]);
  });
  async function check(url: string, dark: boolean, shown = "#app"): Promise<Page> {
    const page = await pages.open(url, { dark });
    await page.waitForSelector(shown);
    await loaded(page);
    expect(await broken(page)).toEqual([]);
    return page;
  }
});
