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
  /** It is not written before it has been read. */
  private reading = true;

  constructor(
    private readonly view: View,
    private readonly page: Addressed,
  ) {}

  /** Writes it soon. */
  later(): void {
    if (this.reading) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  write(): void {
    const { range, bounds, selection, event } = this.view;
    const state = this.page.state();
    if (length(range) < length(bounds) * 0.999) state.range = range;
    if (selection) state.selection = selection;
    if (event) state.event = event.track.rowOf(event);
    const sides = this.page.sides();
    if (sides) state.compare = { before: writtenSide(sides.before), after: writtenSide(sides.after) };
    const hash = `#${written(state)}`;
    if (hash !== location.hash && !(hash === "#" && location.hash === "")) history.replaceState(null, "", hash);
  }

  /** Shows what it says. */
  async read(): Promise<void> {
    const state = read(location.hash);
    this.reading = true;
    if (state.range) this.view.show(state.range);
    else this.view.fit();
    this.view.select(state.selection ?? null);
    this.page.show(state);
    this.reading = false;
    const before = state.compare && readSide(state.compare.before);
    const after = state.compare && readSide(state.compare.after);
    if (before && after) await this.page.compare(before, after);
    const { event } = this.view;
    if (state.event && (!event || placeName(event) !== `${state.event.table}.${state.event.row}`)) {
      await this.page.goTo(state.event.table, state.event.row);
      if (state.range) this.view.show(state.range);
    }
  }
}
