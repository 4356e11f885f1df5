// Tests the dependency graphs of a capture and of a trace.

import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { KNOWN } from "./known.ts";
import { alter, FIREFOX, gapscope, GrowingTrace, HeldRequests, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const CAPTURE = resolve(import.meta.dirname, "../../fixtures/fusion.gapcapture");
const CANVAS = ".dependencies-canvas";

const pages = fixture();
let captured: Viewer;
let recorded: Viewer;

beforeAll(async () => {
  captured = await pages.serve(CAPTURE);
  recorded = await pages.serve(writeTrace(temporaryFolder(), "known", KNOWN));
});

async function openCapture(hash = "", options = {}): Promise<Page> {
  const page = await pages.openPage(captured.url + hash, options);
  await page.waitForSelector(`${CANVAS}[data-nodes]`);
  return page;
}

async function data(page: Page): Promise<Record<string, string>> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.$eval(CANVAS, (canvas) => ({ ...(canvas as HTMLElement).dataset }) as Record<string, string>);
}

describe("the page of a capture", () => {
  test("shows the figures of the capture and draws its dependencies", async () => {
    const page = await openCapture();
    expect(await page.title()).toContain("fusion.gapcapture");
    const figures = await page.locator(".figures").innerText();
    for (const said of ["8\nsubmissions", "20\ndispatches", "6\ntransfers", "5\nkernels"]) expect(figures).toContain(said);
    const { nodes, edges } = await data(page);
    expect([nodes, edges]).toEqual(["26", "40"]);
    expect(await page.locator('[data-list="hazards"]').innerText()).toContain("None: every dependency of the window is ordered.");
    expect(await page.locator('[data-list="critical"]').innerText()).toContain("17 commands");
    // The canvas has more than the background.
    const colours = await page.$eval(CANVAS, (canvas) => {
      const { width, height } = canvas as HTMLCanvasElement;
      const pixels = (canvas as HTMLCanvasElement).getContext("2d")?.getImageData(0, 0, width, height).data ?? [];
      const seen = new Set<number>();
      for (let at = 0; at < pixels.length; at += 4) seen.add((pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]);
      return seen.size;
    });
    expect(colours).toBeGreaterThan(20);
  });
  test("goes from a finding to its place, and from a node to its neighbours", async () => {
    const page = await openCapture();
    await page.locator('[data-list="needless"] button').first().click();
    expect((await data(page)).picked).toMatch(/^barrier \d+$/);
    expect(await page.locator(".dependencies-details").innerText()).toContain("needless");
    await page.locator('[data-list="largest"] button', { hasText: "sin → 6 cos" }).click();
    expect(await page.locator(".dependencies-details").innerText()).toContain("Ordered by barriers.");
    await page.locator(".dependencies-details .neighbours button", { hasText: "5 sin" }).click();
    expect((await data(page)).picked).toBe("node 5");
    expect(new URL(page.url()).hash).toBe("#n=5");
    const details = await page.locator(".dependencies-details").innerText();
    for (const said of ["Reads 16.0 KiB, writes 16.0 KiB.", "Exactly these bytes.", "intermediate 1", "on the critical path"]) expect(details).toContain(said);
    await page.locator('.dependencies-details [data-relation="to"] button', { hasText: "6 cos" }).first().click();
    expect((await data(page)).picked).toBe("node 6");
  });
  test("shows neighbours in a tooltip, and picks a node by a click", async () => {
    const page = await openCapture("#n=5");
    await expect.poll(async () => (await data(page)).picked).toBe("node 5");
    const box = await page.locator(CANVAS).boundingBox();
    const place = await page.locator(".dependencies-canvas").evaluate((canvas) => (canvas as HTMLElement).dataset.at?.split(" ").map(Number));
    if (!box || !place) throw new Error("it is not there");
    await page.keyboard.press("Escape");
    await page.mouse.move(box.x + place[0], box.y + place[1]);
    const tooltip = page.locator(".dependencies-tooltip");
    await expect.poll(() => tooltip.isVisible()).toBe(true);
    const said = await tooltip.innerText();
    for (const part of ["5 sin", "reads 16.0 KiB, writes 16.0 KiB", "waits for", "2 copy", "needed by", "6 cos"]) expect(said).toContain(part);
    await page.mouse.click(box.x + place[0], box.y + place[1]);
    expect((await data(page)).picked).toBe("node 5");
  });
  test("works by keyboard", async () => {
    const page = await openCapture();
    await page.locator(CANVAS).focus();
    for (const [key, picked] of [
      ["ArrowDown", "node 0"],
      ["ArrowDown", "node 1"],
      ["ArrowDown", "node 2"],
      ["ArrowRight", "node 5"],
      ["ArrowRight", "node 6"],
      ["ArrowLeft", "node 5"],
      ["ArrowUp", "node 4"],
      ["Escape", ""],
    ]) {
      await page.keyboard.press(key);
      expect((await data(page)).picked, key).toBe(picked);
    }
    await page.keyboard.press("n");
    const first = (await data(page)).picked;
    await page.keyboard.press("n");
    expect((await data(page)).picked).not.toBe(first);
    await page.keyboard.press("p");
    expect((await data(page)).picked).toBe(first);
    const before = Number((await data(page)).scale);
    await page.keyboard.press("w");
    expect(Number((await data(page)).scale)).toBeGreaterThan(before);
    await page.keyboard.press("f");
    expect(Number((await data(page)).scale)).toBeLessThan(before);
  });
  test("zooms at the pointer by Ctrl and the wheel, and moves by dragging", async () => {
    const page = await openCapture();
    const box = await page.locator(CANVAS).boundingBox();
    if (!box) throw new Error("it is not there");
    const { scale } = await data(page);
    await page.mouse.move(box.x + 300, box.y + 200);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, 300);
    await page.keyboard.up("Control");
    await expect.poll(async () => Number((await data(page)).scale)).toBeLessThan(Number(scale));
    const before = (await data(page)).from;
    await page.mouse.down();
    await page.mouse.move(box.x + 100, box.y + 200, { steps: 4 });
    await page.mouse.up();
    expect(Number((await data(page)).from)).toBeGreaterThan(Number(before));
  });
  test("hides kinds of edges, and lays out by the recorded barriers", async () => {
    const page = await openCapture();
    await page.locator('[data-kind="WAR"]').click();
    expect(await page.locator('[data-kind="WAR"]').getAttribute("aria-pressed")).toBe("false");
    await page.locator('[data-columns="barriers"]').click();
    expect(await page.locator('[data-columns="barriers"]').getAttribute("aria-checked")).toBe("true");
    const wide = Number((await data(page)).width);
    await page.locator('[data-columns="dependencies"]').click();
    // Work that barriers separate is in columns of its own.
    expect(wide).toBeGreaterThan(Number((await data(page)).width));
  });
  test("lists kernels and the facts of the capture", async () => {
    const page = await openCapture();
    await page.locator('[data-tab="kernels"]').click();
    expect(await page.locator(".table").innerText()).toContain("fused_sin_cos_exp_log");
    await page.locator('[data-tab="about"]').click();
    const about = await page.locator(".about-panel").innerText();
    for (const said of ["submissions 0..8", "./fusion --n 4096", "gapscope replay"]) expect(about).toContain(said);
    await page.locator('[data-tab="dependencies"]').click();
    expect((await data(page)).nodes).toBe("26");
  });
  test.skipIf(FIREFOX)("draws 1,000 commands in less than a frame", async () => {
    const page = await pages.openPage("about:blank");
    await page.route("**/api/t/0/dependencies*", (route) => route.fulfill({ json: layeredAnswer(1000) }));
    await page.goto(captured.url);
    await page.waitForSelector(`${CANVAS}[data-nodes="1000"]`);
    const box = await page.locator(CANVAS).boundingBox();
    if (!box) throw new Error("it is not there");
    await page.locator(CANVAS).focus();
    await page.keyboard.press("f");
    await page.mouse.move(box.x + 300, box.y + 200);
    const times: number[] = [];
    await page.keyboard.down("Control");
    for (let step = 0; step < 40; step += 1) {
      await page.mouse.wheel(0, -60);
      times.push(Number((await data(page)).drawMs));
    }
    await page.keyboard.up("Control");
    times.sort((a, b) => a - b);
    // A busy machine disturbs many of the times, so the lower quartile counts.
    expect(times[Math.floor(times.length / 4)]).toBeLessThan(16);
  });
});

