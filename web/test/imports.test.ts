// Tests that the modules of the page do not import each other in a circle, types included.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const SOURCE = join(import.meta.dirname, "../src");

/** Returns the modules that each module of the page imports. */
function imports(): Map<string, string[]> {
  const modules = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return new Map(
    modules.map((name) => {
      const text = readFileSync(join(SOURCE, name), "utf8");
      const imported = [...text.matchAll(/^import\s[^;]*?"(\.[^"]+\.ts)"/gm)].map(([, path]) => normalize(join(dirname(name), path)));
      return [name, imported];
    }),
  );
}

/** Returns the modules of one circle, or none. */
function circle(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (name: string, path: readonly string[]): string[] => {
    const at = path.indexOf(name);
    if (at >= 0) return path.slice(at);
    if (done.has(name)) return [];
    for (const next of graph.get(name) ?? []) {
      const found = visit(next, [...path, name]);
      if (found.length > 0) return found;
    }
    done.add(name);
    return [];
  };
  for (const name of graph.keys()) {
    const found = visit(name, []);
    if (found.length > 0) return found;
  }
  return [];
}

test("modules do not import each other in a circle", () => {
  const graph = imports();
  expect(graph.size).toBeGreaterThan(100);
  expect([...graph.values()].flat().filter((name) => !graph.has(name))).toEqual([]);
  expect(circle(graph)).toEqual([]);
});

test("a circle is found", () => {
  expect(circle(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]]))).toEqual(["b", "c"]);
});
