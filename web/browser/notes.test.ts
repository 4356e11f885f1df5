// Tests the reader's notes: written on the page, kept in the trace's folder, and carried into a saved page.

import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { afterEach, beforeAll, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { KNOWN } from "./known.ts";
import { gapscope, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const folder = temporaryFolder();
let trace: string;
let kept: string;
const pages = fixture();
let viewer: Viewer;

beforeAll(async () => {
  trace = writeTrace(folder, "known", KNOWN);
  kept = join(trace, "notes.json");
  viewer = await pages.serve(trace);
});

afterEach(() => {
  rmSync(kept, { force: true, recursive: true });
});

async function open(hash = "", url = viewer.url): Promise<Page> {
  const page = await pages.open(url + hash);
  await page.waitForFunction(() => !document.querySelector("#app")?.textContent?.includes("are still loading"));
  return page;
}

interface WrittenNotes {
  format: number;
  notes: { from_ns: number; to_ns: number | null; text: string }[];
}
const written = (): WrittenNotes => JSON.parse(readFileSync(kept, "utf8")) as WrittenNotes;
const flags = (page: Page) => page.locator(".timeline").first().getAttribute("data-notes");

async function note(page: Page, text: string): Promise<void> {
  await page.locator("canvas.tracks").focus();
  await page.keyboard.press("m");
  const box = page.getByRole("textbox", { name: "Text of the note" });
  // A note can be added only after the notes have loaded.
  await page.getByRole("button", { name: "New note" }).waitFor();
  if (!(await box.isVisible())) await page.keyboard.press("m");
  await state(page);
  const before = Number(await flags(page));
  await box.fill(text);
  await page.keyboard.press("Enter");
  await expect.poll(() => flags(page)).toBe(String(before + 1));
}

test("a note without a text is a bookmark, and can get one later", async () => {
  const page = await open("#t=1000000-2000000");
  await note(page, "");
  expect(written().notes).toEqual([{ from_ns: 1_500_000, to_ns: null, text: "bookmark" }]);
  expect(await page.locator(".notes li").innerText()).toMatch(/1\.500 ms\s+bookmark/);
  await page.getByRole("button", { name: /Change the note/ }).click();
  const box = page.getByRole("textbox", { name: "Text of the note" });
  expect(await box.inputValue()).toBe("");
  await box.fill("the first step");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".note-text").allInnerTexts()).toEqual(["the first step"]);
});

test("a note is written by the keyboard, kept beside the trace, changed and removed", async () => {
  const page = await open("#t=0-16000000&s=2500000-7100000");
  await note(page, "the host is late here");
  expect(written()).toEqual({ format: 1, notes: [{ from_ns: 2_500_000, to_ns: 7_100_000, text: "the host is late here" }] });
  await page.keyboard.press("Escape");
  await page.evaluate(() => (location.hash = "#t=1000000-2000000"));
  await expect.poll(async () => (await state(page)).from).toBe(1_000_000);
  await note(page, "a moment");
  expect(written().notes[0]).toEqual({ from_ns: 1_500_000, to_ns: null, text: "a moment" });
  // After a reload the note is there, and leads to its place.
  await page.goto("about:blank");
  await page.goto(`${viewer.url}#p=notes`);
  await expect.poll(() => flags(page)).toBe("2");
  await page.locator(".note-place", { hasText: "2.500 ms to 7.100 ms" }).click();
  expect((await state(page)).selection).toBe("2500000-7100000");
  await page.getByRole("button", { name: /Change the note at 2.500 ms/ }).click();
  await page.getByRole("textbox", { name: "Text of the note" }).fill("it is not");
  await page.getByRole("button", { name: "Keep" }).click();
  await expect.poll(() => page.locator(".note-text").allInnerTexts()).toEqual(["a moment", "it is not"]);
  expect(written().notes.map(({ text }) => text)).toEqual(["a moment", "it is not"]);
  // The removals come one after the other, because a note that is still listed could be removed twice.
  for (const left of ["1", "0"]) {
    await page.getByRole("button", { name: /Remove the note/ }).first().click();
    await expect.poll(() => flags(page)).toBe(left);
  }
  // The file of the notes is removed with the last note.
  expect(existsSync(kept)).toBe(false);
});

test("its flag on the ruler leads to it, and the search finds it", async () => {
  const page = await open("#t=0-16000000&s=4000000-6000000");
  await note(page, "look at this");
  await page.evaluate(() => (location.hash = "#t=0-16000000"));
  await expect.poll(async () => (await state(page)).selection).toBe("");
  const ruler = await page.locator("canvas.ruler").boundingBox();
  if (!ruler) throw new Error("no ruler");
  await page.mouse.move(ruler.x + ruler.width / 4 + 3, ruler.y + 6);
  await expect.poll(() => page.locator("canvas.ruler").getAttribute("title")).toBe("look at this");
  await page.mouse.down();
  await page.mouse.up();
  await expect.poll(async () => (await state(page)).selection).toBe("4000000-6000000");
  expect(await page.locator(".tabs").getAttribute("data-shown")).toBe("notes");
  await page.fill(".search input", "look at");
  await expect.poll(() => page.locator(".results [data-kind=Notes]").getAttribute("data-count")).toBe("1");
});

test("a note of another window is not overwritten", async () => {
  const page = await open("#p=notes");
  const { errors } = pages.opened;
  const other = await pages.open(`${viewer.url}#p=notes`);
  await note(other, "from the other");
  await other.close();
  await page.keyboard.press("m");
  await page.getByRole("textbox", { name: "Text of the note" }).fill("from this one");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.locator(".notes-panel > .problem").innerText()).toContain("changed in another window");
  expect(written().notes.map(({ text }) => text)).toEqual(["from the other"]);
  // The typed text is still in the form, and is saved beside the other note.
  await page.getByRole("button", { name: "Keep" }).click();
  await expect.poll(() => written().notes.length).toBe(2);
  errors.splice(0);
});

test("notes that cannot be read are left alone", async () => {
  mkdirSync(kept);
  const page = await open("#p=notes");
  await expect.poll(() => page.locator(".notes-panel").innerText()).toContain("it is not a regular file");
  expect(await page.getByRole("button", { name: "New note" }).count()).toBe(0);
});

test("a saved page shows notes, read only", async () => {
  const page = await open("#t=0-16000000&s=4000000-6000000");
  await note(page, "<b>for the others</b>");
  await page.close();
  const file = join(folder, "noted.html");
  gapscope("report", "--html", file, trace);
  const there = await open("#p=notes", pathToFileURL(file).href);
  expect(await flags(there)).toBe("1");
  expect(await there.locator(".note-text").innerText()).toBe("<b>for the others</b>");
  expect(await there.locator(".notes-panel").getByRole("button", { name: /New note|Change|Remove/ }).count()).toBe(0);
  await there.keyboard.press("m");
  expect(await there.locator(".note-form").isVisible()).toBe(false);
});
