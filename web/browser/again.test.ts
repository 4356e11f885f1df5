// Tests views that are opened again after their server has ended: by a command, by a file, and as a saved page.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { LATE, RANKS, writeRanks, STEPS } from "./known-ranks.ts";
import { KNOWN } from "./known.ts";
import { download, gapscope, state, temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const known = writeTrace(folder, "known", KNOWN);
const pages = fixture();

const STATE = "#t=2800000-3400000&q=cos&c=cause&p=kernels";

async function isAsSaved(page: Page): Promise<void> {
  const { from, to } = await state(page);
  expect([from, to]).toEqual([2_800_000, 3_400_000]);
  expect(await page.locator(".tabs").getAttribute("data-shown")).toBe("kernels");
  expect(await page.locator('[data-colouring="cause"]').getAttribute("aria-checked")).toBe("true");
  expect(await page.locator("input[type=search]").inputValue()).toBe("cos");
}

test("a view is opened again by the command that the page shows", async () => {
  const viewer = await pages.serve(known);
  const first = await pages.open(viewer.url + STATE);
  await first.locator(".topbar button", { hasText: "Link" }).click();
  const command = await first.locator(".sharing-row code").nth(1).innerText();
  const argument = /^gapscope view '(.*)'$/.exec(command)?.[1];
  expect(argument).toBe(`${known}${STATE}`);
  await viewer.stop();
  await isAsSaved(await pages.open((await pages.serve(argument ?? "")).url));
});

test("a view is saved, moved with its trace, and opened again", async () => {
  const viewer = await pages.serve(known);
  const first = await pages.open(viewer.url + STATE);
  await first.locator(".topbar button", { hasText: "Link" }).click();
  const saved = join(folder, "moved.view.json");
  expect(await download(first, "Save this view", saved)).toBe("known.view.json");
  expect(JSON.parse(readFileSync(saved, "utf8"))).toMatchObject({ gapscope_view: 1, traces: [known], state: STATE.slice(1) });
  await isAsSaved(await pages.open((await pages.serve(saved)).url));
  // A saved page shows the same without a server.
  const file = join(folder, "saved.html");
  gapscope("view", "--html", file, saved);
  await isAsSaved(await pages.open(pathToFileURL(file).href));
});

test("the cause of the listed gaps and the compared instance are in the link", async () => {
  const page = await pages.open((await pages.serve(known)).url);
  await page.locator(".causes-table tbody tr", { hasText: "host late" }).click();
  await expect.poll(() => page.evaluate(() => location.hash)).toBe("#g=host-late");
  await page.reload();
  await page.waitForSelector('.gaps-panel[data-cause="host-late"][data-gaps]');
  await page.evaluate(() => (location.hash = "#p=compare&a=0:label:eager&z=0:label:compiled"));
  const stepper = page.locator(".stepper");
  await expect.poll(() => stepper.innerText()).toContain("instance 2 of 10");
  await page.locator("[aria-label='Next instance']").click();
  await expect.poll(() => page.evaluate(() => location.hash)).toContain("&i=3");
  await page.reload();
  await expect.poll(() => stepper.innerText()).toContain("instance 3 of 10");
  // An address without them clears both.
  await page.evaluate(() => (location.hash = ""));
  await page.waitForSelector('.gaps-panel[data-cause=""][data-gaps]');
});

test("two traces and their comparison fit in one saved page", async () => {
  const file = join(folder, "both.html");
  gapscope("view", "--html", file, known, writeTrace(folder, "other", KNOWN.replaceAll("name=sin ", "name=sine ")));
  const page = await pages.open(pathToFileURL(file).href);
  await page.waitForSelector("[data-what=dispatches]");
  expect(await page.locator(".verdict h1").allInnerTexts()).toEqual(["Host-bound known.gapscope", "Host-bound other.gapscope"]);
  expect(await page.locator(".by-kernel tbody tr", { hasText: "sine" }).innerText()).toMatch(/0 → 10/);
  // Labels of one trace can be compared, too.
  await page.selectOption("select[aria-label=Before]", "0:label:eager");
  await page.selectOption("select[aria-label=After]", "0:label:compiled");
  await page.locator(".compare-panel button[type=submit]").click();
  await expect.poll(() => page.locator("[data-what=dispatches] td").last().innerText()).toBe("0.25 × as many");
});

test("all ranks and their comparison fit in one saved page", async () => {
  const file = join(folder, "ranks.html");
  gapscope("report", "--html", file, writeRanks(folder));
  const page = await pages.open(`${pathToFileURL(file).href}#p=ranks`);
  await page.waitForSelector(`.ranks-panel[data-ranks="${RANKS}"]`);
  expect(await page.locator(".ranks-sentences").innerText()).toContain(`Rank ${LATE} arrived last`);
  await expect.poll(() => page.locator(".collective-waits .wait").count()).toBe(STEPS * (RANKS - 1));
  await page.locator(".each-verdict button", { hasText: "rank 1" }).click();
  await page.waitForSelector('.timeline.beside[data-trace="rank 0"]');
  await page.waitForSelector('.verdict[data-together="host-bound"]');
});