describe("a trace's dependencies", () => {
  test("are those of the bound ranges, and lead to the timeline and back", async () => {
    const page = await pages.open(`${recorded.url}#p=dependencies`);
    await page.waitForSelector(`${CANVAS}[data-nodes]`);
    const all = Number((await data(page)).nodes);
    expect(all).toBeGreaterThan(10);
    expect(await page.locator(".dependencies-panel .panel-head").innerText()).toContain("By the ranges that are bound");
    expect(await page.locator('[data-list="hazards"]').innerText()).toContain("Unknown");
    await page.locator(CANVAS).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.locator(".to-timeline").click();
    await page.waitForFunction(() => document.querySelector<HTMLElement>(".details-panel")?.dataset.row);
    const row = await page.locator(".details-panel").getAttribute("data-row");
    expect(row).toMatch(/^(dispatches|transfers)\.\d+$/);
    expect((await data(page)).picked).toBe("node 1");
    await page.locator('[data-tab="gaps"]').click();
    await page.keyboard.press("Escape");
    expect(await page.locator(".details-panel").isVisible()).toBe(false);
    // The picked row leads back to its node.
    await page.evaluate(() => (location.hash = "#e=dispatches.9&p=gaps"));
    await page.locator(".details-panel .dependencies .link", { hasText: "among its dependencies" }).click();
    await expect.poll(async () => (await data(page)).picked).toMatch(/^node \d+$/);
    expect(await page.locator(".tabs").getAttribute("data-shown")).toBe("dependencies");
  });
  test("keep their view and their pick while the trace grows", async () => {
    const page = await pages.openPage("about:blank");
    const recording = await GrowingTrace.attach(page);
    // At first the trace has only its first twelve commands.
    let first = 12;
    await alter<{ nodes: unknown[]; edges: { from: number; to: number }[] }>(page, /\/t\/0\/dependencies\b[^/]*$/, (answer) => {
      const nodes = answer.nodes.slice(0, first);
      const edges = answer.edges.filter(({ from, to }) => from < first && to < first);
      return { ...answer, nodes, node_count: nodes.length, edges, edge_count: edges.length };
    });
    await page.goto(`${recorded.url}#p=dependencies`);
    await page.waitForSelector(`${CANVAS}[data-nodes="12"]`);
    await page.locator(CANVAS).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("w");
    await expect.poll(async () => (await data(page)).picked).toBe("node 1");
    const before = await data(page);
    const beside = page.locator(".dependencies-details .neighbours button").first();
    await beside.focus();
    first = Infinity;
    const held = await HeldRequests.hold(page, "**/t/0/dependencies?*");
    await recording.grow(page);
    const answer = await held.next();
    expect(await data(page)).toMatchObject({ nodes: "12", picked: "node 1", scale: before.scale, from: before.from });
    // The trace grows again before the answer arrives.
    await recording.grow(page);
    await answer();
    await expect.poll(async () => Number((await data(page)).nodes)).toBeGreaterThan(12);
    await held.letAllGo();
    expect(await data(page)).toMatchObject({ picked: "node 1", scale: before.scale, from: before.from });
    expect(await page.locator(".dependencies-panel").getAttribute("data-picked")).toBe("node 1");
    expect(await page.evaluate(() => document.activeElement?.closest(".dependencies-details") !== null)).toBe(true);
  });
  test("of a selected range are those of the work that starts in it", async () => {
    const page = await pages.open(`${recorded.url}#p=dependencies`);
    await page.waitForSelector(`${CANVAS}[data-nodes]`);
    const all = Number((await data(page)).nodes);
    await page.evaluate(() => (location.hash = "#s=1000000-4000000&p=dependencies"));
    await expect.poll(async () => Number((await data(page)).nodes)).toBeLessThan(all);
  });
});

