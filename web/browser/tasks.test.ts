// Does five tasks of people who look for lost time, and counts the actions (keys, clicks, drags and typed texts) and the time of each.
// docs/view.md has the counts, which this test keeps true.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { writeRanks } from "./known-ranks.ts";
import { GAPS, KNOWN } from "./known.ts";
import { gapscope, state, temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const pages = fixture();
const known = writeTrace(folder, "known", KNOWN);
const DOCS = readFileSync(join(import.meta.dirname, "../../docs/view.md"), "utf8");

/** Counts the actions on a page. */
class Hands {
  actions = 0;
  private readonly started = performance.now();
  constructor(private readonly page: Page) {}

  private async does(action: () => Promise<unknown>): Promise<void> {
    this.actions += 1;
    await action();
  }
  key(key: string): Promise<void> {
    return this.does(() => this.page.keyboard.press(key));
  }
  click(selector: string): Promise<void> {
    return this.does(() => this.page.locator(selector).first().click());
  }
  /** Drags on the ruler between two parts of its width. */
  drag(from: number, to: number): Promise<void> {
    return this.does(async () => {
      const box = await this.page.locator("canvas.ruler").first().boundingBox();
      if (!box) throw new Error("there is no ruler");
      await this.page.mouse.move(box.x + box.width * from, box.y + 8);
      await this.page.mouse.down();
      await this.page.mouse.move(box.x + box.width * to, box.y + 8, { steps: 3 });
      await this.page.mouse.up();
    });
  }
  /** Compares the number of actions with the documented one, and prints the time. */
  done(task: string): void {
    console.log(`${task}: ${this.actions} actions, ${Math.round(performance.now() - this.started)} ms`);
    const row = DOCS.split("\n").find((line) => line.startsWith(`| ${task} |`));
    expect(row?.split("|")[2].trim()).toBe(String(this.actions));
  }
}

test("the longest gap and its cause", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  const hands = new Hands(page);
  await hands.key("n");
  const longest = Math.max(...GAPS.map(({ duration_us }) => duration_us)) * 1000;
  await expect.poll(() => page.locator(".gap-details").getAttribute("data-gap-ns")).toBe(String(longest));
  await expect.poll(() => page.locator(".details-panel h2").innerText()).toContain("host late");
  hands.done("the longest gap and its cause");
});

test("the most expensive kernel and its launches", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  const hands = new Hands(page);
  await hands.click('[data-tab="kernels"]');
  await hands.click(".tab-body tbody tr button");
  await expect.poll(async () => (await state(page)).found).toBe("10");
  hands.done("the most expensive kernel and its launches");
});

test("two ranges compared", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  const hands = new Hands(page);
  await hands.drag(0.1, 0.4);
  await hands.click('[data-tab="compare"]');
  await hands.click('.compare-panel button:text("use selection")');
  await hands.drag(0.6, 0.9);
  await hands.click('.compare-panel button:text("use selection") >> nth=1');
  await hands.click(".compare-panel button.primary");
  await expect.poll(() => page.locator(".compare-result tr[data-what]").count()).toBeGreaterThan(3);
  hands.done("two ranges compared");
});

test("the line behind a stall of an imported PyTorch trace", async () => {
  const trace = join(folder, "h100.gapscope");
  gapscope("import", join(import.meta.dirname, "../../fixtures/kineto/h100.json"), "-o", trace);
  const page = await pages.open((await pages.serve(trace)).url);
  const hands = new Hands(page);
  await hands.key("n");
  // This part of the trace has ranges in place of Python's frames.
  await expect.poll(() => page.locator(".gap-code").first().innerText()).toMatch(/_SingleProcessDataLoaderIter\.__next__\s+98\.5 %/);
  hands.done("the line behind a stall of an imported PyTorch trace");
});

test("the late rank", async () => {
  const page = await pages.open((await pages.serve(writeRanks(folder))).url);
  const hands = new Hands(page);
  await hands.click('[data-tab="ranks"]');
  await expect.poll(() => page.locator(".ranks-sentences, .rank-problems").first().innerText()).toMatch(/rank 2/i);
  hands.done("the late rank");
});
