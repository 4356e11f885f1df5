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

test("the timeline is saved as SVG that shows the same, with attributes only", async () => {
  const page = await pages.open(`${(await pages.serve(known)).url}#t=2800000-3400000`);
  await page.locator(".topbar button", { hasText: "Link" }).click();
  const file = join(folder, "picture.svg");
  expect(await download(page, "Save SVG", file)).toBe("known.svg");
  const text = readFileSync(file, "utf8");
  expect(text).not.toMatch(/style=|<style|<script|href=/);
  expect(text).toContain(">sin");
  // Both pictures are alike, whichever of them draws the texts more softly.
  const unlike = await page.evaluate(async (svg) => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
    const head = document.querySelector<HTMLElement>(".timeline .headers");
    if (!canvas || !head) return 1;
    const image = new Image();
    image.src = `data:image/svg+xml;base64,${btoa(unescape(encodeURIComponent(svg)))}`;
    await image.decode();
    const drawn = document.createElement("canvas");
    [drawn.width, drawn.height] = [image.width, image.height];
    const context = drawn.getContext("2d");
    context?.drawImage(image, 0, 0);
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const top = image.height - height;
    const a = context?.getImageData(head.offsetWidth, top, width, height).data ?? new Uint8ClampedArray();
    const b = canvas.getContext("2d")?.getImageData(0, 0, width, height).data ?? new Uint8ClampedArray();
    let count = 0;
    for (let at = 0; at < b.length; at += 4) if (Math.abs(a[at] - b[at]) + Math.abs(a[at + 1] - b[at + 1]) + Math.abs(a[at + 2] - b[at + 2]) > 40) count += 1;
    return count / (b.length / 4);
  }, text);
  expect(unlike).toBeLessThan(0.03);
});

test("a held key moves the view smoothly, until it is released", async () => {
  const page = await pages.open(`${(await pages.serve(known)).url}#t=0-4000000`);
  await page.locator("canvas.tracks").first().focus();
  await page.keyboard.down("d");
  const places: number[] = [];
  for (let at = 0; at < 6; at += 1) places.push((await state(page)).from);
  await page.keyboard.up("d");
  for (let at = 1; at < places.length; at += 1) expect(places[at]).toBeGreaterThan(places[at - 1]);
  await page.waitForTimeout(400);
  const rest = (await state(page)).from;
  await page.waitForTimeout(200);
  expect((await state(page)).from).toBe(rest);
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
