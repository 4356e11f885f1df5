// Chooses which trace of a program with ranks (a process each) the panels are about, and which are shown beside it.

import type { Trace } from "./data/trace.ts";
import { h } from "./dom.ts";
import type { Overview } from "./generated/protocol.ts";

/** The parameter of the address that names the first trace. */
const FIRST_PARAMETER = "first";

/** The traces on the page's timelines; the panels are about the first. */
export interface ShownTraces {
  first: Trace;
  /** The other traces of the same program and clock, by rank. */
  beside: Trace[];
}

/**
 * Returns the traces to show: of a program with ranks all that have tracks, by rank; otherwise only the first one.
 * `search` is the query of the address, whose `first` names the first trace; else the overview does, else it is the
 * lowest rank.
 */
export function shownTraces(overview: Overview, traces: readonly Trace[], search: string): ShownTraces {
  if (!overview.together) return { first: traces[0], beside: [] };
  const rank = (trace: Trace): number => trace.overview.manifest.rank?.rank ?? Infinity;
  const filled = traces.filter((trace) => trace.tracks.length > 0).sort((a, b) => rank(a) - rank(b) || 0);
  const wanted = new URLSearchParams(search).get(FIRST_PARAMETER) ?? overview.first;
  const first = filled.find((trace) => trace.overview.name === wanted) ?? filled[0] ?? traces[0];
  return { first, beside: filled.filter((trace) => trace !== first) };
}

/**
 * Calls `leaving` and reloads the page with the trace of this name first; what is picked or compared is left behind,
 * because it belongs to another trace.
 */
export function chooseFirst(name: string, leaving: () => void): void {
  leaving();
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const part of ["e", "a", "z"]) parts.delete(part);
  location.assign(`?${new URLSearchParams({ [FIRST_PARAMETER]: name })}#${parts}`);
}

/** Makes the control that chooses the first trace; null where there is only one. `leaving` writes the state into the address before the page is reloaded. */
export function rankChoice({ first, beside }: ShownTraces, leaving: () => void): HTMLElement | null {
  if (beside.length === 0) return null;
  const names = [first, ...beside].map((trace) => trace.overview.name).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const choice = h(
    "select",
    {
      "aria-label": "Whose verdict, gaps and kernels are shown",
      onchange: () => chooseFirst(choice.value, leaving),
    },
    names.map((name) => h("option", { value: name, selected: name === first.overview.name }, name)),
  );
  return h("label", { class: "ranks", title: "Whose verdict, gaps and kernels are shown; the others are below, on the same clock" }, choice);
}
