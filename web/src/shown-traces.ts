// The traces of one program's ranks: which one the panels are about, and which are shown beside it.

import type { Overview } from "./data/overview.ts";
import type { Trace } from "./data/trace.ts";
import { h } from "./dom.ts";

/** The part of the address that says which trace comes first, by its name. */
const FIRST_PARAMETER = "first";

export interface ShownTraces {
  first: Trace;
  /** Traces of the same program and clock, in order. */
  beside: Trace[];
}

/** Which traces are shown: of a program with ranks all that have anything, by rank; of others the first. */
export function shownTraces(overview: Overview, traces: readonly Trace[], search: string): ShownTraces {
  if (!overview.together) return { first: traces[0], beside: [] };
  const rank = (trace: Trace): number => trace.overview.manifest.rank?.rank ?? Infinity;
  const filled = traces.filter((trace) => trace.tracks.length > 0).sort((a, b) => rank(a) - rank(b) || 0);
  const wanted = new URLSearchParams(search).get(FIRST_PARAMETER) ?? overview.first;
  const first = filled.find((trace) => trace.overview.name === wanted) ?? filled[0] ?? traces[0];
  return { first, beside: filled.filter((trace) => trace !== first) };
}

/** Puts the trace of this name first: the page begins anew. */
export function chooseFirst(name: string, leaving: () => void): void {
  leaving();
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const part of ["e", "a", "z"]) parts.delete(part);
  location.assign(`?${new URLSearchParams({ [FIRST_PARAMETER]: name })}#${parts}`);
}

/** Chooses which trace comes first; `leaving` puts into the address what is shown. What is selected in another is left behind; the visible time, the search and the panel stay. */
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
