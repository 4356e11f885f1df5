// Answers that come late, or in another order than they were asked for: what was asked last is shown.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TEXT } from "./known.ts";
import { closeBrowser, Held, openPage, openTrace, type Opened, point, scratch, state, traceOf, view, type Viewer } from "./product.ts";
import { SAMPLED } from "./sampled.ts";

let viewer: Viewer;
let sampled: Viewer;
let opened: Opened;

beforeAll(async () => {
  const made = scratch();
  viewer = await view(traceOf(made, "known", TEXT));
  sampled = await view(traceOf(made, "sampled", SAMPLED));
});

afterAll(async () => {
  await closeBrowser();
  for (const one of [viewer, sampled]) await one?.stop();
});

afterEach(async () => {
  await opened.page.close();
});

async function open(hash = ""): Promise<Opened["page"]> {
  opened = await openTrace(viewer.url + hash);
  return opened.page;
}

async function choose(page: Opened["page"], before: string, after: string): Promise<void> {
  await page.selectOption("select[aria-label=Before]", before);
  await page.selectOption("select[aria-label=After]", after);
  await page.locator(".compare-panel button[type=submit]").click();
}

const EAGER = "0:label:eager";
const COMPILED = "0:label:compiled";

test("a panel whose data has not come says so, and nothing else", async () => {
  opened = await openPage("about:blank");
  const { page } = opened;
  const held = await Held.of(page, "**/findings*");
  await page.goto(viewer.url);
  const answer = await held.next();
  const panel = page.locator(".tab-body");
  for (const [tab, never] of [["gaps", "never idle"], ["kernels", "no dispatches"], ["labels", "no labels"], ["compare", "Open two traces"]]) {
    await page.locator(`[data-tab="${tab}"]`).click();
    expect(await panel.innerText()).toMatch(/Analysing|Loading|is analysed/);
    expect(await panel.innerText()).not.toContain(never);
  }
  await answer();
  await page.locator('[data-tab="gaps"]').click();
  await expect.poll(() => panel.innerText()).toContain("host late");
});

test("findings that come do not take the keyboard from the flame graph", async () => {
  opened = await openPage("about:blank");
  const { page } = opened;
  const held = await Held.of(page, "**/findings*");
  await page.goto(`${sampled.url}#p=code`);
  const answer = await held.next();
  await page.waitForSelector(".code-panel[data-samples]");
  await page.locator(".flame-node").nth(1).click();
  await answer();
  await page.waitForSelector('.verdict[data-verdict]:not([data-verdict=""])');
  // A panel answers what came a moment later.
  await page.waitForTimeout(500);
  expect(await page.evaluate(() => document.activeElement?.className)).toContain("flame-node");
});

describe("a comparison", () => {
  test("does not come over a gap that was gone to while it was loading", async () => {
    const page = await open("#p=compare");
    const held = await Held.of(page, "**/instances?*");
    await choose(page, EAGER, COMPILED);
    const first = await held.next();
    await page.locator("canvas.tracks").focus();
    await page.keyboard.press("n");
    await page.waitForSelector("#app[data-gap]");
    const second = held.next();
    await first();
    await (await second)();
    expect(await page.locator(".compared").count()).toBe(0);
    expect(await page.locator("#app").getAttribute("data-comparing")).toBeNull();
    expect(opened.errors).toEqual([]);
  });

  test("that is newer is not replaced by the answer of an older one", async () => {
    const page = await open("#p=compare");
    const held = await Held.of(page, "**/compare?*");
    await choose(page, EAGER, COMPILED);
    const older = await held.next();
    await choose(page, COMPILED, EAGER);
    await (await held.next())();
    const ratio = async (): Promise<number> => Number(await page.locator("[data-what=dispatches]").getAttribute("data-ratio"));
    await expect.poll(ratio).toBeCloseTo(0.25, 3);
    await older();
    expect(await ratio()).toBeCloseTo(0.25, 3);
    expect(await page.locator(".compared.before").getAttribute("data-stretch-ns")).toBe("120000");
  });

  test("that ends takes the details of its events along", async () => {
    const page = await open(`#p=compare&a=${EAGER}&z=${COMPILED}`);
    await page.waitForSelector(".compared.after");
    const box = await page.locator(".compared.after canvas.tracks").boundingBox();
    const { from, to } = await state(page, ".compared.after");
    const head = await page.locator('.compared.after [data-track="q1.work"]').boundingBox();
    if (!box || !head) throw new Error("no track");
    await page.mouse.click(box.x + ((11_560_000 - from) / (to - from)) * box.width, head.y + head.height / 2);
    await page.waitForSelector('.details-panel[data-row^="dispatches."]');
    await page.locator("button", { hasText: "Back to one timeline" }).click();
    await page.waitForSelector(".details-panel", { state: "hidden" });
    expect(await page.locator(".side.filled").count()).toBe(0);
  });
});

