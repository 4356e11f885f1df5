// Tests the code of idle time: samples on the tracks of threads, the code of a gap, the flame graph and its table.

import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { KNOWN } from "./known.ts";
import { alter, gapscope, GrowingTrace, point, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";
import { SAMPLED, SAMPLES } from "./sampled.ts";

const TRACK = "p1.t41.samples";
/** A time in the third sample of the first gap, in which the thread waits. */
const WAIT_NS = 2.415e6 + 50_000;

const pages = fixture();
let viewer: Viewer;
let plain: Viewer;
let file: string;

beforeAll(async () => {
  const folder = temporaryFolder();
  const trace = writeTrace(folder, "sampled", SAMPLED);
  viewer = await pages.serve(trace);
  plain = await pages.serve(writeTrace(folder, "known", KNOWN));
  file = join(folder, "sampled.html");
  gapscope("report", trace, "--html", file);
});

async function open(url: string): Promise<Page> {
  return pages.open(url, { width: 1440, height: 900 });
}

/** Opens the panel of code and waits for its samples. */
async function openCode(url: string, hash = ""): Promise<Page> {
  const page = await open(`${url}#p=code${hash}`);
  await page.waitForSelector(".code-panel[data-samples]");
  return page;
}

const rows = (page: Page): Promise<string[][]> => page.locator(".code-table tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td")].map((cell) => (cell as HTMLElement).innerText.replace(/\s+/g, " ").trim())));
const names = (page: Page): Promise<string[]> => page.locator(".flame-node").evaluateAll((nodes) => nodes.map((node) => node.textContent ?? ""));
const samples = (page: Page): Promise<number> => page.locator(".code-panel").getAttribute("data-samples").then(Number);

describe.each([
  ["served", () => viewer.url],
  ["in a saved page", () => `file://${file}`],
])("the code of idle time, %s", (_, url) => {
  test("has the planted shares, as a flame graph and as a table", async () => {
    const page = await openCode(url());
    const all = SAMPLES.load + SAMPLES.wait;
    expect(await samples(page)).toBe(all);
    const share = (part: number): string => `${((100 * part) / all).toFixed(1)} %`;
    const found = await rows(page);
    expect(found.map(([line, , part, count]) => [line, part, count])).toEqual([
      ["train.py:41 load_batch > resize", share(SAMPLES.load), String(SAMPLES.load)],
      ["train.py:50 next_batch > Queue.get > read", share(SAMPLES.wait), String(SAMPLES.wait)],
    ]);
    expect(await names(page)).toEqual(["all idle time with samples", "train.py:60 main", "train.py:41 load_batch", "Image.py:9 resize", "train.py:50 next_batch", "queues.py:103 Queue.get", "libc.so.6 read"]);
    // All widths are read in one step, because frames that are being redrawn have none.
    const widths = await page.locator(".flame").evaluate((flame) => [...flame.querySelectorAll(".flame-node")].map((node) => node.getBoundingClientRect().width));
    expect(widths[2] / widths[0]).toBeCloseTo(SAMPLES.load / all, 2);
  });

  test("zooms by click and key, and highlights matches of the search", async () => {
    const page = await openCode(url());
    await page.getByRole("button", { name: /^train.py:50 next_batch: / }).click();
    expect(await names(page)).toEqual(["all idle time with samples", "train.py:60 main", "train.py:50 next_batch", "queues.py:103 Queue.get", "libc.so.6 read"]);
    await page.keyboard.press("Escape");
    expect(await names(page)).toHaveLength(7);
    await page.locator(".flame-node").first().focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
    expect(await names(page)).toHaveLength(5);
    await page.getByRole("button", { name: "Zoom out" }).click();
    await page.locator("input[type=search], .topbar input").first().fill("resize|libc");
    await page.waitForSelector(".flame-node.found");
    expect(await page.locator(".flame-node.found").allInnerTexts()).toEqual(["Image.py:9 resize", "libc.so.6 read"]);
  });

  test("follows the selected range, the cause and the label", async () => {
    const page = await openCode(url(), "&s=2000000-11000000");
    expect(await samples(page)).toBe((SAMPLES.load + SAMPLES.wait) / 9);
    await page.keyboard.press("Escape");
    await page.waitForFunction((all) => document.querySelector<HTMLElement>(".code-panel")?.dataset.samples === String(all), SAMPLES.load + SAMPLES.wait);
    // Nine gaps end with work of steps 2 to 10, five of them odd.
    await page.getByRole("combobox", { name: /label/i }).selectOption("odd");
    expect(await samples(page)).toBe(((SAMPLES.load + SAMPLES.wait) * 5) / 9);
    await page.getByRole("combobox", { name: /cause/i }).selectOption("host late");
    expect(await samples(page)).toBeGreaterThan(0);
    // The link has the cause and the label.
    const some = await samples(page);
    await expect.poll(() => page.evaluate(() => location.hash)).toBe("#p=code&x=host-late&l=odd");
    await page.reload();
    await expect.poll(() => samples(page)).toBe(some);
    await page.getByRole("combobox", { name: /label/i }).selectOption("");
    await page.getByRole("combobox", { name: /cause/i }).selectOption("");
    expect(await samples(page)).toBe(SAMPLES.load + SAMPLES.wait);
  });

  test("is in the details of a gap, with exact lines and the whole stack", async () => {
    const page = await open(`${url()}#e=gaps.1`);
    await page.waitForSelector(".gap-code[data-samples]");
    const code = page.locator(".gap-code");
    expect(Number(await code.getAttribute("data-samples"))).toBe((SAMPLES.load + SAMPLES.wait) / 9);
    expect((await code.locator(".lines li").first().innerText()).replace(/\s+/g, " ")).toMatch(/^train.py:41 load_batch > resize 66\.\d % 30$/);
    expect(await code.locator(".exact-lines").innerText()).toContain("train.py:41 load_batch");
    expect((await code.locator(".meanwhile").innerText()).replace(/\s+/g, " ")).toMatch(/^Meanwhile 1 worker \d+ samples data.py:12 decode 100 % \d+$/);
    expect(await code.locator(".stack ol li").allInnerTexts()).toEqual(["Image.py:9 resize", "train.py:41 load_batch", "train.py:60 main"]);
  });

  test("is on the thread's track: hovering and clicking show stack, state and system call", async () => {
    const page = await open(`${url()}#t=2000000-4000000`);
    await page.waitForSelector(`[data-track="${TRACK}"][data-lanes="2"]`);
    const place = await point(page, TRACK, WAIT_NS);
    await page.mouse.move(place.x, place.y);
    await page.waitForSelector(".tooltip:not([hidden])");
    expect(await page.locator(".tooltip").innerText()).toContain("blocked in read");
    await page.mouse.click(place.x, place.y);
    await page.waitForSelector('.details-panel[data-row^="samples."]');
    const details = await page.locator(".details-panel").innerText();
    expect(details).toContain("train.py:50 next_batch > Queue.get");
    expect(details).toContain("libc.so.6 read");
    const { event } = await state(page);
    expect(event).toMatch(/^samples\.\d+$/);
    // A link to the sample leads there again.
    await page.goto(`${url()}#e=${event}`);
    await page.reload();
    await page.waitForSelector(`.details-panel[data-row="${event}"]`);
  });
});

