// Tests the comparison of ranks: verdicts together and apart, and waits for the late rank.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { COUNTED } from "./counted.ts";
import { fixture } from "./fixture.ts";
import { arrives, END_US, LATE, lateBy, RANKS, writeRanksInOneTrace, writeRanks, STEPS } from "./known-ranks.ts";
import { type Opened, openTrace, point, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const pages = fixture();
let viewer: Viewer;
/** The page that the tests of one group share. */
let opened: Opened;

beforeAll(async () => {
  viewer = await pages.serve(writeRanks(folder));
  opened = await openTrace(`${viewer.url}#p=ranks`, { width: 1440, height: 1000 });
  await opened.page.waitForSelector(`.ranks-panel[data-ranks="${RANKS}"]`);
});

/** Returns the place and start of a wait, and the place of the element below it, in one step because waits are redrawn whenever anything moves. */
function placed(page: Page, wait: string, over: string): Promise<{ wait: { x: number; top: number; bottom: number }; over: DOMRect; ns: number }> {
  return page.evaluate(
    ([wait, over]) => {
      const [first, second] = [document.querySelector<SVGRectElement>(wait), document.querySelector(over)];
      const screen = first?.getScreenCTM();
      if (!first || !second || !screen) throw new Error("nothing is drawn");
      // Firefox rounds the bounding box of a shape to whole pixels.
      const top = screen.f + first.y.baseVal.value;
      const own = { x: screen.e + first.x.baseVal.value, top, bottom: top + first.height.baseVal.value };
      return { wait: own, over: second.getBoundingClientRect().toJSON() as DOMRect, ns: Number(first.dataset.from) };
    },
    [wait, over],
  );
}

describe("the ranks of a program", () => {
  test("have a common verdict, and one each", async () => {
    const { page } = opened;
    await page.waitForSelector('.verdict[data-together="host-bound"]');
    expect(await page.locator(".verdict h1").innerText()).toBe(`Host-bound all ${RANKS} ranks together`);
    const each = await page.locator(".each-verdict li").allInnerTexts();
    expect(each).toEqual(Array.from({ length: RANKS }, (_, rank) => `rank ${rank} host-bound`));
    const rows = await page.locator(".ranks-table > :last-child tbody tr").allInnerTexts();
    expect(rows).toHaveLength(RANKS);
    expect(rows[LATE]).toMatch(new RegExp(`^${LATE} ●\\s+Host-bound`));
    expect(opened.errors).toEqual([]);
  });

  test("have a verdict for each of their devices", async () => {
    const second = [
      '\ndevice id=9 process=1 api=cuda name="Second GPU" uuid=b clock.method=calibrated clock.error_ns=1us clock.samples=2 clock.nanoseconds_per_tick=1.0',
      "queue id=9 device=9",
      `dispatch queue=9 kernel=1 start_ns=500us duration_ns=${END_US - 500}us`,
    ];
    const server = await pages.serve(writeRanks(folder, "two.gapscope", second.join("\n")));
    const page = await pages.open(server.url, { width: 1000, height: 720 });
    const each = page.getByRole("list", { name: "Verdict of each device" });
    await expect.poll(() => each.locator("li").allInnerTexts()).toEqual(["Made GPU host-bound", "Second GPU device-bound"]);
    expect(await page.locator(".each-of").innerText()).toMatch(/^rank 0:/);
    const ranks = page.getByRole("list", { name: "Verdict of each rank" });
    expect(await ranks.locator("li").count()).toBe(RANKS);
  });

  test("name the late rank, by how much it is late and why", async () => {
    const said = await opened.page.locator(".ranks-sentences").innerText();
    expect(said).toContain(`Rank ${LATE} arrived last at ${STEPS} of ${STEPS} collectives`);
    expect(said).toContain("idled");
    expect(said).toContain("host late");
  });

  test("are joined by lines to the rank that they waited for", async () => {
    const { page } = opened;
    // Every other rank waited at each collective.
    const waits = page.locator(".collective-waits .wait");
    await expect.poll(() => waits.count()).toBe(STEPS * (RANKS - 1));
    const drawn = await waits.evaluateAll((all) => all.map((one): Record<string, string | null | undefined> => ({ ...(one as SVGElement).dataset, says: one.querySelector("title")?.textContent })));
    const first = drawn.filter(({ rank, from }) => rank === "0" && Number(from) === arrives(0) * 1000);
    expect(first).toEqual([{ rank: "0", last: String(LATE), from: String(arrives(0) * 1000), to: String((arrives(0) + lateBy(0)) * 1000), says: `AllReduce 0: rank 0 waited 100 µs for rank ${LATE}` }]);
    // The bar lies between both times, on the timeline of its rank.
    const { from, to } = await state(page);
    await expect
      .poll(async () => {
        const { wait, over, ns } = await placed(page, '.collective-waits .wait[data-rank="1"]', '.timeline[data-trace="rank 1"] canvas.tracks');
        return wait.x - (over.x + ((ns - from) / (to - from)) * over.width);
      })
      .toBeCloseTo(0, 0);
    const { wait, over } = await placed(page, '.collective-waits .wait[data-rank="1"]', '.timeline[data-trace="rank 1"] canvas.tracks');
    expect(wait.top).toBeGreaterThan(over.top);
    expect(wait.bottom).toBeLessThan(over.bottom);
  });

  test("show the collective with the greatest skew", async () => {
    const { page } = opened;
    await page.locator(".skews tbody tr").first().click();
    const skew = lateBy(STEPS - 1) * 1000;
    await expect.poll(async () => (await state(page)).from).toBeCloseTo(arrives(STEPS - 1) * 1000 - skew, -1);
    await expect.poll(() => page.locator(".collective-waits .wait").count()).toBe(RANKS - 1);
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
  const page = await pages.open(viewer.url, { height: 520 });
  const last = page.locator(".timeline").last();
  expect(await last.getAttribute("data-draws")).toBeNull();
  expect(Number(await page.locator(".timeline").first().getAttribute("data-events"))).toBeGreaterThan(0);
  await page.locator(".timeline-stack").evaluate((stage) => stage.scrollTo(0, stage.scrollHeight));
  await expect.poll(async () => Number(await last.getAttribute("data-events"))).toBeGreaterThan(0);
});

test("ranks in one trace have a verdict for each device, and are joined, too", async () => {
  const one = await pages.serve(writeRanksInOneTrace(folder));
  const page = await pages.open(`${one.url}#p=ranks`, { width: 1440, height: 1200 });
  await page.waitForSelector(`.ranks-panel[data-ranks="${RANKS}"]`);
  expect(await page.locator(".ranks-sentences").innerText()).toContain(`Rank ${LATE} arrived last at ${STEPS} of ${STEPS} collectives`);
  expect(await page.locator(".each-verdict li").allInnerTexts()).toEqual(Array.from({ length: RANKS }, (_, device) => `GPU ${device} (Made GPU) host-bound`));
  await expect.poll(() => page.locator(".collective-waits .wait").count()).toBe(STEPS * (RANKS - 1));
  // The bar lies on the track of its own queue.
  const { wait, over } = await placed(page, '.collective-waits .wait[data-rank="0"]', '[data-track="q1.work"]');
  expect(wait.top).toBeGreaterThan(over.top);
  expect(wait.bottom).toBeLessThan(over.bottom);
});

test("only one event of all ranks is picked at a time, and a selected range keeps its rank", async () => {
  const page = await pages.open(`${viewer.url}#p=compare`, { width: 1440, height: 1000 });
  const timelines = [".timeline", `.timeline[data-trace="rank 1"]`];
  const events = async (): Promise<string[]> => Promise.all(timelines.map(async (timeline) => (await state(page, timeline)).event));
  for (const [at, timeline] of timelines.entries()) {
    await expect.poll(async () => (await state(page, timeline)).events).toBeGreaterThan(0);
    const gemm = await point(page, "q1.work", arrives(0) * 1000 - 100_000, 0, timeline);
    await page.mouse.click(gemm.x, gemm.y);
    await expect.poll(events).toEqual(at === 0 ? ["dispatches.0", ""] : ["", "dispatches.0"]);
  }
  expect(await page.locator(".details-panel").isVisible()).toBe(true);
  const use = page.locator("button", { hasText: "use selection" }).first();
  await use.click();
  const problem = page.locator(".compare-panel .problem");
  await expect.poll(() => problem.innerText()).toContain("Select a range first");
  const from = await point(page, "q1.work", 2_000_000, 0, timelines[1]);
  const to = await point(page, "q1.work", 4_000_000, 0, timelines[1]);
  await page.keyboard.down("Shift");
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await expect.poll(async () => (await state(page, timelines[1])).selection).not.toBe("");
  await expect.poll(() => problem.isVisible()).toBe(false);
  await use.click();
  await expect.poll(() => page.locator("select[aria-label=Before]").inputValue()).toMatch(/^1:range:/);
});

test("an event picked in any rank shows its kernel's counters and hot lines", async () => {
  const run = join(folder, "counted.gapscope");
  mkdirSync(run);
  for (const rank of [0, 1]) writeTrace(folder, `counted.gapscope/rank=${rank}`, COUNTED.replace("manifest ", `manifest rank.rank=${rank} rank.world_size=2 rank.local_rank=${rank} `), `counted.gapscope/rank=${rank}`);
  const counted = await pages.serve(run);
  const page = await pages.open(counted.url, { width: 1440, height: 1000 });
  const second = '.timeline[data-trace="rank 1"]';
  await expect.poll(async () => (await state(page, second)).events).toBeGreaterThan(0);
  const gemm = await point(page, "q1.work", 500_000, 0, second);
  await page.mouse.click(gemm.x, gemm.y);
  await expect.poll(() => page.locator(".details-panel").innerText()).toContain("compute: tensor ≤ 1.00 ms");
  expect(await page.locator(".hot-instructions").innerText()).toContain("gemm.cu:12");
});
