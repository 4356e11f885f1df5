// Tests hardware counters on the page: the roofline of kernels, and counters under the pointer and in a range.

import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { COUNTED } from "./counted.ts";
import { fixture } from "./fixture.ts";
import { FIREFOX, gapscope, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const pages = fixture();
let viewer: Viewer;

beforeAll(async () => {
  viewer = await pages.serve(writeTrace(temporaryFolder(), "counted", COUNTED));
});

test("kernels are where their shares of the limits are, and name them", async () => {
  const page = await pages.open(`${viewer.url}#p=limits`, { width: 1000, height: 720 });
  const marks = page.locator(".kernel-mark");
  await expect.poll(() => marks.count()).toBe(3);
  const said = async (name: string): Promise<string | null> => page.locator(`.kernel-mark[data-kernel="${name}"]`).getAttribute("aria-label");
  expect(await said("copy")).toBe("copy: 80.0 % of the memory's limit, FMA 10.0 %, 10.0 ms, memory ≤ 2.00 ms");
  expect(await said("gemm")).toBe("gemm: 25.0 % of the memory's limit, tensor 90.0 %, 10.0 ms, compute: tensor ≤ 1.00 ms");
  const at = async (name: string): Promise<number[]> => page.locator(`.kernel-mark[data-kernel="${name}"] circle`).evaluate((circle) => [Number(circle.getAttribute("cx")), Number(circle.getAttribute("cy"))]);
  const [copy, gemm] = [await at("copy"), await at("gemm")];
  expect(copy[0]).toBeGreaterThan(gemm[0]);
  expect(copy[1]).toBeGreaterThan(gemm[1]);
  // A kernel without enough samples is in the table with the reason, and not in the picture.
  const row = page.locator(".limits-panel tbody tr", { hasText: "rare" });
  expect(await row.locator("[title^='Only 1 sample']").innerText()).toBe("unknown");
  expect(await page.locator(".limits-sentences").innerText()).toContain("measured one");
  // The Enter key on a mark searches for its kernel.
  await page.locator('.kernel-mark[data-kernel="gemm"]').focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator("input[type=search]").inputValue()).toBe("^gemm$");
});

test("a saved page has the same picture without a server", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "counted.html");
  gapscope("report", writeTrace(folder, "counted", COUNTED), "--html", file);
  const [inFile, served] = [await pages.open(`file://${file}#p=limits`, { width: 1000, height: 720 }), await pages.open(`${viewer.url}#p=limits`, { width: 1000, height: 720 })];
  const marks = async (page: Page): Promise<(string | null)[]> => {
    await expect.poll(() => page.locator(".kernel-mark").count()).toBe(3);
    return page.locator(".kernel-mark").evaluateAll((all) => all.map((mark) => [mark.getAttribute("aria-label"), mark.querySelector("circle")?.getAttribute("cx"), mark.querySelector("circle")?.getAttribute("cy")].join()));
  };
  expect(await marks(inFile)).toEqual(await marks(served));
  expect((await marks(inFile)).join()).toContain("copy: 80.0 % of the memory's limit");
});

test("the table fits into the panel, and narrow windows show the values of hidden columns, too", async () => {
  const page = await pages.open(`${viewer.url}#p=limits`);
  await expect.poll(() => page.locator(".kernel-mark").count()).toBe(3);
  const table = page.locator(".limits-panel .table");
  for (const width of [700, 860, 1000, 1280, 1920]) {
    await page.setViewportSize({ width, height: 800 });
    await expect.poll(() => table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth), { message: `at ${width} px` }).toBe(0);
    const said = async (): Promise<string> => (await table.innerText()).replaceAll(/\s+/g, " ");
    await expect.poll(said).toContain(width > 1200 ? "80 % ± 0 80.0 % FMA 10.0 % 100 %" : "DRAM 80.0 %, FMA 10.0 %, 100 % covered");
  }
});

test("a selected range filters picture and table, and so does a search", async () => {
  const page = await pages.open(`${viewer.url}#p=limits`);
  const kernels = async (): Promise<string[]> => (await page.locator(".limits-panel tbody .whole").allInnerTexts()).sort();
  const marks = async (): Promise<(string | null)[]> => (await page.locator(".kernel-mark").evaluateAll((all) => all.map((mark) => mark.getAttribute("data-kernel")))).sort();
  await expect.poll(marks).toEqual(["copy", "gemm", "walk"]);
  // Each kernel starts every 3 ms, one after the other.
  await page.evaluate(() => (location.hash = "#p=limits&s=3500000-5000000"));
  await expect.poll(kernels).toEqual(["copy"]);
  await expect.poll(marks).toEqual(["copy"]);
  await page.locator(".chip[data-filter=range] button").click();
  await expect.poll(marks).toEqual(["copy", "gemm", "walk"]);
  await page.locator("input[type=search]").fill("gemm");
  await expect.poll(kernels).toEqual(["gemm"]);
  await expect.poll(marks).toEqual(["gemm"]);
});

test("a dispatch has its kernel's counters", async () => {
  const page = await pages.open(`${viewer.url}#e=dispatches.0`);
  const details = page.locator(".kernel-counters");
  await details.waitFor();
  const text = await details.innerText();
  expect(text).toContain("compute: tensor ≤ 1.00 ms, reached 90 % ± 0");
  expect(text).toContain("tensor pipe active");
  // Ten samples lie in the dispatch.
  const here = page.locator(".launch-counters");
  await expect.poll(async () => (await here.innerText()).replaceAll("\n", " ")).toContain("tensor pipe active 90.0 %");
  expect(text).toMatch(/read from memory in all\s+about/);
});

test("a dispatch shows the hot lines of its kernel and advice about its stalls", async () => {
  const page = await pages.open(`${viewer.url}#e=dispatches.0`);
  const hot = page.locator(".hot-instructions");
  await hot.waitFor();
  const text = (await hot.innerText()).replaceAll("\n", " ");
  for (const part of ["100 samples, 100 % of all", "gemm.cu:12 long scoreboard 75.0 % 80.0 %", "+0x1a0 wait 100 % 20.0 %"]) expect(text).toContain(part);
  expect(text).toMatch(/long scoreboard 60\.0 %: .+ To do: .+\./);
});

test.skipIf(FIREFOX)("a counter shows its value under the pointer, and its mean, least and greatest value in a range", async () => {
  const page = await pages.open(`${viewer.url}#t=0-20000000&s=0-20000000`);
  await state(page);
  const track = page.locator('.headers [data-track="c2.counter"]');
  await track.waitFor();
  await track.scrollIntoViewIfNeeded();
  // gemm ran for 7 of the 20 ms, at 90 %.
  const value = page.locator('[data-counter="c2.counter"]');
  await expect.poll(() => value.innerText()).toMatch(/^31\.5 % \(0 % to 90\.0 %\)$/);
  const row = await track.boundingBox();
  const canvas = await page.locator(".tracks-body canvas").boundingBox();
  if (!row || !canvas) throw new Error("it is not drawn");
  await page.mouse.move(canvas.x + canvas.width * 0.02, row.y + row.height / 2);
  const tooltip = page.locator(".timeline .tooltip");
  await expect.poll(() => tooltip.innerText()).toContain("tensor pipe active\n90.0 %");
  await page.mouse.move(canvas.x + canvas.width * 0.02, canvas.y + 2);
  await expect.poll(() => tooltip.isVisible()).toBe(false);
});
