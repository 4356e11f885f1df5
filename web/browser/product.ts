// Runs the product from outside: its commands, traces made for a test, and its page in a browser.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { copyFileSync, createReadStream, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize, resolve } from "node:path";
import { pipeline } from "node:stream";
import { type Browser, chromium, firefox, type Page, type Route } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "../..");
const TARGET = resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target");

/** Returns the path of a program of the build under test. */
export function built(path: string): string {
  const file = join(TARGET, process.env.GAPSCOPE_PROFILE ?? "debug", path);
  if (!existsSync(file)) throw new Error(`${file} is not there: \`cargo xtask test\` builds it`);
  return file;
}

/** Makes a folder that is removed when the tests end. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gapscope-page-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function gapscope(...args: string[]): string {
  return execFileSync(built("gapscope"), args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Writes the trace that a text describes into the folder `named`. */
export function writeTrace(folder: string, name: string, text: string, named = `${name}.gapscope`): string {
  const source = join(folder, `${name}.txt`);
  const trace = join(folder, named);
  writeFileSync(source, text);
  execFileSync(built("examples/from_text"), [source, trace], { stdio: "pipe" });
  return trace;
}

/** Writes a large made-up trace. */
export function writeSyntheticTrace(folder: string, dispatches: number, name = "synthetic"): string {
  const trace = join(folder, `${name}.gapscope`);
  execFileSync(built("examples/synthetic"), ["--dispatches", String(dispatches), trace], { stdio: "pipe" });
  return trace;
}

/** The folder in which servers keep preferences, empty before the tests. */
export const STATE = temporaryFolder();

export interface Viewer {
  url: string;
  /** Stops the server; resolves when it has ended. */
  stop: () => Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** Starts a command that prints the address of a page. */
export function startServer(args: string[], env: Record<string, string> = {}, program = built("gapscope")): Promise<Viewer> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, XDG_STATE_HOME: STATE, ...env } });
  running.add(child);
  const ended = new Promise<void>((done) => child.on("exit", () => done()));
  return new Promise((done, failed) => {
    let said = "";
    const read = (text: Buffer): void => {
      said += text.toString();
      const url = /http:\/\/127\.0\.0\.1:\d+\/\S+/.exec(said)?.[0];
      if (!url) return;
      own.add(new URL(url).origin);
      done({
        url,
        stop: () => {
          running.delete(child);
          child.kill("SIGINT");
          return ended;
        },
      });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => failed(new Error(`gapscope ${args.join(" ")} ended with ${code}: ${said}`)));
  });
}

export function view(...traces: string[]): Promise<Viewer> {
  return startServer(["view", "--no-open", ...traces]);
}

let shared: Promise<Browser> | undefined;

/** Whether the tests run in Mozilla's Firefox by WebDriver BiDi (GAPSCOPE_BROWSER=firefox) instead of in Chromium. */
export const FIREFOX = process.env.GAPSCOPE_BROWSER === "firefox";

export function browser(): Promise<Browser> {
  shared ??= FIREFOX
    ? firefox.launch({ channel: "moz-firefox", executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr" })
    : chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        // The root user of a container has no sandbox. Only our own pages are opened.
        args: ["--no-sandbox", "--disable-dev-shm-usage"],
      });
  return shared;
}

/** Clicks a button that saves a file, writes the file to `path`, and returns its suggested name. */
export async function download(page: Page, button: string, path: string): Promise<string> {
  const click = (): Promise<void> => page.locator("button", { hasText: button }).click();
  if (!FIREFOX) {
    const [saved] = await Promise.all([page.waitForEvent("download"), click()]);
    copyFileSync(await saved.path(), path);
    return saved.suggestedFilename();
  }
  // WebDriver BiDi reports no downloads, so the blob is kept and its link is not followed.
  await page.evaluate(() => {
    const addressOf = URL.createObjectURL.bind(URL);
    let made: Blob | MediaSource = new Blob();
    URL.createObjectURL = (of) => addressOf((made = of));
    HTMLAnchorElement.prototype.click = function (this: HTMLAnchorElement): void {
      const { download } = this;
      if (made instanceof Blob) void made.text().then((text) => (document.body.dataset.saved = JSON.stringify({ name: download, text })));
    };
  });
  await click();
  const saved = await page.waitForSelector("body[data-saved]").then((body) => body.getAttribute("data-saved"));
  const { name, text } = JSON.parse(saved ?? "{}") as { name: string; text: string };
  writeFileSync(path, text);
  return name;
}

export async function closeBrowser(): Promise<void> {
  await (await shared)?.close();
  shared = undefined;
}

export interface Opened {
  page: Page;
  /** The requests that were not to loopback; each was aborted. */
  foreign: string[];
  /** The errors of the page. */
  errors: string[];
}

