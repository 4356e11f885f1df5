// The ranks of a program: what bounds them together and each, who is waited for and why.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { arrives, END_US, LATE, lateBy, RANKS, ranksInOneTrace, recordingOfRanks, STEPS } from "./known-ranks.ts";
import { closeBrowser, type Opened, openTrace, scratch, state, view, type Viewer } from "./product.ts";

const made = scratch();
let viewer: Viewer;
let opened: Opened;

beforeAll(async () => {
  viewer = await view(recordingOfRanks(made));
  opened = await openTrace(`${viewer.url}#p=ranks`, { width: 1440, height: 1000 });
  await opened.page.waitForSelector(`.ranks-panel[data-ranks="${RANKS}"]`);
});

afterAll(async () => {
  await viewer?.stop();
  await closeBrowser();
});

describe("the ranks of a program", () => {
  test("have a verdict together and each their own", async () => {
    const { page } = opened;
    await page.waitForSelector('.verdict[data-together="host-bound"]');
    expect(await page.locator(".verdict h1").innerText()).toBe(`Host-bound all ${RANKS} ranks together`);
    const each = await page.locator(".each-verdict li").allInnerTexts();
    expect(each).toEqual(Array.from({ length: RANKS }, (_, rank) => `rank ${rank} host-bound`));
    const rows = await page.locator(".ranks-table tbody tr").allInnerTexts();
    expect(rows).toHaveLength(RANKS);
    expect(rows[LATE]).toMatch(new RegExp(`^${LATE} ●\\s+Host-bound`));
    expect(opened.errors).toEqual([]);
  });

  test("name who is late, by how much and why", async () => {
    const said = await opened.page.locator(".ranks-said").innerText();
    expect(said).toContain(`Rank ${LATE} arrived last at ${STEPS} of ${STEPS} collectives`);
    expect(said).toContain("idled");
    expect(said).toContain("host late");
  });

  test("are joined by what they waited for one of them", async () => {
    const { page } = opened;
    // Each of the others waited at each collective.
    const waits = page.locator(".lateness .wait");
    await expect.poll(() => waits.count()).toBe(STEPS * (RANKS - 1));
    const drawn = await waits.evaluateAll((all) => all.map((one): Record<string, string | null | undefined> => ({ ...(one as SVGElement).dataset, says: one.querySelector("title")?.textContent })));
    const first = drawn.filter(({ rank, from }) => rank === "0" && Number(from) === arrives(0) * 1000);
    expect(first).toEqual([{ rank: "0", last: String(LATE), from: String(arrives(0) * 1000), to: String((arrives(0) + lateBy(0)) * 1000), says: `AllReduce 0: rank 0 waited 100 µs for rank ${LATE}` }]);
    // The bar lies between both times, on the rank's own timeline.
    const { from, to } = await state(page);
    const box = await page.locator('.lateness .wait[data-rank="1"]').first().boundingBox();
    const canvas = await page.locator('.timeline[data-trace="rank 1"] canvas.tracks').boundingBox();
    if (!box || !canvas) throw new Error("nothing is drawn");
    const ns = Number(await page.locator('.lateness .wait[data-rank="1"]').first().getAttribute("data-from"));
    expect(box.x).toBeCloseTo(canvas.x + ((ns - from) / (to - from)) * canvas.width, 0);
    expect(box.y).toBeGreaterThan(canvas.y);
    expect(box.y + box.height).toBeLessThan(canvas.y + canvas.height);
  });

  test("show the collective with the greatest skew", async () => {
    const { page } = opened;
    await page.locator(".skews tbody tr").first().click();
    const skew = lateBy(STEPS - 1) * 1000;
    await expect.poll(async () => (await state(page)).from).toBeCloseTo(arrives(STEPS - 1) * 1000 - skew, -1);
    await expect.poll(() => page.locator(".lateness .wait").count()).toBe(RANKS - 1);
    expect((await state(page)).to).toBeLessThan(END_US * 1000 + 1);
  });

  test("can each be put first", async () => {
    const { page } = opened;
    await page.locator(".each-verdict button", { hasText: `rank ${LATE}` }).click();
    await page.waitForSelector('.timeline.beside[data-trace="rank 0"]');
    await page.waitForSelector('.verdict[data-together="host-bound"]');
    expect(await page.locator(".each-verdict [aria-current]").innerText()).toBe(`rank ${LATE} host-bound`);
    expect(opened.errors).toEqual([]);
  });
});

test("ranks out of sight are neither drawn nor loaded until they are scrolled to", async () => {
  const { page, errors } = await openTrace(viewer.url, { height: 520 });
  const last = page.locator(".timeline").last();
  expect(await last.getAttribute("data-draws")).toBeNull();
  expect(Number(await page.locator(".timeline").first().getAttribute("data-events"))).toBeGreaterThan(0);
  await page.locator(".stage").evaluate((stage) => stage.scrollTo(0, stage.scrollHeight));
  await expect.poll(async () => Number(await last.getAttribute("data-events"))).toBeGreaterThan(0);
  expect(errors).toEqual([]);
});

test("ranks in one trace have a verdict for each device, and are joined likewise", async () => {
  const one = await view(ranksInOneTrace(made));
  try {
    const { page, errors } = await openTrace(`${one.url}#p=ranks`, { width: 1440, height: 1200 });
    await page.waitForSelector(`.ranks-panel[data-ranks="${RANKS}"]`);
    expect(await page.locator(".ranks-said").innerText()).toContain(`Rank ${LATE} arrived last at ${STEPS} of ${STEPS} collectives`);
    expect(await page.locator(".each-verdict li").allInnerTexts()).toEqual(Array.from({ length: RANKS }, (_, device) => `GPU ${device + 1} (Made GPU) host-bound`));
    await expect.poll(() => page.locator(".lateness .wait").count()).toBe(STEPS * (RANKS - 1));
    // On the track of its own queue.
    const track = await page.locator('[data-track="q1.work"]').boundingBox();
    const wait = await page.locator('.lateness .wait[data-rank="0"]').first().boundingBox();
    if (!track || !wait) throw new Error("nothing is drawn");
    expect(wait.y).toBeGreaterThan(track.y);
    expect(wait.y + wait.height).toBeLessThan(track.y + track.height);
    expect(errors).toEqual([]);
    await page.close();
  } finally {
    await one.stop();
  }
});
