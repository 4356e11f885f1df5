// Tests answers that arrive late or out of order: the answer to the last question is shown.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { RANKS, writeRanksInOneTrace } from "./known-ranks.ts";
import { KNOWN } from "./known.ts";
import { alter, GrowingTrace, HeldRequests, moved, point, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";
import { SAMPLED } from "./sampled.ts";

// The browser logs requests that fail.
const pages = fixture(/status of/);
let viewer: Viewer;
let sampled: Viewer;
let devices: Viewer;

beforeAll(async () => {
  const folder = temporaryFolder();
  viewer = await pages.serve(writeTrace(folder, "known", KNOWN));
  sampled = await pages.serve(writeTrace(folder, "sampled", SAMPLED));
  devices = await pages.serve(writeRanksInOneTrace(folder));
});

async function open(hash = ""): Promise<Page> {
  return pages.open(viewer.url + hash);
}

/** Opens a page whose first request that matches a pattern is held until `answer` is called. */
async function openBefore(pattern: string, url: string): Promise<{ page: Page; held: HeldRequests; answer: () => Promise<void> }> {
  const page = await pages.openPage("about:blank");
  const held = await HeldRequests.hold(page, pattern);
  await page.goto(url);
  return { page, held, answer: await held.next() };
}

async function choose(page: Page, before: string, after: string): Promise<void> {
  await page.selectOption("select[aria-label=Before]", before);
  await page.selectOption("select[aria-label=After]", after);
  await page.locator(".compare-panel button[type=submit]").click();
}

const EAGER = "0:label:eager";
const COMPILED = "0:label:compiled";

test("a panel without data says that it is loading, and nothing else", async () => {
  const { page, answer } = await openBefore("**/findings*", viewer.url);
  const panel = page.locator(".tab-body");
  for (const [tab, never] of [["gaps", "never idle"], ["kernels", "no dispatches"], ["labels", "no labels"], ["compare", "Open two traces"]]) {
    await page.locator(`[data-tab="${tab}"]`).click();
    expect(await panel.innerText()).toMatch(/Analysing|Loading|been analysed/);
    expect(await panel.innerText()).not.toContain(never);
  }
  await answer();
  await page.locator('[data-tab="gaps"]').click();
  await expect.poll(() => panel.innerText()).toContain("host late");
});

test("findings that arrive leave the focus in the flame graph", async () => {
  const { page, answer } = await openBefore("**/findings*", `${sampled.url}#p=code`);
  await page.waitForSelector(".code-panel[data-samples]");
  await page.locator(".flame-node").nth(1).click();
  await answer();
  await page.waitForSelector('.verdict[data-verdict]:not([data-verdict=""])');
  // The panels are updated a moment after the findings arrive.
  await page.waitForTimeout(500);
  expect(await page.evaluate(() => document.activeElement?.className)).toContain("flame-node");
});

test("data that arrive while a button is pressed leave the button, so that the press is a click", async () => {
  const page = await pages.openPage("about:blank");
  const held = await HeldRequests.hold(page, "**/track/**");
  await page.goto(viewer.url);
  const name = page.locator('[data-track="q1.work"]');
  const pin = await name.locator(".quick.pin").evaluateHandle((button) => button as HTMLElement);
  await expect.poll(() => name.getAttribute("title")).toContain("loading");
  await held.letAllGo();
  await expect.poll(() => name.getAttribute("title")).not.toContain("loading");
  expect(await pin.evaluate((button) => button.isConnected)).toBe(true);
  await pin.evaluate((button) => button.click());
  await expect.poll(() => name.locator(".quick.unpin").count()).toBe(1);
});

test("a search lists gaps whose findings arrive later", async () => {
  const { page, answer } = await openBefore("**/findings*", viewer.url);
  await page.waitForSelector("#app[data-full-draw]");
  const box = page.getByRole("searchbox", { name: /regular expression/ });
  await box.fill("launch latency");
  const results = page.getByRole("region", { name: "Search results" });
  await expect.poll(() => results.innerText()).toContain("No matches.");
  await answer();
  await expect.poll(() => results.innerText()).toMatch(/Gaps/);
});

test("the details of a gap gain the total time of its cause when the findings arrive", async () => {
  const { page, answer } = await openBefore("**/findings*", `${sampled.url}#e=gaps.0`);
  const details = page.locator(".details-panel");
  await page.waitForSelector('.details-panel[data-row="gaps.0"]');
  expect(await details.innerText()).not.toContain("In all time of");
  await answer();
  await expect.poll(() => details.innerText()).toContain("In all time of");
});

test("a late event of a link does not move the view", async () => {
  const { page, answer } = await openBefore("**/rows/dispatches/*", `${viewer.url}#t=1000000-2000000&e=dispatches.0`);
  await page.waitForSelector("#app[data-full-draw]");
  await moved(page, "s");
  await expect.poll(async () => (await state(page)).from).toBeLessThan(1_000_000);
  const { from, to } = await state(page);
  await answer();
  await expect.poll(async () => (await state(page)).event).toBe("dispatches.0");
  const now = await state(page);
  expect([now.from, now.to]).toEqual([from, to]);
});

describe("a comparison", () => {
  test("does not replace a gap that was shown while it was loading", async () => {
    const page = await open("#p=compare");
    const held = await HeldRequests.hold(page, "**/instances?*");
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
    expect(pages.opened.errors).toEqual([]);
  });

  test("is not replaced by the answer of an older one", async () => {
    const page = await open("#p=compare");
    const held = await HeldRequests.hold(page, "**/compare?*");
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

  test("closes the details of its events when it ends", async () => {
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

test("the graph shows the last selection", async () => {
  const page = await open("#s=1000000-2000000");
  const held = await HeldRequests.hold(page, "**/graph?*");
  await page.locator('[data-tab="graph"]').click();
  const older = await held.next();
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("r");
  // The visible panel requests the graph by itself.
  await (await held.next())();
  const kernels = async (): Promise<string> => (await page.locator(".graph .node-name").allTextContents()).sort().join();
  await expect.poll(kernels).toContain("fused");
  await older();
  expect(await kernels()).toContain("fused");
});

test("an event that is picked while another row is loading stays picked", async () => {
  const page = await open("#t=2800000-3400000");
  const first = await point(page, "q1.work", 3_150_000);
  await page.mouse.click(first.x, first.y);
  await page.waitForSelector('.details-panel[data-row="dispatches.9"] [data-relation="submitted-by"] button');
  const held = await HeldRequests.hold(page, "**/rows/host_calls/*");
  await page.locator('[data-relation="submitted-by"] button').first().click();
  const older = await held.next();
  const second = await point(page, "q1.work", 3_250_000);
  await page.mouse.click(second.x, second.y);
  await page.waitForSelector('.details-panel[data-row="dispatches.10"]');
  await older();
  expect((await state(page)).event).toBe("dispatches.10");
});

test("the later of two links is shown, and nothing of the earlier state", async () => {
  const page = await open(`#p=compare&a=${EAGER}&z=${COMPILED}&q=sin&c=label`);
  await page.waitForSelector(".compared.after");
  const held = await HeldRequests.hold(page, "**/rows/dispatches/*");
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

test("a zoom while the page is loading stays", async () => {
  const { page, held, answer: names } = await openBefore("**/strings?*", viewer.url);
  await page.waitForSelector("#app[data-first-draw]");
  await moved(page, "w");
  const { from, to } = await state(page);
  await names();
  await held.letAllGo();
  await page.waitForFunction(() => document.querySelector<HTMLElement>(".verdict")?.dataset.verdict);
  expect(await state(page)).toMatchObject({ from, to });
});

describe("a live trace", () => {
  /** Opens a page that takes the trace for a live one. */
  async function openGrowing(hash: string): Promise<{ page: Page; recording: GrowingTrace }> {
    const page = await pages.openPage("about:blank");
    const recording = await GrowingTrace.attach(page);
    await alter(page, "**/t/0/notes*", (answer) => ({ ...answer, unwritable: recording.live ? "It is recorded." : null }));
    await page.goto(viewer.url + hash);
    await page.waitForSelector("#app[data-full-draw]");
    await page.waitForFunction(() => document.querySelector<HTMLElement>(".verdict")?.dataset.verdict);
    return { page, recording };
  }

  test("leaves the focus on its row of a table", async () => {
    const { page, recording } = await openGrowing("#p=gaps");
    const row = page.locator(".gaps-list tbody tr").nth(3);
    await row.locator("button").focus();
    const text = await row.textContent();
    await page.locator(".gaps-list tbody").evaluate((body) => [...body.children].forEach((row) => row.classList.add("old")));
    await recording.grow(page);
    // The table is rebuilt when the findings arrive.
    await expect.poll(() => page.locator(".gaps-list tr.old").count()).toBe(0);
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest("tr")?.textContent)).toBe(text);
  });

  test("shows the answers for a range and the graph although it has grown since", async () => {
    const { page, recording } = await openGrowing("#p=graph");
    const [ranges, graphs] = [await HeldRequests.hold(page, "**/range?*"), await HeldRequests.hold(page, "**/graph?*")];
    await page.locator("canvas.tracks").focus();
    await page.keyboard.press("r");
    const [range, graph] = [await ranges.next(), await graphs.next()];
    await recording.grow(page);
    await recording.grow(page);
    await range();
    await page.waitForSelector(".selection-panel [data-bytes]");
    await graph();
    await page.waitForSelector(".graph .node");
    await Promise.all([ranges.letAllGo(), graphs.letAllGo()]);
  });

  test("takes notes when recording has ended", async () => {
    const { page, recording } = await openGrowing("#p=notes");
    const panel = page.locator(".notes-panel");
    await expect.poll(() => panel.innerText()).toContain("It is recorded.");
    await recording.end(page);
    await panel.getByRole("button", { name: "New note" }).waitFor();
    expect(await panel.innerText()).not.toContain("It is recorded.");
  });
});

test("a gap is shown on its own device", async () => {
  const page = await pages.open(devices.url);
  const gaps = page.locator(".gaps-list tbody tr");
  await expect.poll(() => gaps.count()).toBeGreaterThan(RANKS);
  const found = (await page.evaluate(async () => (await (await fetch("api/t/0/findings")).json()) as unknown)) as { idle_time: { longest: { device: number }[] } };
  const track = async (): Promise<string> => {
    const { event } = await state(page);
    if (event === "") return "";
    return page.evaluate(async (row) => ((await (await fetch(`api/t/0/rows/${row}`)).json()) as { track: string }).track, event.replace(".", "/"));
  };
  // Goes to the first gap of each device.
  const devicesOfGaps = found.idle_time.longest.map(({ device }) => device);
  for (const device of new Set(devicesOfGaps)) {
    await gaps.nth(devicesOfGaps.indexOf(device)).click();
    await expect.poll(track).toBe(`g${device}.gaps`);
  }
});

test("work has the same colours in whichever order it arrives", async () => {
  const colours = (page: Page): Promise<string[]> =>
    page.locator(".legend li").evaluateAll((rows) => rows.map((row) => `${row.textContent} ${(row.querySelector(".swatch") as HTMLElement).style.background}`));
  const first = await open();
  await expect.poll(async () => (await colours(first)).length).toBeGreaterThan(5);
  const wanted = await colours(first);
  await first.close();
  const page = await pages.openPage("about:blank");
  // The names arrive before the first drawing, and the copies before the kernels.
  await page.addInitScript(() => {
    const { requestAnimationFrame } = window;
    const due: FrameRequestCallback[] = [];
    window.requestAnimationFrame = (frame) => due.push(frame);
    addEventListener("draw", () => {
      window.requestAnimationFrame = requestAnimationFrame;
      due.forEach((frame) => requestAnimationFrame(frame));
    });
  });
  const held = await HeldRequests.hold(page, "**/track/q1.work?*");
  const named = page.waitForResponse("**/strings?*");
  await page.goto(viewer.url);
  await (await named).finished();
  await page.evaluate(() => setTimeout(() => dispatchEvent(new Event("draw"))));
  await page.waitForSelector('[data-track="q2.work"][data-lanes="2"]');
  await held.letAllGo();
  await page.waitForSelector('.verdict[data-verdict]:not([data-verdict=""])');
  await expect.poll(() => colours(page)).toEqual(wanted);
});

test("a message about a missing row goes with the next move", async () => {
  const page = await open("#e=dispatches.99999");
  const status = page.locator("#app > .status");
  await expect.poll(() => status.innerText()).not.toBe("");
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("j");
  await page.waitForSelector("#app[data-gap]");
  await expect.poll(() => status.isVisible()).toBe(false);
});

test("missing figures of a range are reported", async () => {
  const page = await open();
  await page.route("**/range?*", (route) => route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: "It was made to fail." }) }));
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("r");
  await expect.poll(() => page.locator(".selection-panel").innerText()).toContain("It was made to fail.");
  expect(await page.locator(".selection-panel").innerText()).not.toContain("Loading");
});
