// Tests how the page interprets answers of SQL queries.

import { expect, test } from "vitest";
import { momentColumn, order, placeOf, readings, shown, tableOf, identifyingValues, written } from "../src/data/sql.ts";
import type { SqlAnswer } from "../src/generated/protocol.ts";

const CLOCK = { origin_ns: "9100000000000000001", extent: [-5, 1000] as [number, number] };
const answer = (columns: [string, "integer" | "fraction" | "text" | "boolean"][], rows: (string | null)[][]): SqlAnswer => ({
  columns: columns.map(([name, type]) => ({ name, type })),
  rows,
  more: false,
  missing: [],
  traces: ["t"],
  took_ms: 1,
});
const TABLES = ["dispatches", "transfers", "submissions", "command_buffers", "gaps"];

test("times are counted from the origin, whatever the clock's size", () => {
  const one = answer([["start_ns", "integer"], ["duration_ns", "integer"]], [["9100000000000000501", "40"]]);
  const read = readings(one, null, () => CLOCK);
  expect(read).toEqual(["moment", "length"]);
  expect(placeOf(one, read, one.rows[0], CLOCK.origin_ns)).toEqual({ start_ns: 500, duration_ns: 40 });
  expect(shown("9100000000000000501", "moment", CLOCK)).toBe("500 ns");
  expect(identifyingValues(one, one.rows[0], CLOCK.origin_ns)).toEqual({ start_ns: "500", duration_ns: "40" });
});

test("from_start_ns is a moment, too, counted from the trace's start", () => {
  const one = answer([["cause", "text"], ["from_start_ns", "integer"], ["duration_ns", "integer"]], [["host-late", "500", "40"]]);
  const read = readings(one, null, () => CLOCK);
  expect(read).toEqual(["text", "from-start", "length"]);
  expect(momentColumn(one, read)).toBe(1);
  expect(placeOf(one, read, one.rows[0], CLOCK.origin_ns)).toEqual({ start_ns: 500, duration_ns: 40 });
  expect(shown("500", "from-start", CLOCK)).toBe("500 ns");
  // A value outside of the trace, or of an unknown trace, is not a moment.
  expect(readings(answer([["from_start_ns", "integer"]], [["5000"]]), null, () => CLOCK)).toEqual(["length"]);
  expect(readings(one, null, () => null)[1]).toBe("length");
});

test("a column that only has the name of a time stays a number", () => {
  for (const cell of ["17", "9100000000000009999"]) {
    const one = answer([["start_ns", "integer"]], [[cell], [null]]);
    const read = readings(one, null, () => CLOCK);
    expect(read).toEqual(["number"]);
    expect(momentColumn(one, read)).toBe(null);
  }
  // Without a trace a row has no clock.
  expect(readings(answer([["start_ns", "integer"]], [["9100000000000000501"]]), null, () => null)).toEqual(["number"]);
});

test("numbers are formatted, except those that identify something", () => {
  const catalogue = { saved: [], tables: [{ name: "submissions", meaning: "", columns: [{ name: "thread", type: "u32", meaning: "The system's id of the thread." }] }] };
  const one = answer([["thread", "integer"], ["n", "integer"], ["total_ms", "fraction"], ["bytes", "integer"], ["cause", "text"], ["p50_ns", "fraction"]], []);
  expect(readings(one, catalogue, () => CLOCK)).toEqual(["name", "number", "number", "bytes", "text", "length"]);
  expect(shown("4712345", "name", CLOCK)).toBe("4712345");
  expect(shown("18446744073709551615", "number", CLOCK)).toBe("18,446,744,073,709,551,615");
  expect(shown("33.333333333333336", "number", CLOCK)).toBe("33.33");
  expect(shown("1234567.891", "number", CLOCK)).toBe("1,234,568");
  expect(shown("0.0", "number", CLOCK)).toBe("0");
  expect(shown("NaN", "number", CLOCK)).toBe("NaN");
  expect(shown("1536", "bytes", CLOCK)).toBe("1.50 KiB");
  expect([order("10", "number"), order("10", "text"), order(null, "number"), order("NaN", "number")]).toEqual([10, "10", null, null]);
});

test("rows belong to a table if the query reads only one", () => {
  for (const [sql, table] of [
    ["select * from dispatches", "dispatches"],
    ["SELECT a FROM Dispatches d where a in (select id from dispatches)", "dispatches"],
    ["select dispatches, transfers from command_buffers limit 3", "command_buffers"],
    ['select * from "gaps" order by 1', "gaps"],
    ["select * from dispatches -- from gaps\nlimit 1", "dispatches"],
    ["select 'from gaps' from dispatches", "dispatches"],
    ["select * from dispatches d, gaps g", null],
    ["select * from dispatches join submissions on true", null],
    ["with a as (select * from gaps) select * from a", "gaps"],
    ["select * from dispatches union all select * from transfers", null],
    ["select 1", null],
  ] as const) {
    expect(tableOf(sql, TABLES), sql).toBe(table);
  }
});

test("copies have the exact values", () => {
  const one = answer([["a", "text"], ["b,c", "integer"]], [['say "hi"\nthere', "1"], [null, null], ["", "2"]]);
  expect(written(one, one.rows, ",")).toBe('a,"b,c"\n"say ""hi""\nthere",1\n,\n"",2\n');
  expect(written(one, one.rows, "\t")).toBe('a\tb,c\nsay "hi" there\t1\n\t\n\t2\n');
});
