// Tests the search results, and the tables as the search and a selected range restrict them.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { busy_ns, COPIES, GAPS, idleBy, KNOWN, WORK } from "./known.ts";
import { gapscope, loaded, point, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const file = join(folder, "known.html");
const pages = fixture();
let viewer: Viewer;

beforeAll(async () => {
  const trace = writeTrace(folder, "known", KNOWN);
  gapscope("report", "--html", file, trace);
  viewer = await pages.serve(trace);
});

async function open(hash = "", url = viewer.url): Promise<Page> {
  const page = await pages.open(url + hash);
  await loaded(page);
  return page;
}

const results = (page: Page) => page.getByRole("region", { name: "Search results" });
const rows = (page: Page) => page.locator(".tab-body .table").first().getAttribute("data-rows");
const kinds = (page: Page) => results(page).locator("[data-kind]").evaluateAll((heads) => heads.map((head) => `${(head as HTMLElement).dataset.kind} ${(head as HTMLElement).dataset.count}`));

test("lists matches by kind, and goes to them", async () => {
  const page = await open("#t=0-16000000");
  const box = page.getByRole("searchbox", { name: /regular expression/ });
  await box.fill("sin|eager");
  // sin is a kernel of ten steps, and all forty dispatches of these steps are under the label.
  await expect.poll(() => kinds(page)).toEqual(["Kernels 1", "Labels 1", "Work 40", "Gaps 10"]);
  await box.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^sin1\. {2}100 µs at 1\.00 ms/);
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await state(page)).event).toBe("dispatches.0");
  expect(await results(page).isVisible()).toBe(false);
  // The matches are counted from the picked one on.
  await page.locator(".match-buttons").getByRole("button", { name: "Next match" }).click();
  await expect.poll(async () => page.locator(".search-problem").innerText()).toBe("2 of 40");
  await page.locator(".match-buttons").getByRole("button", { name: "Previous match" }).click();
  await expect.poll(async () => (await state(page)).event).toBe("dispatches.0");
  await box.fill("wait.fences|copier|launch latency");
  await expect.poll(() => kinds(page)).toEqual(["Calls 20", `Gaps ${GAPS.length}`, "Tracks 1"]);
  await results(page).locator("[data-kind=Tracks] + ul button").click();
  await expect.poll(() => page.evaluate(() => document.activeElement?.closest<HTMLElement>("[data-track]")?.dataset.track)).toBe("p1.t42.calls");
  await box.fill("log");
  await results(page).locator("[data-kind=Gaps] + ul button").first().click();
  await expect.poll(async () => page.locator(".gap-details").getAttribute("data-gap-ns")).toBe("600000");
  await box.fill("nothing at all");
  await expect.poll(async () => results(page).innerText()).toBe("No matches.");
});

test("a search keeps the colours, and filters the tables until it is cleared", async () => {
  const page = await open("#t=2000000-2400000&p=kernels");
  const colour = async (ns: number): Promise<number[]> => {
    await state(page);
    const place = await point(page, "q1.work", ns);
    return page.evaluate(({ x, y }) => {
      const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
      const box = canvas?.getBoundingClientRect();
      if (!canvas || !box) return [];
      return [...(canvas.getContext("2d")?.getImageData((x - box.left) * devicePixelRatio, (y - box.top + 7) * devicePixelRatio, 1, 1).data ?? [])];
    }, place);
  };
  const [sin, cos] = [2_080_000, 2_180_000];
  const gap = async (): Promise<number[]> => {
    const place = await point(page, "g0.gaps", 2_399_000);
    return page.evaluate(({ x, y }) => {
      const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
      const box = canvas?.getBoundingClientRect();
      return canvas && box ? [...(canvas.getContext("2d")?.getImageData((x - box.left) * devicePixelRatio, (y - box.top) * devicePixelRatio, 1, 1).data ?? [])] : [];
    }, place);
  };
  const [was_sin, was_cos, was_gap] = [await colour(sin), await colour(cos), await gap()];
  await page.locator(".tab-body tbody tr", { hasText: "sin" }).click();
  await expect.poll(async () => (await state(page)).found).toBe("10");
  expect(await colour(sin)).toEqual(was_sin);
  expect(await gap()).toEqual(was_gap);
  const pale = await colour(cos);
  expect(pale).not.toEqual(was_cos);
  // The colour is paler but of the same hue: its channels keep their order.
  const order = ([r, g, b]: number[]): string => [["r", r], ["g", g], ["b", b]].sort((x, y) => Number(x[1]) - Number(y[1])).map(([name]) => name).join("");
  expect(order(pale)).toBe(order(was_cos));
  // After a pick in a table all rows stay; after typing only matches do.
  expect(await rows(page)).toBe("5");
  await page.fill(".search input", "^sin$");
  await page.fill(".search input", "sin");
  await expect.poll(() => rows(page)).toBe("1");
  await expect.poll(async () => page.locator("[data-filter=search]").innerText()).toContain("matches of “sin”");
  await page.locator('[data-tab="gaps"]').click();
  await expect.poll(async () => page.locator(".gaps-list .table").getAttribute("data-rows")).toBe("9");
  await page.locator('[data-tab="about"]').click();
  expect(await page.locator(".active-filters").isVisible()).toBe(false);
  await page.locator('[data-tab="gaps"]').click();
  await page.getByRole("button", { name: "Clear the search" }).click();
  await expect.poll(async () => page.locator(".gaps-list .table").getAttribute("data-rows")).toBe(String(GAPS.length));
  expect(await page.locator(".active-filters").isVisible()).toBe(false);
});