/** The origins of our own servers. */
const own = new Set<string>();

/** With GAPSCOPE_PAGE=1, serves the page from web/dist instead of from the command, so that a change needs no new build of the command. */
export async function replacePage(page: Page): Promise<void> {
  if (process.env.GAPSCOPE_PAGE !== "1") return;
  const dist = join(ROOT, "web/dist");
  await page.route(/^http:[^?#]*\/(app\.js|app\.css)?([?#].*)?$/, (route) => {
    const { origin, pathname } = new URL(route.request().url());
    return own.has(origin) ? route.fulfill({ path: join(dist, pathname.split("/").at(-1) || "index.html") }) : route.fallback();
  });
}

/** The longest wait for an expected event. */
const PATIENCE_MS = 90_000;

/** Opens a page on which every request off loopback is refused and noted. */
export async function openPage(url: string, options: { width?: number; height?: number; dark?: boolean } = {}): Promise<Opened> {
  const { width = 1280, height = 800, dark = false } = options;
  // Firefox cannot be told to emulate colour schemes this way.
  const media = FIREFOX ? { colorScheme: null, reducedMotion: null, forcedColors: null, contrast: null } : { colorScheme: dark ? "dark" : "light" };
  const page = await (await browser()).newPage({ viewport: { width, height }, ...(media as { colorScheme: "dark" | "light" | null }) });
  // On a busy machine everything takes longer.
  page.setDefaultTimeout(PATIENCE_MS);
  const foreign: string[] = [];
  const errors: string[] = [];
  await page.route("**/*", (route) => {
    const { protocol, hostname } = new URL(route.request().url());
    if (hostname === "127.0.0.1" || hostname === "localhost" || protocol === "data:" || protocol === "blob:" || protocol === "file:") return route.continue();
    foreign.push(route.request().url());
    return route.abort();
  });
  await replacePage(page);
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("dialog", (dialog) => {
    errors.push(`a dialogue: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return { page, foreign, errors };
}

/** Opens the page of a trace, and waits until its work and its findings are loaded. */
export async function openTrace(url: string, options: Parameters<typeof openPage>[1] = {}): Promise<Opened> {
  const opened = await openPage(url, options);
  await opened.page.waitForSelector("#app[data-full-draw]");
  await opened.page.waitForFunction(() => document.querySelector<HTMLElement>(".verdict")?.dataset.verdict);
  return opened;
}

/** Waits until everything in sight has loaded. A timeline out of sight is not drawn, and keeps the words that it had when it left. */
export async function loaded(page: Page): Promise<void> {
  await page.waitForFunction(async () => {
    const timelines = [...document.querySelectorAll("#app .timeline")];
    const seen = await new Promise<IntersectionObserverEntry[]>((done) => {
      if (timelines.length === 0) return done([]);
      const observer = new IntersectionObserver((entries) => (observer.disconnect(), done(entries)));
      for (const timeline of timelines) observer.observe(timeline);
    });
    const hidden = new Set(seen.filter(({ isIntersecting }) => !isIntersecting).map(({ target }) => target));
    const texts = document.createTreeWalker(document.querySelector("#app") ?? document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) =>
      hidden.has(node as Element) ? NodeFilter.FILTER_REJECT : node instanceof Text ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP,
    );
    while (texts.nextNode()) if (/loading|Comparing…|Folding|Looking at|Analysing/i.test(texts.currentNode.nodeValue ?? "")) return false;
    return true;
  });
}

/** The state that a timeline publishes. */
export interface State {
  from: number;
  to: number;
  selection: string;
  event: string;
  hovered: string;
  arrows: number;
  events: number;
  found: string;
  drawMs: number;
}

export async function state(page: Page, timeline = ".timeline"): Promise<State> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const data = await page.$eval(timeline, (element) => ({ ...(element as HTMLElement).dataset }));
  return {
    from: Number(data.from),
    to: Number(data.to),
    selection: data.selection ?? "",
    event: data.event ?? "",
    hovered: data.hovered ?? "",
    arrows: Number(data.arrows),
    events: Number(data.events),
    found: data.found ?? "",
    drawMs: Number(data.drawMs),
  };
}

/** Presses a key that moves the view smoothly, and waits until the view rests. */
export async function moved(page: Page, key: string): Promise<void> {
  await page.keyboard.press(key);
  let before = await state(page);
  for (let rested = 0; rested < 5; ) {
    const now = await state(page);
    rested = now.from === before.from && now.to === before.to ? rested + 1 : 0;
    before = now;
  }
}

/** Returns the point of the page at a time of a track. */
export async function point(page: Page, track: string, ns: number, lane = 0, timeline = ".timeline"): Promise<{ x: number; y: number }> {
  const { from, to } = await state(page, timeline);
  const inside = page.locator(timeline).first();
  const box = await inside.locator("canvas.tracks").boundingBox();
  const head = await inside.locator(`[data-track="${track}"]`).first().boundingBox();
  if (!box || !head) throw new Error(`the track ${track} is not on the page`);
  const lanes = Number(await inside.locator(`[data-track="${track}"]`).first().getAttribute("data-lanes")) || 1;
  return { x: box.x + ((ns - from) / (to - from)) * box.width, y: head.y + 5 + ((lane + 0.5) * (head.height - 10)) / lanes };
}

/** Holds back requests, and lets them go one by one when a test says so. */
export class HeldRequests {
  private readonly routes: Route[] = [];
  private came: () => void = () => undefined;
  private open = false;

  static async hold(page: Page, pattern: string): Promise<HeldRequests> {
    const held = new HeldRequests();
    await page.route(pattern, (route) => {
      if (held.open) {
        route.fallback().catch(() => undefined);
        return;
      }
      held.routes.push(route);
      held.came();
    });
    return held;
  }

  /** Lets all held and all later requests go. */
  async letAllGo(): Promise<void> {
    this.open = true;
    // Some requests may belong to a closed page.
    await Promise.all(this.routes.splice(0).map((route) => route.fallback().catch(() => undefined)));
  }

  /** Waits for the next request. Returns a function that lets it go, and resolves when the page has the answer. */
  async next(): Promise<() => Promise<void>> {
    while (this.routes.length === 0) await new Promise<void>((came) => (this.came = came));
    const [route] = this.routes.splice(0, 1);
    return async () => {
      const page = route.request().frame().page();
      await route.fallback();
      await (await route.request().response())?.finished();
      await state(page);
    };
  }
}

/** Alters the server's answers. */
export async function alter<T extends object>(page: Page, pattern: string | RegExp, altered: (answer: T) => object): Promise<void> {
  await page.route(pattern, async (route) => {
    try {
      const response = await route.fetch();
      await route.fulfill({ response, json: altered((await response.json()) as T) });
    } catch {
      // The page may have been closed.
      await route.abort().catch(() => undefined);
    }
  });
}

/** Makes the page take a complete trace for a live one that grows and ends when a test says so. Its rows stay the same. */
export class GrowingTrace {
  private generation = 1;
  private edition = 1;
  live = true;
  private changed: () => void = () => undefined;

  /** Prepares a page that has not been opened yet. */
  static async attach(page: Page): Promise<GrowingTrace> {
    const growing = new GrowingTrace();
    // The server knows only one edition.
    await page.addInitScript(() => {
      const { fetch } = window;
      window.fetch = (asked, ...more) => fetch(typeof asked === "string" ? asked.replace(/([?&])edition=\d+&?/, "$1") : asked, ...more);
    });
    await alter<{ traces: object[] }>(page, "**/api/overview", (overview) => ({ ...overview, traces: overview.traces.map((trace) => ({ ...trace, ...growing.state })) }));
    await page.route("**/api/live?*", async (route) => {
      const known = new URL(route.request().url()).searchParams.get("generations")?.split(".") ?? [];
      while (growing.live && known.every((generation) => generation === String(growing.generation))) await new Promise<void>((changed) => (growing.changed = changed));
      // The page may have been closed.
      await route.fulfill({ json: { traces: known.map(() => growing.state) } }).catch(() => undefined);
    });
    return growing;
  }

  private get state(): { generation: number; edition: number; live: boolean } {
    const { generation, edition, live } = this;
    return { generation, edition, live };
  }

  /** Makes the trace grow. */
  async grow(page: Page): Promise<void> {
    this.generation += 1;
    this.changed();
    await page.waitForSelector(`#app[data-generation="${this.generation}"]`);
  }

  /** Ends the recording, which changes the edition. */
  async end(page: Page): Promise<void> {
    this.edition += 1;
    this.live = false;
    await this.grow(page);
  }
}

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

/** Returns the folder in which `cargo xtask test` installs other tools. */
export function clientsFolder(): string {
  return join(TARGET, "clients");
}

/** Serves a folder on loopback for the pages of other tools, and additional `files` by path. */
export async function serveFolder(path: string, files: Record<string, string> = {}): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    const wanted = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname)).replace(/\/$/, "/index.html");
    const file = files[wanted] ?? join(path, wanted);
    stat(file).then(
      ({ size }) => {
        response.writeHead(200, { "content-type": TYPES[extname(wanted)] ?? "application/octet-stream", "content-length": size, "access-control-allow-origin": "*" });
        // The file is streamed, because a trace may not fit into memory beside a browser.
        pipeline(createReadStream(file), response, () => undefined);
      },
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
