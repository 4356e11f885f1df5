// Fills the tables of gaps, kernels, limits and labels: for the whole trace, or restricted to the search and the selected range.

import type { Appearance } from "./appearance.ts";
import { isMissing } from "./data/missing.ts";
import type { Trace } from "./data/trace.ts";
import type { Kernel, LabelRow, Missing } from "./generated/protocol.ts";
import type { ActiveFilters } from "./panels/active-filters.ts";
import type { GapsPanel } from "./panels/gaps.ts";
import { type NamedKernel, namedKernels } from "./panels/kernels.ts";
import type { LimitsPanel } from "./panels/limits.ts";
import { type Loadable, part } from "./panels/loadable.ts";
import type { Table } from "./panels/table.ts";
import type { RangeAnalysis } from "./range-analysis.ts";
import type { Search } from "./search.ts";
import type { View } from "./view.ts";

const COUNTING = "Looking at the selected range…";
const WHOLE_TRACE_LIMITS = "These limits are those of the whole trace. A saved page has none for a range; `gapscope view` does.";

/** Fills the tables of the panels, when `show` is called and after results of the range have arrived. */
export class Tables {
  /** The browser's number of the frame that will update the tables; 0 for none. */
  private scheduled = 0;

  constructor(
    private readonly view: View,
    private readonly appearance: Appearance,
    private readonly parts: { gaps: GapsPanel; kernels: Table<NamedKernel>; limits: LimitsPanel; labels: Table<LabelRow & { order: number }>; narrowed: ActiveFilters; rangeAnalysis: RangeAnalysis; search: Search },
    /** Returns the message that is shown until the findings are there. */
    private readonly loadingMessage: () => string,
  ) {
    parts.rangeAnalysis.onChange(() => {
      // While the range is dragged, one update per frame is enough.
      this.scheduled ||= requestAnimationFrame(() => {
        this.scheduled = 0;
        this.show();
      });
    });
  }

  /** Fills all tables with what is known now: rows, a message while they load, or why there are none. */
  show(): void {
    const { gaps, kernels, limits, labels, narrowed, rangeAnalysis, search } = this.parts;
    const { selection, trace } = this.view;
    const { findings } = trace;
    const loadingMessage = this.loadingMessage();
    const finds = search.filters ? (text: string): boolean => this.appearance.finds(text) : null;
    narrowed.show({ range: selection, search: search.filters ? search.text : null });
    gaps.narrow({ range: selection, causes: selection && ranged(rangeAnalysis.gaps), finds });
    gaps.show(findings, loadingMessage);
    const none = (what: string): string | null => (finds ? `The search finds no ${what}${selection ? " in the selected range" : ""}.` : selection ? `No ${what} has work that starts in the selected range.` : null);
    const found = <Row>(rows: Loadable<Row[]>, text: (row: Row) => string): Loadable<Row[]> =>
      rows.state === "loaded" && finds ? { state: "loaded", value: rows.value.filter((row) => finds(text(row))) } : rows;
    const here = <Row>(rows: Row[] | Missing | null, named: (rows: Row[]) => Row[]): Loadable<Row[]> => {
      const one = ranged(rows);
      return one.state === "loaded" ? { state: "loaded", value: named(one.value) } : one;
    };
    const all_kernels = selection ? keyed(here(rangeAnalysis.kernels, (rows) => rows.filter(({ count }) => count > 0)), trace) : part(findings, loadingMessage, namedKernels);
    kernels.take(found(all_kernels, ({ name }) => name), none("kernel"));
    const limited = selection && !rangeAnalysis.tellsLimits ? part(findings, loadingMessage, namedKernels) : all_kernels;
    limits.show(findings, loadingMessage, found(limited, ({ name }) => name), none("kernel"), limited === all_kernels ? null : WHOLE_TRACE_LIMITS);
    const order = (rows: LabelRow[]): (LabelRow & { order: number })[] => rows.map((row, order) => ({ ...row, order }));
    const all_labels = selection ? here(rangeAnalysis.labels, (rows) => rows) : part(findings, loadingMessage, ({ labels }) => labels);
    labels.take(found(all_labels.state === "loaded" ? { state: "loaded", value: order(all_labels.value) } : all_labels, ({ path }) => path), none("label"));
  }
}

function ranged<T>(answer: T | Missing | null): Loadable<T> {
  if (answer === null) return { state: "loading", message: COUNTING };
  return isMissing(answer) ? { state: "missing", message: answer.missing } : { state: "loaded", value: answer };
}

/** Adds to the kernels of a range the keys by which their work is coloured. */
function keyed(rows: Loadable<Kernel[]>, { findings }: Trace): Loadable<NamedKernel[]> {
  if (rows.state !== "loaded") return rows;
  const keys = new Map((findings && !isMissing(findings) ? (namedKernels(findings) ?? []) : []).map(({ name, key }) => [name, key]));
  return { state: "loaded", value: rows.value.map((row) => ({ ...row, key: keys.get(row.name) ?? null })) };
}