test("the code of a gap is shown in the other theme", async () => {
  const page = await open(`${viewer.url}#e=gaps.1`);
  await page.waitForSelector(".gap-code[data-samples]");
  const colours = (): Promise<string[]> => page.locator(".gap-code .swatch").evaluateAll((all) => all.map((swatch) => getComputedStyle(swatch).backgroundColor));
  const before = await colours();
  await page.locator("[aria-label='Change between light and dark']").click();
  await expect.poll(async () => (await colours()).length).toBe(before.length);
  await expect.poll(async () => (await colours()).some((colour, at) => colour === before[at])).toBe(false);
});

test("a chosen cause stays chosen when recording ends and causes are renumbered", async () => {
  const page = await pages.openPage("about:blank");
  const recording = await GrowingTrace.attach(page);
  const [one, other] = ["host-late", "after-host-wait"];
  await alter<{ strings: string[] }>(page, "**/t/0/strings*", (answer) =>
    recording.live ? answer : { ...answer, strings: answer.strings.map((text) => (text === one ? other : text === other ? one : text)) },
  );
  await page.goto(`${viewer.url}#p=code`);
  await page.waitForSelector(".code-panel[data-samples]");
  const causes = page.getByRole("combobox", { name: /cause/i });
  await causes.selectOption("host late");
  const chosen = (): Promise<string> => causes.evaluate((select) => (select as HTMLSelectElement).selectedOptions[0]?.textContent ?? "");
  expect(await chosen()).toBe("host late");
  const idle = page.waitForResponse("**/code/idle*");
  await recording.end(page);
  await (await idle).finished();
  await state(page);
  expect(await chosen()).toBe("host late");
});

test("a trace without samples says how to get them, and requests none", async () => {
  const asked: string[] = [];
  const page = await open(plain.url);
  page.on("request", (request) => asked.push(request.url()));
  await page.reload();
  await page.waitForSelector("#app[data-full-draw]");
  await expect.poll(() => page.locator('[data-tab="code"]').isVisible()).toBe(false);
  await page.evaluate(() => (location.hash = "#p=code"));
  expect(await page.locator(".code-panel").innerText()).toContain("The trace has neither samples of stacks nor ranges of the threads that submit.");
  expect(asked.filter((url) => url.includes("/code"))).toEqual([]);
  expect(await page.locator(".track-name.kind-samples").count()).toBe(0);
});
