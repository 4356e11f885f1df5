// Interprets answers of SQL queries: which columns are times, how values are shown, and which row of a trace a row
// stands for. The origin is the trace's time 0 on the host's clock; a reading is the way in which a column is shown,
// which `readings` decides.

import type { Catalogue, SqlAnswer } from "../generated/protocol.ts";
import { bytes, count, duration, instant } from "../time/format.ts";

/** A value as a text; null is NULL. */
export type Cell = string | null;

/** The clock of a trace, by which moments are recognised. */
export interface TraceClock {
  origin_ns: string;
  /** The first and last time of anything, from the origin. */
  extent: [number, number];
}

/** Columns that are moments, not durations. */
const MOMENTS = ["start_ns", "time_ns", "at_ns", "end_ns", "seen_ns", "host_signal_ns"];
/** A column that already counts from the start of the trace. */
const FROM_START = "from_start_ns";
/** Columns of numbers that identify something, besides those whose meaning matches `IS_ID`. */
const IDENTIFIERS = ["position", "gap", "family", "index", "line", "rank", "pid"];
const IS_ID = /^(The )?(system's )?(id|Id)\b|^The system's id/;
/** Columns by whose values a row of the trace is found again. */
const IDENTIFYING = ["id", "command_buffer", "submission", "position", "queue", "kernel", "label", "process", "thread", "start_ns", "duration_ns", "time_ns"];
const TIME_COLUMNS = ["start_ns", "time_ns"];

/**
 * How the values of a column are shown: as a time on the host's clock, a time from the origin, a duration, a size, a
 * number that names something, another number, or a text.
 */
export type Reading = "moment" | "from-start" | "length" | "bytes" | "name" | "number" | "text";

/** Returns the nanoseconds from a trace's origin to a moment on the host's clock. The subtraction is exact, because the clock may be past 2^53. */
export function fromOrigin(cell: string, origin_ns: string): number {
  return Number(BigInt(cell) - BigInt(origin_ns));
}

/** Decides how the columns of an answer are shown. `clockOf` returns the clock of the trace that a row is from, or null where it is unknown. */
export function readings(answer: SqlAnswer, catalogue: Catalogue | null, clockOf: (row: Cell[]) => TraceClock | null): Reading[] {
  const ids = new Set(IDENTIFIERS);
  for (const { columns } of catalogue?.tables ?? []) for (const { name, meaning } of columns) if (IS_ID.test(meaning)) ids.add(name);
  return answer.columns.map(({ name, type }, at) => {
    if (type !== "integer" && type !== "fraction") return "text";
    if (type === "integer" && MOMENTS.includes(name) && answer.rows.every((row) => within(row[at], clockOf(row)))) return "moment";
    if (type === "integer" && name === FROM_START && answer.rows.every((row) => within(row[at], clockOf(row), "0"))) return "from-start";
    if (name.endsWith("_ns") && !MOMENTS.includes(name)) return "length";
    if (name === "bytes" || name.endsWith("_bytes")) return "bytes";
    return type === "integer" && ids.has(name) ? "name" : "number";
  });
}

/** Returns whether a value lies in the trace's extent, or is NULL: a query may call anything `start_ns`. */
function within(cell: Cell, clock: TraceClock | null, origin_ns = clock?.origin_ns): boolean {
  if (cell === null) return true;
  if (clock === null || origin_ns === undefined) return false;
  const at = fromOrigin(cell, origin_ns);
  return at >= clock.extent[0] && at <= clock.extent[1];
}

/** Formats a value for reading. */
export function shown(cell: string, reading: Reading, clock: TraceClock | null): string {
  if (reading === "text" || reading === "name") return cell;
  if (reading === "moment") return clock ? instant(fromOrigin(cell, clock.origin_ns), 1e3) : cell;
  const number = Number(cell);
  if (!Number.isFinite(number)) return cell;
  if (reading === "from-start") return instant(number, 1e3);
  if (reading === "length") return duration(number);
  if (reading === "bytes") return bytes(number);
  return Number.isInteger(number) && /^-?\d+$/.test(cell) ? whole(cell) : fraction(number);
}

/** Adds separators between groups of three digits, however many digits there are. */
function whole(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Formats a fraction with four significant digits. */
function fraction(number: number): string {
  const size = Math.abs(number);
  if (size >= 1000) return count(number);
  return number === 0 ? "0" : Number(number.toPrecision(4)).toString();
}

/** Returns the value by which a row is sorted, a number unless it is text; null for NULL and what is no number. */
export function order(cell: Cell, reading: Reading): number | string | null {
  if (cell === null || reading === "text") return cell;
  const number = Number(cell);
  return Number.isNaN(number) ? null : number;
}

/** Returns the table that a query reads, if it reads only one. */
export function tableOf(sql: string, tables: readonly string[]): string | null {
  const plain = sql.replace(/'(?:[^']|'')*'/g, "''").replace(/--.*$/gm, " ").replace(/\/\*[^]*?\*\//g, " ");
  const found = new Set<string>();
  const sources = /\b(?:from|join)\b(.*?)(?=\b(?:where|group|order|limit|join|left|right|inner|outer|full|cross|natural|on|using|union|having|window|intersect|except|select|from)\b|[();]|$)/gis;
  for (const [, list] of plain.matchAll(sources)) {
    for (const source of list.split(",")) {
      const name = /^\s*"?(\w+)"?/.exec(source)?.[1]?.toLowerCase();
      if (name && tables.includes(name)) found.add(name);
    }
  }
  return found.size === 1 ? [...found][0] : null;
}

/** Returns the values that identify a row in its table, with times from the origin. */
export function identifyingValues(answer: SqlAnswer, row: Cell[], origin_ns: string): Record<string, string> {
  const values: Record<string, string> = {};
  answer.columns.forEach(({ name, type }, at) => {
    const cell = row[at];
    if (cell === null || type !== "integer" || !IDENTIFYING.includes(name) || name in values) return;
    values[name] = TIME_COLUMNS.includes(name) ? String(BigInt(cell) - BigInt(origin_ns)) : cell;
  });
  return values;
}

/**
 * Returns the column whose time leads to the timeline: the first moment in the order of `MOMENTS`, otherwise a time
 * from the start; null for none.
 */
export function momentColumn(answer: SqlAnswer, read: readonly Reading[]): number | null {
  const places = MOMENTS.map((name) => answer.columns.findIndex((column, at) => column.name === name && read[at] === "moment"));
  return places.find((at) => at >= 0) ?? (read.includes("from-start") ? read.indexOf("from-start") : null);
}

/** Returns a row's start from the origin and its duration, 0 without one; null where it has no time. */
export function placeOf(answer: SqlAnswer, read: readonly Reading[], row: Cell[], origin_ns: string): { start_ns: number; duration_ns: number } | null {
  const at = momentColumn(answer, read);
  if (at === null || row[at] === null) return null;
  const long = answer.columns.findIndex(({ name, type }) => name === "duration_ns" && type === "integer");
  return { start_ns: fromOrigin(row[at], read[at] === "from-start" ? "0" : origin_ns), duration_ns: Math.max(0, Number(row[long] ?? 0)) };
}

/** Writes rows as text for other programs: nothing for NULL; with commas exact values, `""` for an empty text. */
export function written(answer: SqlAnswer, rows: readonly Cell[][], separator: "," | "\t"): string {
  const field = (cell: Cell): string => {
    if (cell === null) return "";
    // A spreadsheet would begin another cell at a tab or a line end.
    if (separator === "\t") return cell.replace(/[\t\r\n]+/g, " ");
    return cell === "" || /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  const lines = [answer.columns.map(({ name }) => name), ...rows].map((line) => line.map(field).join(separator));
  return `${lines.join("\n")}\n`;
}
