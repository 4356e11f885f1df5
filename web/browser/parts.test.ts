// Tests a trace that is larger than the page may hold: drawn in slices from afar, and in rows from close by.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { gapscope, loaded, point, startServer, state, temporaryFolder, type Viewer, writeSyntheticTrace } from "./product.ts";

/** The most rows that the page may hold, and the most in one answer. */
const HELD = 12_800;
const MAX_ROWS = HELD / 64;

const pages = fixture();
let viewer: Viewer;
let trace: string;

beforeAll(async () => {
  trace = writeSyntheticTrace(temporaryFolder(), 20_000);
  viewer = await pages.stopLater(startServer(["view", "--no-open", "--page-rows", String(HELD), trace]));
});

async function open(hash = "", height = 800): Promise<Page> {
  const page = await pages.open(viewer.url + hash, { height });
  await loaded(page);
  return page;
}

interface Row {
  title: string;
  start_ns: number;
  duration_ns: number;
  track: string;
}

/** Requests a dispatch from the server. */
async function dispatch(row: number): Promise<Row> {
  return (await (await fetch(`${viewer.url}api/t/0/rows/dispatches/${row}`)).json()) as Row;
}

/** Returns the first dispatch of the first queue from a row on. */
async function ofFirstQueue(from: number): Promise<Row & { row: number }> {
  for (let row = from; ; row += 1) {
    const found = await dispatch(row);
    if (found.track === "q1.work") return { ...found, row };
  }
}

const rowsOf = async (track: string): Promise<string> => (await pages.opened.page.locator(`[data-track="${track}"]`).innerText()).split("\n").at(-1) ?? "";
const parts = (): Promise<number> => pages.opened.page.$eval(".timeline", (element) => Number((element as HTMLElement).dataset.parts));
/** Counts the colours in a row of pixels of a track. */
function drawn(track: string): Promise<number> {
  return pages.opened.page.evaluate((track) => {
    const head = document.querySelector(`[data-track="${track}"]`)?.getBoundingClientRect();
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
    if (!head || !canvas) return 0;
    const ratio = canvas.width / canvas.clientWidth;
    const lanes = Number(document.querySelector(`[data-track="${track}"]`)?.getAttribute("data-lanes")) || 1;
    const y = (head.top - canvas.getBoundingClientRect().top + 3 + (head.height - 10) / lanes) * ratio;
    const { data } = (canvas.getContext("2d") as CanvasRenderingContext2D).getImageData(0, Math.floor(y) - 2, canvas.width, 1);
    const colours = new Set<number>();
    for (let x = 0; x < data.length; x += 4) colours.add((data[x] << 16) | (data[x + 1] << 8) | data[x + 2]);
    return colours.size;
  }, track);
}

describe("a trace that the page cannot hold", () => {
  test("is drawn in slices of all of its time, in the colours of kernels", async () => {
    await open();
    expect(await parts()).toBeGreaterThan(4);
    expect(await rowsOf("q1.work")).toMatch(/rows in slices$/);
    expect(await drawn("q1.work")).toBeGreaterThan(4);
    // The page holds no row of a large track.
    expect((await state(pages.opened.page)).events).toBeLessThan(HELD);
  });

  test("has rows near the visible range, and slices around them", async () => {
    const some = await ofFirstQueue(9000);
    const page = await open(`#t=${some.start_ns - 50_000}-${some.start_ns + 150_000}`);
    await expect.poll(() => rowsOf("q1.work")).toMatch(/rows$/);
    const before = (await state(page)).events;
    expect(before).toBeLessThan(HELD + 12 * MAX_ROWS);
    const place = await point(page, "q1.work", some.start_ns + some.duration_ns / 2);
    await page.mouse.click(place.x, place.y);
    const event = async (): Promise<string> => (await state(page)).event;
    await expect.poll(event).toMatch(/^dispatches\./);
    const picked = await event();
    const at = some.start_ns + some.duration_ns / 2;
    const { title, start_ns, duration_ns, track } = await dispatch(Number(picked.slice("dispatches.".length)));
    expect([track, start_ns <= at, at <= start_ns + duration_ns]).toEqual(["q1.work", true, true]);
    await expect.poll(() => page.locator(".details-panel").innerText()).toContain(title);
    // From afar the event stays picked, though its track is drawn in slices.
    await page.keyboard.press("f");
    await expect.poll(async () => (await state(page)).to).toBeGreaterThan(some.start_ns + 1e7);
    expect(await event()).toBe(picked);
  });

  test("goes to a row that is not loaded, and to the costliest gap", async () => {
    const other = await ofFirstQueue(15_000);
    const page = await open(`#e=dispatches.${other.row}`);
    await expect.poll(async () => (await state(page)).event).toBe(`dispatches.${other.row}`);
    const { from, to } = await state(page);
    expect(from).toBeLessThanOrEqual(other.start_ns);
    expect(to).toBeGreaterThanOrEqual(other.start_ns + other.duration_ns);
    await page.keyboard.press("n");
    await expect.poll(async () => (await state(page)).event).toMatch(/^gaps\./);
  });

  test("sums a range only over tracks whose rows are all loaded", async () => {
    const some = await ofFirstQueue(5000);
    const range = `${some.start_ns - 20_000}-${some.start_ns + 60_000}`;
    const page = await open(`#t=${range}&s=${range}`, 2400);
    await expect.poll(() => rowsOf("q1.work")).toMatch(/rows$/);
    const { start_ns: origin } = JSON.parse(readFileSync(join(trace, "trace.json"), "utf8")) as { start_ns: number };
    const [from, to] = [-20_000, 60_000].map((ns) => origin + some.start_ns + ns);
    const sql = `SELECT count(*) AS n FROM (SELECT start_ns FROM dispatches UNION ALL SELECT start_ns FROM transfers) WHERE start_ns >= ${from} AND start_ns < ${to}`;
    const [{ n }] = JSON.parse(gapscope("query", "--format", "json", trace, sql)) as { n: number }[];
    await expect.poll(() => page.locator(".range-kernels").getAttribute("data-events")).toBe(String(n));
    expect(await page.locator(".range-kernels").innerText()).not.toContain("on the queues that are loaded");
    await page.close();
    const whole = await open(`#s=0-${1e9}`);
    await expect.poll(() => whole.locator(".range-kernels").innerText()).toContain("on the queues that are loaded");
  });

  test("is coloured by label from close by", async () => {
    const some = await ofFirstQueue(9000);
    await open(`#c=label&t=${some.start_ns - 50_000}-${some.start_ns + 150_000}`);
    await expect.poll(() => drawn("q1.work")).toBeGreaterThan(2);
  });
});
