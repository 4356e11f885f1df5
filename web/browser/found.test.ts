// Tests that everything drawn can be found, and everything recorded can be seen: deep lanes, names of calls, typing errors, transfers, steps.

import { join } from "node:path";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { KNOWN } from "./known.ts";
import { gapscope, state, temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const pages = fixture();
const DEPTH = 55;

/** A program whose thread is in 55 nested labels. */
const DEEP = [
  KNOWN,
  "",
  ...Array.from({ length: DEPTH }, (_, depth) => `label id=${100 + depth} text=frame_${depth}${depth > 0 ? ` parent=${99 + depth}` : ""}`),
  ...Array.from({ length: DEPTH }, (_, depth) => `marker process=1 scope=thread label=${100 + depth} thread=41 start_ns=${1000 + depth}us duration_ns=${5000 - 2 * depth}us`),
].join("\n");
const deep = writeTrace(folder, "deep", DEEP);
const LABELS = '[data-track="p1.t41.labels"]';

test("all lanes of 55 nested labels are drawn once they are unfolded, and search unfolds them", async () => {
  const page = await pages.open((await pages.serve(deep)).url);
  const row = page.locator(`.headers ${LABELS}`);
  const height = async (): Promise<number> => (await row.boundingBox())?.height ?? 0;
  // Tracks are loaded when they come into sight.
  await row.scrollIntoViewIfNeeded();
  await expect.poll(() => row.locator(".lanes").innerText()).toBe("▸ 43 more lanes");
  const folded = await height();
  await row.locator(".lanes").click();
  await expect.poll(height).toBeGreaterThan(4 * folded);
  await row.locator(".track-handle").press("ArrowLeft");
  await expect.poll(height).toBe(folded);
  // The deepest label is found by its name with a letter wrong, and its lane is unfolded.
  await page.locator(".topbar input").fill("frane_54");
  const results = page.getByRole("region", { name: "Search results" });
  await expect.poll(() => results.innerText()).toContain("Similar names");
  await results.locator('[data-kind="Labels of threads"] + ul button', { hasText: "frame_54" }).click();
  await expect.poll(async () => (await state(page)).event).toMatch(/^markers\./);
  await expect.poll(height).toBeGreaterThan(4 * folded);
});

test("transfers have one colour in the bar, on the tracks, in the legend and in the tables of a range", async () => {
  const page = await pages.open(`${(await pages.serve(deep)).url}#t=3000000-3300000`);
  const colours = (selector: string): Promise<string[]> => page.locator(`${selector} .swatch`).evaluateAll((all) => all.map((swatch) => getComputedStyle(swatch).backgroundColor));
  await expect.poll(() => colours(".legend [data-legend=transfers]").then((all) => all.filter(Boolean).length)).toBeGreaterThan(0);
  const [legend] = await colours(".legend [data-legend=transfers]");
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
    const head = document.querySelector('[data-track="q2.work"]')?.getBoundingClientRect();
    if (!canvas || !head) return "";
    const box = canvas.getBoundingClientRect();
    // The first copy runs from 3.05 to 3.15 ms.
    const [r, g, b] = canvas.getContext("2d")?.getImageData(((70_000 / 300_000) * box.width) * devicePixelRatio, (head.top - box.top + 8) * devicePixelRatio, 1, 1).data ?? [];
    return `rgb(${r}, ${g}, ${b})`;
  });
  expect(drawn).toBe(legend);
  expect(await colours(".legend .causes:not([data-legend])")).not.toContain(legend);
});

