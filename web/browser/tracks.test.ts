// Tests the arrangement of tracks: hiding, pinning, filtering, moving and folding, by pointer and keyboard, and its storage.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { FIREFOX, point, startServer, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";
import { COMPILERS, COMPILING } from "./threads.ts";

const folder = temporaryFolder();
const pages = fixture();
let trace: string;
let viewer: Viewer;
let tests = 0;
/** The folder in which the servers of a test keep preferences. Each test has its own, because a server may save after the test ends. */
let home: string;

const view = (): Promise<Viewer> => pages.stopLater(startServer(["view", "--no-open", trace], { XDG_STATE_HOME: home }));

beforeAll(() => {
  trace = writeTrace(folder, "threads", COMPILING);
});

beforeEach(async () => {
  tests += 1;
  home = join(folder, `home ${tests}`);
  viewer = await view();
});

async function open(hash = "", options = {}): Promise<Page> {
  return pages.open(viewer.url + hash, options);
}

/** Returns the arrangement that the server keeps. */
function kept(page: Page): Promise<{ tracks?: string; order?: string }> {
  return page.evaluate(async () => ((await (await fetch("api/overview")).json()) as { traces: { arranged?: { tracks?: string; order?: string } }[] }).traces[0].arranged ?? {});
}

/** Returns the ids of the visible tracks, from top to bottom. */
async function drawn(page: Page): Promise<string[]> {
  await state(page);
  const rows = await page.locator(".headers").first().evaluate((headers) => [...headers.querySelectorAll<HTMLElement>("[data-track]")].map((row) => ({ id: row.dataset.track ?? "", top: row.getBoundingClientRect().top })));
  return rows.sort((a, b) => a.top - b.top).map(({ id }) => id);
}

const handle = (page: Page, track: string) => page.locator(`.headers [data-track="${track}"] .track-handle`);
const ONLY = `${COMPILERS} threads that only compile`;
const AT_FIRST = ["g0.gaps", "q1.work", "q1.labels", "p1.t41.calls", "p1.t42.calls"];

test("threads that only compile are one row, which opens and folds", async () => {
  const page = await open();
  expect(await drawn(page)).toEqual(AT_FIRST);
  const row = page.locator(".bundle-name", { hasText: ONLY });
  expect(await row.getAttribute("aria-expanded")).toBe("false");
  await row.click();
  expect((await drawn(page)).length).toBe(AT_FIRST.length + COMPILERS);
  await page.keyboard.press("ArrowLeft");
  expect(await drawn(page)).toEqual(AT_FIRST);
  await page.keyboard.press("ArrowRight");
  await expect.poll(async () => (await drawn(page)).length).toBe(AT_FIRST.length + COMPILERS);
  // A link to a call of a folded thread unfolds it.
  await page.keyboard.press("ArrowLeft");
  await page.evaluate(() => (location.hash = "#e=host_calls.7"));
  await expect.poll(async () => (await state(page)).event).toBe("host_calls.7");
  expect(await drawn(page)).toContain("p1.t107.calls");
});

test("bundled threads are hidden together, by pointer and keyboard", async () => {
  const page = await open();
  const row = page.locator(".bundle", { hasText: ONLY });
  const all = page.locator(".all-tracks");
  const before = Number.parseInt(await all.innerText(), 10);
  for (const hide of [
    async (): Promise<void> => {
      await row.hover();
      await row.locator(".quick.hide").click();
    },
    async (): Promise<void> => {
      await row.locator(".bundle-name").focus();
      await page.keyboard.press("Delete");
    },
  ]) {
    await hide();
    await expect.poll(() => row.count()).toBe(0);
    expect(await all.innerText()).toBe(`${before + COMPILERS} hidden`);
    expect(await drawn(page)).toEqual(AT_FIRST);
    await all.click();
    await page.getByRole("dialog", { name: "All tracks" }).getByRole("button", { name: "Reset" }).click();
    await page.keyboard.press("Escape");
    await expect.poll(() => row.count()).toBe(1);
  }
});

test("a track is hidden and shown again, and the list says how many are hidden", async () => {
  const page = await open();
  const all = page.locator(".all-tracks");
  // The tracks of outstanding submissions and command buffers are secondary.
  const secondary = Number.parseInt(await all.innerText(), 10);
  expect(secondary).toBeGreaterThan(0);
  await handle(page, "q1.labels").hover();
  await page.locator('[data-track="q1.labels"] .quick.hide').click();
  expect(await drawn(page)).not.toContain("q1.labels");
  expect(await all.innerText()).toBe(`${secondary + 1} hidden`);
  await all.click();
  const list = page.getByRole("dialog", { name: "All tracks" });
  await list.locator('[data-choice="q1.labels"] input').check();
  expect(await drawn(page)).toEqual(AT_FIRST);
  await list.getByRole("button", { name: "Show all" }).click();
  expect(await drawn(page)).toContain("q1.depth");
  expect(await all.innerText()).toBe("Tracks");
  await list.getByRole("button", { name: "Reset" }).click();
  expect(await drawn(page)).toEqual(AT_FIRST);
  await page.keyboard.press("Escape");
  expect(await list.isVisible()).toBe(false);
});

