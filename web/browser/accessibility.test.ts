// What axe-core, the usual checker of accessibility rules, says of the page in each of its states.

import axe from "axe-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TEXT } from "./known.ts";
import { closeBrowser, FIREFOX, openTrace, type Opened, scratch, traceOf, view, type Viewer } from "./product.ts";

let viewer: Viewer;
let opened: Opened;

beforeAll(async () => {
  viewer = await view(traceOf(scratch(), "known", TEXT));
});

afterAll(async () => {
  await closeBrowser();
  viewer?.stop();
});

afterEach(async () => {
  await opened.page.close();
});

/** The rules that are broken, each with the first places. */
async function broken(page: Opened["page"]): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}

describe.each([false, true])("accessibility, dark: %s", (dark) => {
  test.skipIf(FIREFOX && dark).each([
    ["the page as it opens", ""],
    ["kernels", "#p=kernels"],
    ["labels", "#p=labels"],
    ["dependencies", "#p=graph"],
    ["a comparison", "#p=compare&a=0:label:eager&z=0:label:compiled"],
    ["the recording", "#p=about"],
    ["details of work", "#e=dispatches.9&q=cos"],
    ["a selected range", "#s=1000000-9000000"],
  ])("of %s", async (_, hash) => {
    opened = await openTrace(viewer.url + hash, { dark });
    await opened.page.waitForFunction(() => !/loading|Comparing…|Folding|Asking for|Analysing/i.test(document.querySelector("#app")?.textContent ?? ""));
    expect(await broken(opened.page)).toEqual([]);
  });
});