/** Makes a FAKE answer with layers of commands that depend on each other as in a network. */
function layeredAnswer(count: number): unknown {
  const nodes = Array.from({ length: count }, (_, id) => ({
    id,
    kind: id % 17 === 5 ? "copy" : "dispatch",
    name: ["matmul", "add", "norm", "softmax"][id % 4],
    labels: [],
    submission: Math.floor(id / 12),
    read_bytes: String(4096 * (1 + (id % 9))),
    written_bytes: "4096",
    exact: id % 5 !== 0,
    beyond: null,
    duration_ns: 1000,
    accesses: [],
    access_count: 0,
    place: null,
  }));
  const edges = nodes.flatMap(({ id }) =>
    [id - 1 - (id % 3), id - 7].filter((from) => from >= 0).map((from, at) => ({ from, to: id, kind: at === 0 ? "RAW" : "WAR", bytes: String(4096 * (1 + (id % 7))), exact: true, ordered_by: "barrier", hazard: null, buffers: ["x"], buffer_count: 1 })),
  );
  const barriers = nodes.map(({ id, submission }) => ({ position: id, submission, command: id, need: id % 50 === 7 ? "needless" : "needed" }));
  const submissions = [...new Set(nodes.map(({ submission }) => submission))].map((number) => ({ number, queue: "queue 0", called_ns: "0", device_ns: null }));
  return { first: 0, node_count: count, nodes, edge_count: edges.length, edges, edges_left_out: 0, edges_outside: 0, hazard_count: 0, possible_hazard_count: 0, barrier_count: barriers.length, needless_count: 20, barriers, submissions, critical_path: null, cut_at: null, unknown: null, remarks: [] };
}

test("a saved page of a capture shows the same without a server", async () => {
  const file = join(temporaryFolder(), "capture.html");
  gapscope("view", "--html", file, CAPTURE);
  const page = await pages.openPage(pathToFileURL(file).href);
  await page.waitForSelector(`${CANVAS}[data-nodes]`);
  const { nodes, edges } = await data(page);
  expect([nodes, edges]).toEqual(["26", "40"]);
  expect(await page.locator(".figures").innerText()).toContain("20\ndispatches");
});