test("a pinned track stays in sight, and its events can be clicked", async () => {
  const page = await open("#t=6000000-8000000", { height: 560 });
  await page.locator(".bundle-name").click();
  await handle(page, "q1.work").hover();
  await page.locator('[data-track="q1.work"] .quick.pin').click();
  await page.mouse.move(600, 300);
  await page.locator(".tracks-body").evaluate((body) => (body.scrollTop = 900));
  expect((await drawn(page))[0] === "q1.work" || (await page.locator('[data-track="q1.work"]').isVisible())).toBe(true);
  const canvas = await page.locator("canvas.tracks").boundingBox();
  const head = await page.locator('[data-track="q1.work"]').boundingBox();
  expect(Math.abs((head?.y ?? 0) - (canvas?.y ?? 0))).toBeLessThan(2);
  const place = await point(page, "q1.work", 6_450_000);
  await page.mouse.click(place.x, place.y);
  await expect.poll(async () => (await state(page)).event).toBe("dispatches.1");
  await page.locator('[data-track="q1.work"] .quick.unpin').click();
  await expect.poll(async () => (await drawn(page))[1]).toBe("q1.work");
});

test("tracks are found by words of their names", async () => {
  const page = await open();
  const box = page.getByRole("searchbox", { name: "Filter tracks" });
  await box.fill("compiler 11");
  await expect.poll(async () => (await drawn(page)).length).toBe(10);
  await box.fill("labels");
  await expect.poll(() => drawn(page)).toEqual(["q1.labels"]);
  await box.fill("nothing has this name");
  await expect.poll(async () => page.locator(".nothing").innerText()).toContain("No track has these words");
  await box.press("Escape");
  await expect.poll(() => drawn(page)).toEqual(AT_FIRST);
});

test("tracks and groups are moved by dragging and by the keyboard", async () => {
  const page = await open();
  const [from, to] = [await handle(page, "q1.labels").boundingBox(), await handle(page, "g0.gaps").boundingBox()];
  if (!from || !to) throw new Error("no tracks");
  await page.mouse.move(from.x + 60, from.y + 8);
  await page.mouse.down();
  await page.mouse.move(from.x + 60, to.y + 3, { steps: 5 });
  await expect.poll(() => page.locator(".drop-line").isVisible()).toBe(true);
  await page.mouse.up();
  const moved = ["q1.labels", "g0.gaps", "q1.work", "p1.t41.calls", "p1.t42.calls"];
  expect(await drawn(page)).toEqual(moved);
  // A drag does not count as a click.
  expect(await page.locator(".track-menu").isVisible()).toBe(false);
  await handle(page, "p1.t42.calls").focus();
  await page.keyboard.press("Alt+ArrowUp");
  expect((await drawn(page)).slice(3)).toEqual(["p1.t42.calls", "p1.t41.calls"]);
  expect(await page.locator(".unseen[role=status]").first().innerText()).toBe("Moved to place 1 of 2.");
  // The focus stays on the moved track.
  expect(await page.evaluate(() => document.activeElement?.closest<HTMLElement>("[data-track]")?.dataset.track)).toBe("p1.t42.calls");
  await page.locator(".group-name").first().focus();
  await page.keyboard.press("Alt+ArrowDown");
  expect((await drawn(page))[0]).toBe("p1.t42.calls");
  await page.locator(".all-tracks").click();
  await page.getByRole("button", { name: "Reset" }).click();
  expect(await drawn(page)).toEqual(AT_FIRST);
});

test("the menu of a track works without a pointer", async () => {
  const page = await open();
  await page.locator(".group-name").first().focus();
  for (let at = 0; at < 2; at += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const menu = page.getByRole("menu");
  expect(await menu.getAttribute("aria-label")).toContain("queue");
  expect(await menu.getByRole("menuitem").allInnerTexts()).toEqual(["Pin to the top", "Hide\nDelete", "Move up\nAlt ↑", "Move to the top", "Move down\nAlt ↓"].map((text) => expect.stringContaining(text.split("\n")[0])));
  await page.keyboard.press("Enter");
  expect((await drawn(page))[0]).toBe("q1.work");
  expect(await page.locator('[data-track="q1.work"]').getAttribute("class")).toContain("pinned");
  await page.keyboard.press("Delete");
  expect(await drawn(page)).not.toContain("q1.work");
  // The timeline's keys have no effect in the headers.
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  expect(await menu.isVisible()).toBe(false);
});

test("an arrangement is kept for the trace, and in the link", async () => {
  const page = await open();
  await handle(page, "q1.labels").focus();
  await page.keyboard.press("Delete");
  await handle(page, "p1.t42.calls").focus();
  await page.keyboard.press("Alt+ArrowUp");
  await page.locator('[data-head="g0"]').press("ArrowLeft");
  const arranged = ["p1.t42.calls", "p1.t41.calls"];
  expect(await drawn(page)).toEqual(arranged);
  const address = (): URLSearchParams => new URLSearchParams(new URL(page.url()).hash.slice(1));
  const folded = (tracks: string | null | undefined): boolean => (tracks ?? "").split("*").some((one) => one.slice(1) === "g0");
  await expect.poll(() => folded(address().get("k"))).toBe(true);
  await expect.poll(async () => folded((await kept(page)).tracks)).toBe(true);
  const link = page.url();
  await page.goto(viewer.url);
  await page.reload();
  await page.waitForSelector("#app[data-full-draw]");
  expect(await drawn(page)).toEqual(arranged);
  // A server at another port has the same arrangement.
  const other = await view();
  await page.goto(other.url);
  await page.waitForSelector("#app[data-full-draw]");
  expect(await drawn(page)).toEqual(arranged);
  await page.goto("about:blank");
  await other.stop();
  rmSync(join(home, "gapscope/view.json"));
  await page.goto(viewer.url);
  await page.waitForSelector("#app[data-full-draw]");
  expect(await drawn(page)).toEqual(AT_FIRST);
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForSelector("#app[data-full-draw]");
  expect(await drawn(page)).toEqual(arranged);
});

test.skipIf(FIREFOX)("the tracks fit a narrow window", async () => {
  const page = await open("", { width: 1000, height: 700 });
  await page.locator(".all-tracks").click();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1000);
});
