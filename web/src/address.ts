// The address of the page, which follows what is shown.

import { readSide, type Side, writtenSide } from "./compare.ts";
import { read, type ViewState, written } from "./link.ts";
import { length } from "./time/range.ts";
import { placeName } from "./timeline/timeline.ts";
import type { View } from "./view.ts";

/** It follows when the view has rested for so long. */
const REST_MS = 300;

/** What the page does with an address, and what it writes into one. */
export interface Addressed {
  /** What is shown besides range, selection and event. */
  state: () => ViewState;
  show: (state: ViewState) => void;
  compare: (before: Side, after: Side) => Promise<void>;
  sides: () => { before: Side; after: Side } | null;
  goTo: (table: string, row: number) => Promise<void>;
}

export class Address {
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** What the page shows, as read or written last. Another address has come from outside and is never written over: it is about to be read. */
  private shown: string | null = null;

  constructor(
    private readonly view: View,
    private readonly page: Addressed,
  ) {}

  /** Writes it soon. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  write(): void {
    if (location.hash !== this.shown) return;
    const { range, bounds, selection, event } = this.view;
    const state = this.page.state();
    if (length(range) < length(bounds) * 0.999) state.range = range;
    if (selection) state.selection = selection;
    if (event) state.event = event.track.rowOf(event);
    const sides = this.page.sides();
    if (sides) state.compare = { before: writtenSide(sides.before), after: writtenSide(sides.after) };
    const hash = `#${written(state)}`;
    if (hash === this.shown || (hash === "#" && this.shown === "")) return;
    history.replaceState(null, "", hash);
    this.shown = location.hash;
  }

  /** Shows what it says. */
  async read(): Promise<void> {
    const { hash } = location;
    const state = read(hash);
    this.shown = null;
    if (state.range) this.view.show(state.range);
    else this.view.fit();
    this.view.select(state.selection ?? null);
    if (!state.event) this.view.pick(null);
    this.page.show(state);
    const before = state.compare && readSide(state.compare.before);
    const after = state.compare && readSide(state.compare.after);
    if (before && after) await this.page.compare(before, after);
    const { event } = this.view;
    if (location.hash === hash && state.event && (!event || placeName(event) !== `${state.event.table}.${state.event.row}`)) {
      await this.page.goTo(state.event.table, state.event.row);
      if (state.range) this.view.show(state.range);
    }
    if (location.hash !== hash) return;
    this.shown = hash;
    this.later();
  }
}