test.each(["the server", "a saved page"])("a selected range filters every table, from %s", async (from) => {
  const range = [2_500_000, 7_100_000];
  const page = await open(`#t=0-16000000&s=${range.join("-")}&p=kernels`, from === "a saved page" ? pathToFileURL(file).href : viewer.url);
  const cells = async (name: string): Promise<string[]> => (await page.locator(".tab-body tbody tr", { hasText: name }).first().locator("td").allInnerTexts()).map((text) => text.trim());
  await expect.poll(() => rows(page)).toBe("4");
  const starts = WORK.filter(({ start_us, name }) => name === "sin" && start_us * 1000 >= range[0] && start_us * 1000 < range[1]).length;
  expect((await cells("sin")).slice(0, 3)).toEqual(["sin", String(starts), `${starts * 100} µs`]);
  expect((await cells("sin")).slice(4, 7)).toEqual(["100 µs", "100 µs", "100 µs"]);
  expect(await page.locator("[data-filter=range]").innerText()).toContain("2.500 ms to 7.100 ms, 4.60 ms");
  await page.locator('[data-tab="labels"]').click();
  await expect.poll(() => rows(page)).toBe("1");
  const work = WORK.filter(({ start_us }) => start_us * 1000 >= range[0] && start_us * 1000 < range[1]).length;
  expect((await cells("eager"))[2]).toBe(String(work));
  await page.locator('[data-tab="gaps"]').click();
  // The table has the causes of idle time in the range, and the list has whole gaps.
  const idle = Number(await page.locator(".device-share").getAttribute("data-idle-ns"));
  expect(Math.abs(idle + busy_ns(range[0], range[1]) - (range[1] - range[0]))).toBeLessThanOrEqual(4);
  expect(await page.locator(".causes-table tbody tr").first().innerText()).toMatch(/host late[^]*2\.20 ms/);
  const host_late = (await page.locator(".causes-table tbody tr").first().locator("td").allInnerTexts())[1];
  expect(host_late).toBe("5");
  const inside = GAPS.filter(({ start_us, duration_us }) => start_us * 1000 < range[1] && (start_us + duration_us) * 1000 > range[0]).length;
  await expect.poll(async () => page.locator(".gaps-list .table").getAttribute("data-rows")).toBe(String(inside));
  expect(await page.locator(".gaps-list .panel-head").innerText()).toBe(`${inside} gaps of ${GAPS.length}, each with its whole length`);
  await page.getByRole("button", { name: "Clear the selected range" }).last().click();
  await expect.poll(async () => page.locator(".gaps-list .table").getAttribute("data-rows")).toBe(String(GAPS.length));
  expect(await page.locator(".causes-table tbody tr").first().innerText()).toContain(`${(idleBy("host-late") / 1e6).toFixed(2)} ms`);
  expect(COPIES.length).toBe(2);
});
