// Shows the filters that restrict the tables below, each with a button that clears it.

import { fill, h } from "../dom.ts";
import { duration, instant } from "../time/format.ts";
import { length, type Range } from "../time/range.ts";

/** What the tables are restricted to; null where it does not restrict them. */
export interface Filters {
  range: Range | null;
  /** The text of the search. */
  search: string | null;
}

/** The line with the filters, hidden without any. `clear` has what the buttons do. */
export class ActiveFilters {
  readonly element = h("p", { class: "active-filters", role: "status", hidden: true });

  constructor(private readonly clear: { range: () => void; search: () => void }) {}

  show({ range, search }: Filters): void {
    this.element.hidden = range === null && search === null;
    const step_ns = range ? Math.max(1, length(range) / 1000) : 1;
    const chip = (what: string, text: string, tooltip: string, clear: () => void): HTMLElement =>
      h("span", { class: "chip", "data-filter": what }, h("span", { class: "clip", title: text }, text), h("button", { type: "button", "aria-label": tooltip, title: tooltip, onclick: clear }, "✕"));
    fill(
      this.element,
      h("span", { class: "note" }, "Only"),
      range ? chip("range", `${instant(range.from_ns, step_ns)} to ${instant(range.to_ns, step_ns)}, ${duration(Math.round(length(range)))}`, "Clear the selected range", this.clear.range) : null,
      search === null ? null : chip("search", `matches of “${search}”`, "Clear the search", this.clear.search),
    );
  }
}
