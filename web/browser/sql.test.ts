// Tests the SQL panel with the real program, and the way from a row to its place in the timeline.

import { cpSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { writeRanks } from "./known-ranks.ts";
import { GAPS, KERNELS, KNOWN } from "./known.ts";
import { built, gapscope, startServer, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const folder = temporaryFolder();
let trace: string;
// The browser logs requests that the server refuses.
const pages = fixture(/status of/);
let viewer: Viewer;
let ranks: Viewer;
let alone: Viewer;

beforeAll(async () => {
  built("gapscope-query");
  trace = writeTrace(folder, "known", KNOWN);
  viewer = await pages.serve(trace);
  ranks = await pages.serve(writeRanks(folder));
  // A command that finds no gapscope-query.
  cpSync(built("gapscope"), join(folder, "alone/gapscope"), { recursive: true });
  alone = await pages.stopLater(startServer(["view", "--no-open", trace], { PATH: "/nonexistent" }, join(folder, "alone/gapscope")));
});

async function open(hash = "#p=sql", url = viewer.url): Promise<Page> {
  return pages.open(url + hash);
}

async function ask(page: Page, sql: string): Promise<void> {
  const editor = page.getByRole("textbox", { name: "SQL" });
  await editor.fill(sql);
  await editor.press("Control+Enter");
  await page.waitForSelector('.sql-panel[data-running="false"]');
}

const answer = (page: Page) => page.locator(".sql-result tbody tr");
const said = (page: Page) => page.locator(".sql-status");

test("a saved query shows its meaning, and runs", async () => {
  const page = await open();
  const saved = page.locator(".sql-list .query", { hasText: "kernels" }).first();
  expect(await saved.innerText()).toContain("by the sum of their dispatches' times");
  await saved.click();
  await page.waitForSelector(`.sql-panel[data-rows="${KERNELS.length}"]`);
  const names = await answer(page).locator("td:first-child").allInnerTexts();
  expect([...names].sort()).toEqual([...KERNELS].sort());
  expect(await said(page).innerText()).toMatch(/^5 rows, \d+\.\d\d s$/);
  // The query is in the editor.
  expect(await page.getByRole("textbox", { name: "SQL" }).inputValue()).toContain("group by");
});

test("a query leaves open tables open and the focus in place", async () => {
  const page = await open();
  await page.waitForSelector('.sql-panel[data-catalogue="there"]');
  const table = page.locator(".sql-list details").first();
  await table.locator("summary").click();
  const focused = (): Promise<string | undefined> => page.evaluate(() => document.activeElement?.textContent ?? undefined);
  const saved = page.locator(".sql-list .query", { hasText: "kernels" }).first();
  const name = await saved.innerText();
  await saved.press("Enter");
  await page.waitForSelector(`.sql-panel[data-rows="${KERNELS.length}"]`);
  expect(name.replaceAll("\n", "")).toContain(await focused());
  expect(await table.getAttribute("open")).not.toBeNull();
  await ask(page, "select 42 as n");
  // The previous query is run again, and then comes first.
  const earlier = page.locator(".earlier .query").nth(1);
  const before = await earlier.innerText();
  await earlier.press("Enter");
  await page.waitForSelector(`.sql-panel[data-rows="${KERNELS.length}"]`);
  await expect.poll(() => page.locator(".earlier .query").first().innerText()).toBe(before);
  expect(await focused()).toBe(before);
});

test("a row leads to its dispatch, a gap to its gap, other rows to their time", async () => {
  const page = await open();
  await page.waitForSelector('.sql-panel[data-catalogue="there"]');
  await ask(page, "select kernel_name, command_buffer, position, start_ns, duration_ns from dispatches order by start_ns limit 3");
  expect(await answer(page).nth(1).innerText()).toMatch(/^cos\s+1\s+1\s+1\.100 ms\s+100 µs$/);
  await answer(page).nth(1).getByRole("button").press("Enter");
  await expect.poll(async () => (await state(page)).event).toBe("dispatches.1");
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("Escape");
  await ask(page, "select cause, gap_ns, start_ns, duration_ns from gaps where cause = 'host-late' order by start_ns limit 1");
  await answer(page).first().click();
  await expect.poll(async () => (await state(page)).event).toMatch(/^gaps\./);
  expect(await page.locator(".side").innerText()).toContain("host late");
  // The time from the start of the trace is enough.
  await ask(page, "select cause, from_start_ns, duration_ns from gaps where cause = 'launch-latency' order by from_start_ns limit 1");
  await answer(page).first().click();
  await expect.poll(() => page.locator(".side").innerText()).toContain("launch latency");
  // A row of two tables leads only to its time.
  await ask(page, "select c.start_ns, c.duration_ns from command_buffers c join submissions s on s.id = c.submission order by c.start_ns limit 1");
  await answer(page).first().click();
  await expect.poll(async () => (await state(page)).selection).toBe("1000000-1400000");
});

test("columns sort by a click, and copies have the exact values", async () => {
  const page = await open();
  await ask(page, "select id, start_ns, null as nothing, '' as empty, 'a,b' as text from command_buffers order by id limit 3");
  await page.locator(".sql-result thead button", { hasText: "id" }).click();
  await page.locator(".sql-result thead button", { hasText: "id" }).click();
  expect(await answer(page).first().innerText()).toMatch(/^1\s/);
  await page.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text: string) => void (document.body.dataset.copied = text) } });
  });
  const copied = async (name: string): Promise<string | undefined> => {
    await page.getByRole("button", { name }).click();
    return page.evaluate(() => document.body.dataset.copied);
  };
  expect((await copied("Copy CSV"))?.split("\n").slice(0, 2)).toEqual(["id,start_ns,nothing,empty,text", '1,1000000,,"","a,b"']);
  expect((await copied("Copy TSV"))?.split("\n")[1]).toBe("1\t1000000\t\t\ta,b");
});

