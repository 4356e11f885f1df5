// Tests that nothing important is cut in windows of usual sizes, even with long names.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { writeRanks } from "./known-ranks.ts";
import { KNOWN } from "./known.ts";
import { temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
const SIZES = [
  [1000, 720],
  [1280, 800],
  [1600, 900],
] as const;
const pages = fixture();

/** Returns the texts of elements that are cut, by their own edges or by those of a container. */
const cut = (page: Page, selector: string, inside: string): Promise<string[]> =>
  page.evaluate(
    ([selector, inside]) => {
      const { left, right } = (document.querySelector(inside) as Element).getBoundingClientRect();
      const isCut = (element: Element): boolean => {
        const box = element.getBoundingClientRect();
        return box.width === 0 || box.left < left || box.right > right + 0.5 || element.scrollWidth > element.clientWidth + 1;
      };
      return [...document.querySelectorAll(selector)].filter(isCut).map((element) => element.textContent ?? "");
    },
    [selector, inside],
  );

test("long labels push no figure of a comparison and no clock error out of sight", async () => {
  const long = (name: string): string => `text="## DistributedDataParallel.forward of the model that is trained, ${name} ##"`;
  const viewer = await pages.serve(writeTrace(folder, "long", KNOWN.replace("text=eager", long("eager")).replace("text=compiled", long("compiled"))));
  const page = await pages.open(viewer.url);
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await expect.poll(() => page.locator(".facts").innerText()).toMatch(/Clock error\s+± 100 ns(.|\n)*Not recorded\s+3/);
    expect(await page.locator(".facts", { hasText: "Sampling" }).getByText("Sampling").isVisible(), `at ${width} px`).toBe(width > 1080);
    expect(await cut(page, ".facts div:not(.spare)", ".verdict"), `at ${width} px`).toEqual([]);
  }
  await page.locator('[data-tab="compare"]').click();
  await page.locator(".compare-panel button[type=submit]").click();
  await page.waitForSelector("[data-what=dispatches]");
  for (const side of ["Before", "After"]) {
    const select = page.locator(`select[aria-label=${side}]`);
    const chosen = await select.evaluate((select) => (select as HTMLSelectElement).selectedOptions[0].textContent);
    expect(chosen).toContain("DistributedDataParallel.forward of the model that is trained");
    expect(await select.getAttribute("title")).toBe(chosen);
  }
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await expect.poll(() => cut(page, ".figures-split :is(th, td.number)", ".compare-result"), { message: `at ${width} px` }).toEqual([]);
    const [sentences, figures] = await Promise.all(["div", "table"].map((element) => page.locator(`.figures-split > ${element}`).boundingBox()));
    expect((sentences?.y ?? 0) < (figures?.y ?? 0), `at ${width} px`).toBe(width <= 1400);
  }
});

test("all tabs and the verdict of each rank are visible", async () => {
  const viewer = await pages.serve(writeRanks(folder));
  const page = await pages.open(`${viewer.url}#p=ranks`);
  await page.waitForSelector(".ranks-table tbody tr");
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await expect.poll(() => cut(page, ".tab-list button:not([hidden])", ".tab-list"), { message: `at ${width} px` }).toEqual([]);
    await expect.poll(() => cut(page, ".ranks-table td", ".ranks-table"), { message: `at ${width} px` }).toEqual([]);
  }
});