test("steps are a row with the median and the slow ones, and the slow one is compared with the median", async () => {
  const starts = [1000, 2000, 3000, 4000, 5000];
  const lengths = [800, 800, 1200, 800, 820];
  let at = 0;
  const text = [
    KNOWN,
    "",
    "label id=90 text=train_step",
    ...starts.map((_, number) => {
      const line = `marker process=1 scope=thread label=90 thread=41 start_ns=${500 + at}us duration_ns=${lengths[number]}us`;
      at += lengths[number];
      return line;
    }),
  ].join("\n");
  const page = await pages.open((await pages.serve(writeTrace(folder, "steps", text))).url);
  await expect.poll(() => page.locator(".timeline").first().getAttribute("data-steps")).toBe("5");
  await expect.poll(() => page.locator(".steps-corner").innerText()).toMatch(/train_step[^]*median 800 µs[^]*1 slow/);
  await page.locator(".steps-corner button", { hasText: "slow" }).click();
  expect((await state(page)).selection).toBe(`${2100 * 1000}-${3300 * 1000}`);
  await page.locator('[data-tab="compare"]').click();
  const chosen = (name: string): Promise<string> => page.getByRole("combobox", { name, exact: true }).evaluate((box) => (box as HTMLSelectElement).selectedOptions[0]?.textContent ?? "");
  const options = await page.getByRole("combobox", { name: "Before", exact: true }).locator("option").allInnerTexts();
  expect(options.slice(0, 2)).toEqual(["train_step 4 (median)", "train_step 3 (slow)"]);
  expect(await chosen("After")).not.toBe("");
});

test("the calls of a real PyTorch trace are found by the names of their functions, with an error, too", async () => {
  const trace = join(folder, "h100.gapscope");
  gapscope("import", join(import.meta.dirname, "../../fixtures/kineto/h100.json"), "-o", trace);
  const page = await pages.open((await pages.serve(trace)).url);
  const box = page.locator(".topbar input");
  const calls = page.locator("[data-kind=Calls]");
  await box.fill("cudaLaunchKernel");
  await expect.poll(() => calls.getAttribute("data-count").then(Number)).toBeGreaterThan(0);
  const exactly = await calls.getAttribute("data-count");
  await box.fill("cudaLuanchKernel");
  await expect.poll(() => page.locator("[data-similar]").count()).toBe(1);
  expect(Number(await calls.getAttribute("data-count"))).toBeGreaterThanOrEqual(Number(exactly));
});

test("two sides are laid over each other, before in the upper half of each lane and after in the lower", async () => {
  const page = await pages.open(`${(await pages.serve(deep)).url}#a=0:label:eager&z=0:label:compiled&p=compare`);
  await expect.poll(() => page.locator(".timeline.compared").count()).toBe(2);
  await page.locator(".lay-over input").check();
  await expect.poll(() => page.locator(".timeline.compared").count()).toBe(1);
  // 350 µs after the start the eager side still works, and the compiled one is done.
  const lane = async (part: number): Promise<string> => {
    const { from, to } = await state(page);
    return page.evaluate(({ at, part }) => {
      const canvas = document.querySelector<HTMLCanvasElement>(".timeline canvas.tracks");
      const head = document.querySelector('.timeline [data-track="q1.work"]')?.getBoundingClientRect();
      if (!canvas || !head) return "";
      const box = canvas.getBoundingClientRect();
      return [...(canvas.getContext("2d")?.getImageData(at * box.width * devicePixelRatio, (head.top - box.top + head.height * part) * devicePixelRatio, 1, 1).data ?? [])].join();
    }, { at: (2_350_000 - from) / (to - from), part });
  };
  await expect.poll(async () => (await lane(0.3)) !== (await lane(0.8))).toBe(true);
  await page.locator("button", { hasText: "Back to one timeline" }).click();
  await expect.poll(() => page.locator(".timeline.compared").count()).toBe(0);
});

test("a trace that is mostly start-up opens on its GPU work, and a button shows all of it", async () => {
  const late = KNOWN.replace(/^host_call .*$/m, (line) => `host_call process=1 thread=41 call=create-pipelines start_ns=-200ms duration_ns=50ms\n${line}`);
  const page = await pages.open((await pages.serve(writeTrace(folder, "late", late))).url);
  const opened = await state(page);
  expect(opened.from).toBeGreaterThan(-10e6);
  expect(await page.evaluate(() => location.hash)).not.toContain("t=");
  await page.getByRole("button", { name: "all of it" }).click();
  await expect.poll(async () => (await state(page)).from).toBeLessThan(-190e6);
  await expect.poll(() => page.evaluate(() => location.hash)).toContain("t=");
  await page.goBack();
  await expect.poll(async () => (await state(page)).from).toBeGreaterThan(-10e6);
});
