// The head of the page says what the head of the report says.

import { beforeAll, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { gapscope, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const pages = fixture();
let viewer: Viewer;
let trace: string;

/** Phases, a lost device, an unused one, and work that starts before its call, in a part of a run that failed. */
function program(): string {
  const lines = [
    "manifest start_ns=0 end_ns=10s exit.code=3 sampling_mode=dispatch",
    "process id=1 pid=10",
    "thread process=1 thread=7 name=main",
    "device id=1 process=1 name=A uuid=aa lost=true clock.error_ns=1000",
    "device id=2 process=1 name=B uuid=bb clock.error_ns=1000",
    "queue id=1 device=1",
    "queue id=2 device=2",
    "label id=1 text=train",
    "label id=2 text=eval",
    "kernel id=1 process=1 name=work",
  ];
  for (let turn = 0; turn < 102; turn++) {
    const start = 1000 + turn * 10;
    const [label, busy] = turn < 50 ? [1, 9] : [2, 1];
    // Two calls seem to come after the start of their work.
    const call = turn < 100 ? `${start}ms` : `${start * 1000 + 5}us`;
    lines.push(`submission id=${turn} process=1 queue=1 thread=7 start_ns=${call} duration_ns=1us`);
    lines.push(`dispatch submission=${turn} queue=1 kernel=1 label=${label} start_ns=${start}ms duration_ns=${busy}ms`);
  }
  return lines.join("\n");
}

beforeAll(async () => {
  trace = writeTrace(temporaryFolder(), "head", program());
  viewer = await pages.serve(trace);
});

test("the head of the page has every sentence of the report's head, before or after the verdict as there", async () => {
  const page = await pages.open(viewer.url);
  const report = JSON.parse(gapscope("report", "--json", trace));
  const before = await page.locator(".verdict .doubts li").allInnerTexts();
  const notes = await page.locator(".verdict .verdict-notes .told").allInnerTexts();
  expect(before[0]).toBe("The program ended with exit code 3.");
  expect([...before.slice(1), ...notes]).toEqual(report.headline.map(({ sentence }: { sentence: string }) => sentence));
  expect(before[1]).toContain("contradict each other");
  expect(notes.join(" ")).toMatch(/Under train, .*Under eval, .*A: the device was lost.*never used: B/);
  expect(await page.locator(".verdict .verdict-notes .note").allInnerTexts()).toContain(report.warm_up.reason);
  if (process.env.GAPSCOPE_SCREENSHOTS) await page.screenshot({ path: `${process.env.GAPSCOPE_SCREENSHOTS}/head.png` });
  // The verdict leaves room for the timeline in a small window, too.
  await page.setViewportSize({ width: 1000, height: 700 });
  const height = await page.locator(".verdict").evaluate((element) => element.clientHeight);
  expect(height).toBeLessThan(300);
  if (process.env.GAPSCOPE_SCREENSHOTS) await page.screenshot({ path: `${process.env.GAPSCOPE_SCREENSHOTS}/head-small.png` });
});
