// The page of a trace whose every number is known: what it draws, how it is moved, searched, compared and linked.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { busy_ns, COPIES, GAPS, idleBy, KERNELS, KNOWN, WORK } from "./known.ts";
import { FIREFOX, HeldRequests, loaded, moved, point, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const pages = fixture();
let viewer: Viewer;
const GIVEN = WORK.length + COPIES.length;

beforeAll(async () => {
  viewer = await pages.serve(writeTrace(temporaryFolder(), "known", KNOWN));
});

async function open(hash = "", options = {}): Promise<Page> {
  return pages.open(viewer.url + hash, options);
}

describe("the page", () => {
  test("draws every row of the trace, overlapping work in lanes", async () => {
    const page = await open();
    await loaded(page);
    expect(await page.locator('[data-track="q1.work"]').getAttribute("data-lanes")).toBe("1");
    expect(await page.locator('[data-track="q2.work"]').getAttribute("data-lanes")).toBe("2");
    const { events, from, to } = await state(page);
    expect(events).toBeGreaterThanOrEqual(GIVEN + GAPS.length * 4);
    expect(from).toBeLessThanOrEqual(0);
    expect(to).toBeGreaterThanOrEqual(16e6);
  });

  test("names every counter with its unit and source", async () => {
    const page = await open();
    await loaded(page);
    const track = (id: string) => page.locator(`[data-track="${id}"]`);
    expect(await track("q1.depth").innerText()).toContain("submissions outstanding");
    expect(await track("g0.memory").innerText()).toContain("device memory allocated");
    // A track says that it loads while finer data for its width comes.
    await expect.poll(() => track("c1.counter").innerText()).toBe("memory clock\nhertz, made up");
    expect(await track("c2.counter").getAttribute("title")).toBe("load · percent, made up");
    expect(await page.getByRole("button", { name: "host", exact: true }).count()).toBe(1);
  });

  test("says the verdict with evidence that sums to all of the time", async () => {
    const page = await open();
    expect(await page.locator(".verdict").getAttribute("data-verdict")).toBe("host-bound");
    const shares = await page.locator(".parts [data-share]").evaluateAll((parts) => parts.map((part) => Number(part.getAttribute("data-share"))));
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 3);
    const host = Number(await page.locator('.parts [data-part="host"]').getAttribute("data-share"));
    expect(host).toBeCloseTo((idleBy("host-late") + idleBy("submit-call")) / 14.62e6, 3);
    expect(await page.locator(".facts .lost").innerText()).toContain("3");
  });

  test("zooms by the wheel around the pointer, and moves", async () => {
    const page = await open("#t=0-16000000");
    const place = await point(page, "q1.work", 4e6);
    await page.mouse.move(place.x, place.y);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    const seen = async (): Promise<number> => state(page).then(({ from, to }) => to - from);
    await expect.poll(seen).toBeLessThan(8e6);
    const near = await state(page);
    const box = await page.locator("canvas.tracks").boundingBox();
    const under = near.from + ((place.x - (box?.x ?? 0)) / (box?.width ?? 1)) * (near.to - near.from);
    expect(Math.abs(under - 4e6)).toBeLessThan(20_000);
    await page.keyboard.down("Shift");
    await page.mouse.wheel(0, 200);
    await page.keyboard.up("Shift");
    await expect.poll(async () => (await state(page)).from).toBeGreaterThan(near.from);
    const moved = await state(page);
    expect(moved.to - moved.from).toBeCloseTo(near.to - near.from, 0);
    await page.mouse.down();
    await page.mouse.move(place.x + 100, place.y, { steps: 4 });
    await page.mouse.up();
    expect((await state(page)).from).toBeLessThan(moved.from);
  });

  test("is moved by the keyboard alone, and goes back", async () => {
    const page = await open();
    const whole = await state(page);
    await moved(page, "w");
    // A key moves the view smoothly.
    await expect.poll(async () => (await state(page)).to - (await state(page)).from).toBeCloseTo((whole.to - whole.from) * 0.6, -2);
    const near = await state(page);
    // Steps within half a second are one gesture.
    await page.waitForTimeout(600);
    await page.keyboard.press("d");
    await expect.poll(async () => (await state(page)).from - near.from).toBeCloseTo((near.to - near.from) * 0.2, -2);
    await page.keyboard.press("b");
    expect((await state(page)).from).toBeCloseTo(near.from, 0);
    await page.keyboard.press("f");
    expect((await state(page)).from).toBeCloseTo(whole.from, 0);
    await page.keyboard.press("?");
    expect(await page.locator("dialog.help").isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    expect(await page.locator("dialog.help").isVisible()).toBe(false);
  });

  test("shows a tooltip about the event under the pointer", async () => {
    const page = await open("#t=3000000-3400000");
    await loaded(page);
    const place = await point(page, "q1.work", 3_150_000);
    await page.mouse.move(place.x, place.y);
    await page.waitForSelector(".tooltip:not([hidden])");
    expect((await state(page)).hovered).toBe("dispatches.9");
    expect(await page.locator(".tooltip").innerText()).toMatch(/cos\s+100 µs/);
  });

  test("shows the details of clicked work, with an arrow from its call", async () => {
    const page = await open("#t=2800000-3400000");
    await loaded(page);
    const place = await point(page, "q1.work", 3_150_000);
    await page.mouse.click(place.x, place.y);
    await page.waitForSelector('.details-panel[data-row="dispatches.9"]');
    const text = await page.locator(".details-panel").innerText();
    for (const part of ["cos", "100 µs", "eager", "groups x", "64", "Submitted by", "Made GPU"]) expect(text).toContain(part);
    expect(text).toMatch(/y\s+read\s+4\.00 KiB/);
    // There is one arrow from the call, one from sin, whose output cos reads, and one to exp, which reads that of cos.
    await expect.poll(async () => (await state(page)).arrows).toBeGreaterThanOrEqual(3);
    await page.locator('[data-relation="submitted-by"] button').first().click();
    await page.waitForSelector('.details-panel[data-row^="host_calls."]');
    expect(await page.locator(".details-panel").innerText()).toContain("submit");
    expect((await state(page)).event).toMatch(/^host_calls\./);
  });

  test("lists gaps by cost with their planted causes", async () => {
    const page = await open();
    expect(await page.locator(".gaps-panel").getAttribute("data-gaps")).toBe(String(GAPS.length));
    const causes = await page.locator(".causes-table tbody tr").allInnerTexts();
    expect(causes[0]).toContain("host late");
    expect(causes[0]).toContain(`${(idleBy("host-late") / 1e6).toFixed(2)} ms`);
    expect(await page.locator(".gaps-list .table").getAttribute("data-rows")).toBe(String(GAPS.length));
    await page.locator(".gaps-list tbody tr").first().click();
    await page.waitForSelector('.details-panel[data-row^="gaps."]');
    expect(await page.locator(".gap-details").getAttribute("data-gap-ns")).toBe("600000");
    expect(await page.locator(".details-panel").innerText()).toContain("host late");
  });

  test("begins with the first visible gap", async () => {
    const page = await open();
    await loaded(page);
    const at = async (): Promise<number> => Number(await page.locator("#app").getAttribute("data-gap"));
    await page.locator("canvas.tracks").focus();
    const box = await page.locator("canvas.tracks").boundingBox();
    if (!box) throw new Error("no tracks");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 5);
    const cursor = async (): Promise<string> => page.locator(".cursor").innerText();
    let before = await cursor();
    for (const gap of GAPS.slice(0, 2)) {
      await page.keyboard.press("j");
      await expect.poll(at).toBe(gap.start_us * 1000);
      // The time under the resting pointer has changed.
      await expect.poll(cursor).not.toBe(before);
      before = await cursor();
    }
  });

  test("zooms to a whole gap, and updates what is under a resting pointer", async () => {
    const page = await open("#t=0-16000000");
    await loaded(page);
    // Picks the longest gap, and the part of it with the cause that the panel names.
    await page.locator(".gaps-list tbody tr").first().click();
    await page.waitForSelector('.details-panel[data-row^="gaps."]');
    const start = Number(await page.locator("#app").getAttribute("data-gap"));
    const holdsAll = async (): Promise<boolean> => {
      const { from, to } = await state(page);
      return from <= start && to >= start + 600_000 && to - from < 1_000_000;
    };
    await page.keyboard.press("e");
    expect(await holdsAll()).toBe(true);
    await page.locator(".details-panel header button", { hasText: "Zoom" }).click();
    expect(await holdsAll()).toBe(true);
    // The pointer rests while the event under it moves away.
    const place = await point(page, "q1.work", start - 20_000);
    await page.mouse.move(place.x, place.y);
    await expect.poll(async () => (await state(page)).hovered).toMatch(/^dispatches/);
    const [cursor, hovered] = [await page.locator(".cursor").innerText(), (await state(page)).hovered];
    for (const key of ["n", "e"]) await page.keyboard.press(key);
    await expect.poll(async () => page.locator(".cursor").innerText()).not.toBe(cursor);
    await expect.poll(async () => (await state(page)).hovered).not.toBe(hovered);
    const { from, to } = await state(page);
    const box = await page.locator("canvas.tracks").boundingBox();
    const under_ms = (from + ((place.x - (box?.x ?? 0)) / (box?.width ?? 1)) * (to - from)) / 1e6;
    expect(Math.abs(Number.parseFloat(await page.locator(".cursor").innerText()) - under_ms)).toBeLessThan(0.01);
  });

  test("does not deny gaps before the findings arrive", async () => {
    const page = await open();
    const findings = await HeldRequests.hold(page, "**/findings*");
    await page.reload();
    await page.waitForSelector("#app[data-full-draw]");
    expect(await page.locator(".gaps-panel").innerText()).toMatch(/Loading|Analysing/);
    expect(await page.locator(".gaps-panel").innerText()).not.toContain("never idle");
    await findings.letAllGo();
    await expect.poll(async () => page.locator(".gaps-panel").getAttribute("data-gaps")).toBe(String(GAPS.length));
  });

  test("jumps from gap to gap in time, of one cause too", async () => {
    const page = await open();
    await loaded(page);
    await page.locator(".gaps-list thead button", { hasText: "At" }).click();
    await page.locator(".gaps-list thead button", { hasText: "At" }).click();
    await page.locator(".gaps-list tbody tr").first().click();
    const at = async (): Promise<number> => Number(await page.locator("#app").getAttribute("data-gap"));
    await expect.poll(at).toBe(GAPS[0].start_us * 1000);
    await page.keyboard.press("j");
    await expect.poll(at).toBe(GAPS[1].start_us * 1000);
    await page.keyboard.press("j");
    await expect.poll(at).toBe(GAPS[2].start_us * 1000);
    await page.keyboard.press("k");
    await expect.poll(at).toBe(GAPS[1].start_us * 1000);
    // By cost, the longest gap comes first.
    const byCost = [...GAPS].sort((a, b) => b.duration_us - a.duration_us || a.start_us - b.start_us);
    const costs = byCost.findIndex((gap) => gap === GAPS[1]);
    await page.keyboard.press("n");
    await expect.poll(at).toBe(byCost[costs + 1].start_us * 1000);
    await page.keyboard.press("p");
    await page.keyboard.press("p");
    await expect.poll(at).toBe(byCost[costs - 1].start_us * 1000);
    await page.locator(".causes-table tbody tr", { hasText: "launch latency" }).click();
    expect(await page.locator(".gaps-panel").getAttribute("data-cause")).toBe("launch-latency");
    expect(await page.locator(".gaps-list .table").getAttribute("data-rows")).toBe(String(GAPS.length));
    // The gaps of a cause are sorted by its time in each, and shown as a whole.
    const first = page.locator(".gaps-list tbody tr").first();
    expect(await first.innerText()).toMatch(/launch latency\s+50\.0 µs\s+(600|380) µs/);
    await first.click();
    await expect.poll(async () => page.locator(".details-panel h2").innerText()).toContain("launch latency");
    await expect.poll(async () => page.locator(".details-panel .big").innerText()).toMatch(/^(600|380) µs from .*, 50\.0 µs of it in this part$/);
    const { from, to } = await state(page);
    expect(to - from).toBeGreaterThan(1_400_000);
  });

  test("measures a selected range as the analysis does", async () => {
    const page = await open("#t=0-16000000");
    await loaded(page);
    const ruler = await page.locator("canvas.ruler").boundingBox();
    if (!ruler) throw new Error("no ruler");
    const x = (ns: number): number => ruler.x + (ns / 16e6) * ruler.width;
    await page.mouse.move(x(2.5e6), ruler.y + 10);
    await page.mouse.down();
    await page.mouse.move(x(9.1e6), ruler.y + 10, { steps: 3 });
    await page.mouse.up();
    const [from, to] = (await state(page)).selection.split("-").map(Number);
    expect(from).toBeGreaterThan(2.4e6);
    expect(to).toBeLessThan(9.2e6);
    const share = page.locator(".device-share");
    await expect.poll(async () => Math.abs(Number(await share.getAttribute("data-busy-ns")) - busy_ns(from, to))).toBeLessThanOrEqual(2);
    const idle = Number(await share.getAttribute("data-idle-ns"));
    expect(Math.abs(idle + busy_ns(from, to) - (to - from))).toBeLessThanOrEqual(4);
    // The server analyses the same range, and also knows its bytes.
    await page.waitForSelector(".selection-panel [data-bytes]");
    expect(await page.locator(".selection-panel [data-bytes]").getAttribute("data-bytes")).toBe(String(COPIES[0].bytes + COPIES[1].bytes));
    const answer = await page.evaluate(async ([from, to]) => (await (await fetch(`api/t/0/range?from=${from}&to=${to}`)).json()) as { gaps: { cause: string; total_ns: number }[] }, [from, to]);
    for (const { cause, total_ns } of answer.gaps) {
      const shown = Number(await page.locator(`.selection-panel [data-cause="${cause}"]`).getAttribute("data-total-ns"));
      expect(Math.abs(shown - total_ns)).toBeLessThanOrEqual(20 * 2);
    }
    await page.keyboard.press("Escape");
    expect((await state(page)).selection).toBe("");
  });

  test("searches kernels and labels by regular expressions", async () => {
    const page = await open();
    await page.fill("input[type=search]", "^(sin|exp)$");
    await expect.poll(async () => (await state(page)).found).toBe("20");
    const told = async (): Promise<string> => page.locator(".search-problem").innerText();
    await expect.poll(told).toBe("20 found");
    await page.keyboard.press("Enter");
    await expect.poll(told).toBe("1 of 20");
    await page.keyboard.press("Enter");
    await expect.poll(told).toBe("2 of 20");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.press("Shift+Enter");
    await expect.poll(told).toBe("20 of 20");
    // The tables follow the search.
    await page.locator('[data-tab="kernels"]').click();
    await expect.poll(async () => page.locator(".tab-body .table").getAttribute("data-rows")).toBe("2");
    await page.fill("input[type=search]", "compiled");
    await expect.poll(async () => (await state(page)).found).toBe("10");
    await page.fill("input[type=search]", "sin(");
    await expect.poll(async () => page.locator(".search-problem").innerText()).toContain("not a regular expression");
    expect(await page.locator("input[type=search]").getAttribute("aria-invalid")).toBe("true");
    await page.fill("input[type=search]", "");
    await expect.poll(async () => (await state(page)).found).toBe("");
  });

  test("colours work by kernel, label or not at all", async () => {
    const page = await open("#t=1000000-12000000");
    await loaded(page);
    const colour = async (track: string, ns: number): Promise<string> => {
      await state(page);
      const place = await point(page, track, ns);
      return page.evaluate(({ x, y }) => {
        const canvas = document.querySelector<HTMLCanvasElement>("canvas.tracks");
        const box = canvas?.getBoundingClientRect();
        if (!canvas || !box) return "";
        return [...(canvas.getContext("2d")?.getImageData((x - box.left) * devicePixelRatio, (y - box.top + 5) * devicePixelRatio, 1, 1).data ?? [])].join();
      }, place);
    };
    const sin = 2_050_000;
    const cos = 2_150_000;
    expect(await colour("q1.work", sin)).not.toBe(await colour("q1.work", cos));
    await page.locator('[data-colouring="label"]').click();
    await expect.poll(async () => (await colour("q1.work", sin)) === (await colour("q1.work", cos))).toBe(true);
    expect(await colour("q1.work", sin)).not.toBe(await colour("q1.work", 11_060_000));
    await page.locator('[data-colouring="cause"]').click();
    await expect.poll(async () => (await colour("q1.work", sin)) === (await colour("q1.work", 11_060_000))).toBe(true);
    expect(await page.locator('[data-colouring="cause"]').getAttribute("aria-checked")).toBe("true");
  });

  test("sorts the kernels, and filters by a click", async () => {
    const page = await open("#p=kernels");
    const names = async (): Promise<string[]> => (await page.locator(".tab-body tbody tr td:first-child").allInnerTexts()).map((text) => text.trim());
    expect((await names()).length).toBe(5);
    expect((await names())[0]).toBe("fused");
    await page.locator("thead button", { hasText: "Kernel" }).click();
    expect(await names()).toEqual(["cos", "exp", "fused", "log", "sin"]);
    await page.locator("thead button", { hasText: "Kernel" }).click();
    expect((await names())[0]).toBe("sin");
    await page.locator("tbody tr", { hasText: "log" }).click();
    await expect.poll(async () => (await state(page)).found).toBe("10");
  });

  test("is found again by its link", async () => {
    const first = await open("#t=2000000-6000000");
    await loaded(first);
    const place = await point(first, "q1.work", 3_250_000);
    await first.mouse.click(place.x, place.y);
    await first.waitForSelector(".details-panel[data-row^=dispatches]");
    await first.fill("input[type=search]", "exp");
    await first.locator('[data-tab="labels"]').click();
    await first.locator('[data-colouring="label"]').click();
    await expect.poll(() => first.url()).toContain("c=label");
    await expect.poll(() => first.url()).toContain("e=dispatches");
    const [link, was] = [first.url(), await state(first)];
    await first.close();
    const second = await pages.open(link);
    await expect.poll(async () => (await state(second)).event).toBe(was.event);
    const now = await state(second);
    expect([now.from, now.to]).toEqual([was.from, was.to]);
    await expect.poll(async () => (await state(second)).found).toBe("10");
    expect(await second.locator(".tabs").getAttribute("data-shown")).toBe("labels");
  });

  test("shows another link, and never overwrites one that it is still reading", async () => {
    const page = await open();
    await loaded(page);
    const rows = await HeldRequests.hold(page, "**/rows/**");
    await page.locator('[data-tab="kernels"]').click();
    await page.evaluate(() => (location.hash = "#e=dispatches.0&p=graph"));
    // This is longer than the address waits before it follows the tab.
    await page.waitForTimeout(600);
    expect(new URL(page.url()).hash).toBe("#e=dispatches.0&p=graph");
    await rows.letAllGo();
    await page.waitForSelector('.details-panel[data-row="dispatches.0"]');
    expect(await page.locator(".tabs").getAttribute("data-shown")).toBe("graph");
    await page.evaluate(() => (location.hash = "#p=labels"));
    await expect.poll(async () => (await state(page)).event).toBe("");
    await page.locator('[data-tab="kernels"]').click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#p=kernels");
  });

  test("goes to an event of a track that is still loading", async () => {
    const page = await open("#e=dispatches.0");
    const tracks = await HeldRequests.hold(page, "**/track/**");
    const row = page.waitForResponse("**/rows/**");
    await page.reload();
    await (await row).finished();
    // The page has taken the row, and waits for its track.
    await state(page);
    await tracks.letAllGo();
    await page.waitForSelector('.details-panel[data-row="dispatches.0"]');
  });

  test("shows the selection and the graph in the other theme", async () => {
    const page = await open("#s=1000000-12000000&p=graph");
    const colours = (): Promise<string[]> =>
      page.evaluate(() => [
        ...[...document.querySelectorAll(".range-kernels .swatch")].map((swatch) => getComputedStyle(swatch).backgroundColor),
        ...[...document.querySelectorAll(".graph .cost")].slice(0, 1).map((cost) => getComputedStyle(cost).fill),
      ]);
    await expect.poll(async () => (await colours()).length).toBe(KERNELS.length + 2);
    await page.waitForSelector(".selection-panel [data-bytes]");
    const before = await colours();
    await page.locator("[aria-label='Change between light and dark']").click();
    // Every colour has changed but that of transfers, which is the same everywhere.
    await expect.poll(async () => (await colours()).filter((colour, at) => colour === before[at])).toEqual(["rgb(112, 200, 144)"]);
    const after = await colours();
    await page.reload();
    await page.waitForSelector("#app[data-full-draw]");
    await expect.poll(colours).toEqual(after);
  });

  test.skipIf(FIREFOX)("follows the system's light or dark, and keeps another choice", async () => {
    const page = await open("", { dark: true });
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.locator("[aria-label='Change between light and dark']").click();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await page.reload();
    await page.waitForSelector("#app[data-full-draw]");
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
  });

  test("aligns equal work of two labels on one scale", async () => {
    const page = await open("#p=compare");
    await page.selectOption("select[aria-label=Before]", "0:label:eager");
    await page.selectOption("select[aria-label=After]", "0:label:compiled");
    await page.locator("button", { hasText: "Compare" }).last().click();
    await page.waitForSelector("[data-what=dispatches]");
    expect(Number(await page.locator("[data-what=dispatches]").getAttribute("data-ratio"))).toBeCloseTo(4, 3);
    expect(await page.locator("[data-what=dispatches] td").last().innerText()).toBe("0.25 × as many");
    expect(await page.locator(".unlike").count()).toBe(0);
    // The tables list changes by kernel and by cause.
    const changed = await page.locator(".by-kernel tbody tr").allInnerTexts();
    expect(changed.map((row) => row.split(/\s+/)[0]).sort()).toEqual([...KERNELS].sort());
    expect(changed.find((row) => row.startsWith("fused"))).toMatch(/0 → 1\s+–\s+120 µs\s+\+120 µs\s+new/);
    expect(changed.find((row) => row.startsWith("sin"))).toMatch(/1 → 0\s+100 µs\s+–\s+−100 µs\s+none/);
    expect(await page.locator(".by-cause tbody tr").first().innerText()).toContain("host late");
    expect(await page.locator(".verdict h1").count()).toBe(2);
    expect(await page.locator(".compared.before").getAttribute("data-stretch-ns")).toBe("400000");
    expect(await page.locator(".compared.after").getAttribute("data-stretch-ns")).toBe("120000");
    // The second instances of both labels begin at the same pixel.
    const apart = async (): Promise<number> => (await state(page, ".compared.after")).from - (await state(page, ".compared.before")).from;
    await expect.poll(apart).toBeCloseTo(11_500_000 - 2_000_000, 0);
    const [before, after] = [await state(page, ".compared.before"), await state(page, ".compared.after")];
    expect(after.to - after.from).toBeCloseTo(before.to - before.from, 0);
    await moved(page, "w");
    const [nearer, with_it] = [await state(page, ".compared.before"), await state(page, ".compared.after")];
    expect(nearer.to - nearer.from).toBeLessThan(before.to - before.from);
    expect(with_it.to - with_it.from).toBeCloseTo(nearer.to - nearer.from, 0);
    await page.locator("[aria-label='Next instance']").click();
    await expect.poll(apart).toBeCloseTo(12_000_000 - 3_000_000, 0);
    await page.locator("button", { hasText: "Back to one timeline" }).click();
    expect(await page.locator(".timeline").count()).toBe(1);
  });

  test("compares two selected ranges", async () => {
    const page = await open("#t=0-16000000&s=1000000-2000000&p=compare");
    await page.locator("button", { hasText: "use selection" }).first().click();
    const ruler = await page.locator("canvas.ruler").boundingBox();
    if (!ruler) throw new Error("no ruler");
    // The range ends between dispatches, because a browser may round to whole pixels.
    await page.mouse.move(ruler.x + (ruler.width * 10.9) / 16, ruler.y + 8);
    await page.mouse.down();
    await page.mouse.move(ruler.x + (ruler.width * 11.9) / 16, ruler.y + 8, { steps: 3 });
    await page.mouse.up();
    await page.locator("button", { hasText: "use selection" }).last().click();
    await page.locator("button", { hasText: "Compare" }).last().click();
    await page.waitForSelector("[data-what=dispatches]");
    expect(Number(await page.locator("[data-what=dispatches]").getAttribute("data-ratio"))).toBeCloseTo(2, 3);
    // No label says that the two ranges did equal work, and no kernel is in both.
    expect(await page.locator(".unlike").innerText()).toBe("Not the same work: none of 5 kernels is in both.");
    expect(await page.locator("[data-what=dispatches] td").last().innerText()).toBe("–");
  });

  test("draws the folded graph of dependencies", async () => {
    const page = await open("#p=graph");
    await page.waitForSelector(".graph svg");
    expect(Number(await page.locator(".graph-panel").getAttribute("data-nodes"))).toBeGreaterThanOrEqual(5);
    expect(Number(await page.locator(".graph-panel").getAttribute("data-edges"))).toBeGreaterThanOrEqual(3);
    expect(await page.locator(".graph .node").count()).toBeLessThanOrEqual(150);
    await page.locator(".graph .node", { hasText: "cos" }).first().click();
    await expect.poll(async () => (await state(page)).found).toBe("10");
  });

  test("keeps how far the panels are scrolled", async () => {
    const page = await open();
    const list = page.locator(".gaps-list .table");
    await expect.poll(() => list.getAttribute("data-rows")).toBe(String(GAPS.length));
    await list.evaluate((table) => table.scrollTo(0, 60));
    await page.locator('[data-tab="kernels"]').click();
    await page.locator('[data-tab="gaps"]').click();
    await expect.poll(() => list.evaluate(({ scrollTop }) => scrollTop)).toBe(60);
  });

  test("keeps the keyboard on a row that is picked", async () => {
    const page = await open("#p=kernels");
    const focused = (): Promise<string | undefined> => page.evaluate(() => document.activeElement?.closest("tr")?.querySelector("td")?.textContent);
    await page.locator(".tab-body tbody button", { hasText: "sin" }).press("Enter");
    await expect.poll(async () => (await state(page)).found).toBe("10");
    await expect.poll(focused).toBe("sin");
  });

  test("can be used without a mouse and names its parts", async () => {
    const page = await open();
    await page.locator('[data-tab="gaps"]').focus();
    await page.keyboard.press("ArrowRight");
    expect(await page.locator(".tabs").getAttribute("data-shown")).toBe("kernels");
    expect(await page.locator("[role=tabpanel]").getAttribute("aria-labelledby")).toBe("tab-kernels");
    const canvas = page.locator("canvas.tracks");
    await canvas.focus();
    const before = await state(page);
    await page.keyboard.press("ArrowRight");
    expect((await state(page)).from).toBeGreaterThan(before.from);
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, canvas, table")].filter((element) => {
        const named = element.getAttribute("aria-label") ?? element.getAttribute("aria-labelledby") ?? element.textContent?.trim();
        return !named && element.getAttribute("aria-hidden") !== "true" && !element.closest("label");
      }).length,
    );
    expect(unnamed).toBe(0);
  });

  test("fits a small window", async () => {
    const page = await open("", { width: 640, height: 560 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(640);
    const box = await page.locator("canvas.tracks").boundingBox();
    expect(box?.height ?? 0).toBeGreaterThan(60);
  });
});