test("the graph is of the selection that was made last", async () => {
  const page = await open("#s=1000000-2000000");
  const held = await Held.of(page, "**/graph?*");
  await page.locator('[data-tab="graph"]').click();
  const older = await held.next();
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("r");
  // Nobody asks for it: the panel is seen.
  await (await held.next())();
  const kernels = async (): Promise<string> => (await page.locator(".graph .node-name").allTextContents()).sort().join();
  await expect.poll(kernels).toContain("fused");
  await older();
  expect(await kernels()).toContain("fused");
});

test("what is picked while another row is looked for stays picked", async () => {
  const page = await open("#t=2800000-3400000");
  const first = await point(page, "q1.work", 3_150_000);
  await page.mouse.click(first.x, first.y);
  await page.waitForSelector('.details-panel[data-row="dispatches.9"] [data-relation="submitted-by"] button');
  const held = await Held.of(page, "**/rows/host_calls/*");
  await page.locator('[data-relation="submitted-by"] button').first().click();
  const older = await held.next();
  const second = await point(page, "q1.work", 3_250_000);
  await page.mouse.click(second.x, second.y);
  await page.waitForSelector('.details-panel[data-row="dispatches.10"]');
  await older();
  expect((await state(page)).event).toBe("dispatches.10");
});

test("of two links the later one is shown, and nothing of what was there before", async () => {
  const page = await open(`#p=compare&a=${EAGER}&z=${COMPILED}&q=sin&c=label`);
  await page.waitForSelector(".compared.after");
  const held = await Held.of(page, "**/rows/dispatches/*");
  await page.evaluate(() => (location.hash = "#e=dispatches.0&t=1000000-2000000"));
  const older = await held.next();
  await page.waitForSelector(".compared", { state: "detached" });
  await page.evaluate(() => (location.hash = "#t=3000000-4000000&p=labels"));
  await expect.poll(async () => (await state(page)).from).toBe(3_000_000);
  await older();
  const now = await state(page);
  expect([now.from, now.to, now.event]).toEqual([3_000_000, 4_000_000, ""]);
  expect(await page.locator("input[type=search]").inputValue()).toBe("");
  expect(await page.locator('[data-colouring="kernel"]').getAttribute("aria-checked")).toBe("true");
});

test("who zooms while the page is loading stays there", async () => {
  opened = await openPage("about:blank");
  const { page } = opened;
  const held = await Held.of(page, "**/strings?*");
  await page.goto(viewer.url);
  const names = await held.next();
  await page.waitForSelector("#app[data-first-draw]");
  await page.keyboard.press("w");
  const { from, to } = await state(page);
  await names();
  await held.letAllGo();
  await page.waitForFunction(() => document.querySelector<HTMLElement>(".verdict")?.dataset.verdict);
  expect(await state(page)).toMatchObject({ from, to });
});

test("that figures of a range cannot be had is said", async () => {
  const page = await open();
  await page.route("**/range?*", (route) => route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: "It was made to fail." }) }));
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("r");
  await expect.poll(() => page.locator(".selection-panel").innerText()).toContain("It was made to fail.");
  expect(await page.locator(".selection-panel").innerText()).not.toContain("Asking for");
});
