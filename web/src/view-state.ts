// The state of a view as the part of an address after `#`, so that a link shows another person the same.

import type { Range } from "./time/range.ts";
import type { ArrangementText } from "./timeline/arrangement.ts";

export type Colouring = "kernel" | "label" | "cause";
export type PanelName = "gaps" | "ranks" | "code" | "kernels" | "limits" | "labels" | "dependencies" | "graph" | "compare" | "sql" | "notes" | "about";

/** The state in a link. Absent fields are as when the page is opened. */
export interface ViewState {
  range?: Range;
  selection?: Range;
  /** The table and row of the selected event. */
  event?: { table: string; row: number };
  search?: string;
  /** The query in the SQL panel. */
  sql?: string;
  colouring?: Colouring;
  panel?: PanelName;
  /** The arrangement of the tracks. */
  arranged?: ArrangementText;
  /** The cause that the list of gaps is restricted to. */
  cause?: string;
  /** The cause and the label that the code of idle time is restricted to. */
  code_cause?: string;
  code_label?: string;
  /** The two sides of a comparison, and the instance that is shown where it is not the first choice. */
  compare?: { before: string; after: string; instance?: number };
}

const COLOURINGS: readonly string[] = ["kernel", "label", "cause"] satisfies Colouring[];
const PANELS: readonly string[] = ["gaps", "ranks", "code", "kernels", "limits", "labels", "dependencies", "graph", "compare", "sql", "notes", "about"] satisfies PanelName[];

/** Writes a range as two times in nanoseconds, such as `100-250.5`. */
function writtenRange(range: Range): string {
  const digit = (ns: number): string => (Number.isInteger(ns) ? ns.toString() : ns.toFixed(1));
  return `${digit(range.from_ns)}-${digit(range.to_ns)}`;
}

/** Reads a range; undefined where the text is none, or the range is empty. */
function readRange(text: string | null): Range | undefined {
  const found = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/.exec(text ?? "");
  if (!found) return undefined;
  const range = { from_ns: Number(found[1]), to_ns: Number(found[2]) };
  return range.from_ns < range.to_ns && Number.isFinite(range.to_ns) ? range : undefined;
}

/** Writes the state as the part of an address after `#`. */
export function writeViewState(state: ViewState): string {
  const parts = new URLSearchParams();
  if (state.range) parts.set("t", writtenRange(state.range));
  if (state.selection) parts.set("s", writtenRange(state.selection));
  if (state.event) parts.set("e", `${state.event.table}.${state.event.row}`);
  if (state.search) parts.set("q", state.search);
  if (state.sql) parts.set("sql", state.sql);
  if (state.colouring && state.colouring !== "kernel") parts.set("c", state.colouring);
  if (state.panel && state.panel !== "gaps") parts.set("p", state.panel);
  const { tracks, order, text } = state.arranged ?? {};
  if (tracks) parts.set("k", tracks);
  if (order) parts.set("o", order);
  if (text) parts.set("w", text);
  if (state.cause) parts.set("g", state.cause);
  if (state.code_cause) parts.set("x", state.code_cause);
  if (state.code_label) parts.set("l", state.code_label);
  if (state.compare) {
    parts.set("a", state.compare.before);
    parts.set("z", state.compare.after);
    if (state.compare.instance !== undefined) parts.set("i", String(state.compare.instance + 1));
  }
  return parts.toString();
}

/** Reads the state from the part of an address after `#`, and ignores whatever is not valid. */
export function readViewState(hash: string): ViewState {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const state: ViewState = {};
  const range = readRange(parts.get("t"));
  if (range) state.range = range;
  const selection = readRange(parts.get("s"));
  if (selection) state.selection = selection;
  const event = /^([a-z_]+)\.(\d+)$/.exec(parts.get("e") ?? "");
  if (event) state.event = { table: event[1], row: Number(event[2]) };
  const search = parts.get("q");
  if (search) state.search = search;
  const sql = parts.get("sql");
  if (sql) state.sql = sql;
  const colouring = parts.get("c");
  if (colouring && COLOURINGS.includes(colouring)) state.colouring = colouring as Colouring;
  const panel = parts.get("p");
  if (panel && PANELS.includes(panel)) state.panel = panel as PanelName;
  const arranged: ArrangementText = { tracks: parts.get("k") ?? undefined, order: parts.get("o") ?? undefined, text: parts.get("w") ?? undefined };
  if (arranged.tracks || arranged.order || arranged.text) state.arranged = arranged;
  const [cause, code_cause, code_label] = ["g", "x", "l"].map((name) => parts.get(name));
  if (cause) state.cause = cause;
  if (code_cause) state.code_cause = code_cause;
  if (code_label) state.code_label = code_label;
  const before = parts.get("a");
  const after = parts.get("z");
  const instance = /^[1-9]\d{0,8}$/.exec(parts.get("i") ?? "");
  if (before !== null && after !== null) state.compare = { before, after, ...(instance ? { instance: Number(instance[0]) - 1 } : {}) };
  return state;
}
