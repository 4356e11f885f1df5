// Tests what readers do with their hands: copying tables, saving pictures, going back, and keys before the analysis is there.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { KNOWN } from "./known.ts";
import { download, state, temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const known = writeTrace(folder, "known", KNOWN);
const pages = fixture();

test("the tables of a panel are copied with all their rows", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  await page.evaluate(() => {
    navigator.clipboard.writeText = async (text: string) => void (document.body.dataset.copied = text);
  });
  await page.locator('[data-tab="kernels"]').click();
  await page.locator(".copy-table").click();
  const copied = await page.evaluate(() => document.body.dataset.copied ?? "");
  const rows = copied.trimEnd().split("\n").map((line) => line.split("\t"));
  const shown = await page.locator(".tab-body .table tbody tr").count();
  expect(rows.length).toBe(1 + shown);
  expect(rows[0]).toContain("Kernel");
  expect(new Set(rows.map(({ length }) => length)).size).toBe(1);
});

test("the timeline is saved as PNG", async () => {
  const page = await pages.open(`${(await pages.serve(known)).url}#t=2800000-3400000`);
  await page.locator(".topbar button", { hasText: "Link" }).click();
  const png = join(folder, "picture.png");
  expect(await download(page, "Save PNG", png)).toBe("known.png");
  const bytes = readFileSync(png);
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  const { width } = await page.locator(".timeline").first().evaluate((one) => one.getBoundingClientRect());
  expect(Math.abs(bytes.readUInt32BE(16) - 2 * width)).toBeLessThan(40);
});

test("the browser's button Back undoes a zoom", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  const whole = await state(page);
  await page.locator("canvas.tracks").first().focus();
  await page.keyboard.press("w");
  await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#t=/);
  const zoomed = await state(page);
  expect(zoomed.to - zoomed.from).toBeLessThan(whole.to - whole.from);
  await page.goBack();
  await expect.poll(() => state(page).then(({ from, to }) => [from, to])).toEqual([whole.from, whole.to]);
  await page.goForward();
  await expect.poll(() => state(page).then(({ from, to }) => [from, to])).toEqual([zoomed.from, zoomed.to]);
});

test("a key for the next gap waits for the analysis", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  let release = (): void => undefined;
  const released = new Promise<void>((done) => (release = done));
  await page.route(/\/findings/, async (route) => {
    await released;
    await route.fallback();
  });
  await page.reload();
  await page.waitForSelector("#app[data-full-draw]");
  await page.keyboard.press("n");
  await expect.poll(() => page.locator("p.status").innerText()).toContain("being analysed");
  release();
  await page.waitForSelector("#app[data-gap]");
  await expect.poll(() => page.locator("p.status").isHidden()).toBe(true);
});