test("a query is in the link, and runs again when the link is opened", async () => {
  let page = await open();
  await ask(page, "select count(*) as n from dispatches");
  await expect.poll(() => page.evaluate(() => location.hash)).toContain("sql=select");
  const { hash } = new URL(page.url());
  await page.close();
  page = await open(hash);
  await page.waitForSelector('.sql-panel[data-rows="1"]');
  expect(await answer(page).innerText()).toBe("50");
  // The query is among the earlier ones.
  await page.waitForSelector('.sql-panel[data-catalogue="there"]');
  expect(await page.locator(".earlier .query").first().innerText()).toBe("select count(*) as n from dispatches");
});

test("a query that cannot run shows the program's message", async () => {
  const page = await open();
  await ask(page, "select kernel_nme from dispatches");
  expect(await said(page).innerText()).toBe("there is no column kernel_nme: did you mean kernel_name, kernel_full_name or kernel?");
  await ask(page, "drop table dispatches");
  expect(await said(page).innerText()).toContain("only reads");
  await ask(page, "select * from generate_series(1, 3000)");
  expect(await said(page).innerText()).toContain("the first 1,000 rows, there are more");
  await ask(page, "select 1 as n where false");
  expect(await page.locator(".sql-result").innerText()).toContain("The query has no rows.");
});

test("Escape stops a query, and so does another query", async () => {
  const page = await open();
  const editor = page.getByRole("textbox", { name: "SQL" });
  await editor.fill("select count(*) from generate_series(1, 900000000000)");
  await editor.press("Control+Enter");
  await page.waitForSelector('.sql-panel[data-running="true"]');
  await editor.press("Escape");
  expect(await said(page).innerText()).toBe("The query was stopped.");
  await editor.press("Control+Enter");
  await page.waitForSelector('.sql-panel[data-running="true"]');
  await ask(page, "select 7 as n");
  await page.waitForSelector('.sql-panel[data-rows="1"]');
  expect(await answer(page).innerText()).toBe("7");
});

test("a row of several ranks leads to the rank that it names", async () => {
  const page = await open("#p=sql", ranks.url);
  await ask(page, "select trace, start_ns, duration_ns from dispatches order by trace desc, start_ns limit 1");
  await answer(page).first().click();
  const last = page.locator(".timeline").last();
  await expect.poll(() => last.getAttribute("data-event")).toMatch(/^dispatches\.0$/);
  await ask(page, "select start_ns from dispatches limit 1");
  // Without a trace the value has no known clock.
  expect(await answer(page).first().innerText()).toMatch(/^\d[\d,]*$/);
});

test("without the program the panel says what the command says", async () => {
  const page = await open("#p=sql", alone.url);
  const problem = page.locator(".sql-list .problem");
  await problem.waitFor();
  expect(await problem.innerText()).toContain("`gapscope query` needs the program gapscope-query");
  await ask(page, "select 1");
  await expect.poll(() => said(page).innerText()).toContain("cargo build -p gapscope-query");
  expect(await problem.innerText()).toContain("`gapscope query` needs the program gapscope-query");
});

test("a saved page says why it has no SQL", async () => {
  const file = join(folder, "known.html");
  gapscope("report", "--html", file, trace);
  const page = await open("#p=sql", pathToFileURL(file).href);
  expect(await page.locator(".sql-panel").innerText()).toContain("A saved page has no SQL");
});

test("idle time by cause is that of the report", async () => {
  const page = await open();
  await ask(page, "select cause, sum(duration_ns) as idle_ns from gaps group by cause order by cause");
  const late = GAPS.reduce((sum, { parts }) => sum + parts["host-late"], 0);
  const row = answer(page).filter({ hasText: "host-late" });
  expect(await row.locator(".cell").last().getAttribute("title")).toBe(String(late * 1000));
});
