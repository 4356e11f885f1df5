// The address of the page, which follows what is shown.

import { readSide, type Side, writeSide } from "./comparison-sides.ts";
import { LatestRequest } from "./latest-request.ts";
import { length } from "./time/range.ts";
import { placeName } from "./timeline/timeline.ts";
import { readViewState, type ViewState, writeViewState } from "./view-state.ts";
import type { View } from "./view.ts";

/** It follows when the view has rested for so long. */
const REST_MS = 300;

/** What the page does with an address, and what it writes into one. */
export interface AddressCallbacks {
  /** What is shown besides range, selection and event. */
  state: () => ViewState;
  show: (state: ViewState) => void;
  stopComparing: () => void;
  compare: (before: Side, after: Side, instance?: number) => Promise<void>;
  /** `instance` where another is shown than at first. */
  sides: () => { before: Side; after: Side; instance?: number } | null;
  /** `stays`: what is seen is said by the address, and stays. */
  goTo: (table: string, row: number, stays: boolean) => Promise<void>;
}

export class Address {
  private readonly reading = new LatestRequest();
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** What the page shows, as read or written last. Another address has come from outside and is never written over: it is about to be read. */
  private shown: string | null = null;

  constructor(
    private readonly view: View,
    private readonly page: AddressCallbacks,
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
    if (sides) state.compare = { ...sides, before: writeSide(sides.before), after: writeSide(sides.after) };
    const hash = `#${writeViewState(state)}`;
    if (hash === this.shown || (hash === "#" && this.shown === "")) return;
    history.replaceState(null, "", hash);
    this.shown = location.hash;
  }

  /** Shows what it says; `anew` when the page showed something before, which is undone where the address says nothing of it. */
  async read(anew: boolean): Promise<void> {
    const isLatest = this.reading.begin();
    const { hash } = location;
    const state = readViewState(hash);
    this.shown = null;
    if (state.range) this.view.show(state.range);
    else if (anew) this.view.fit();
    if (state.selection || anew) this.view.select(state.selection ?? null);
    const { event } = this.view;
    const picked = event && state.event && placeName(event) === `${state.event.table}.${state.event.row}`;
    if (anew && !picked) this.view.pick(null);
    this.page.show(anew ? { search: "", sql: "", colouring: "kernel", panel: "gaps", cause: "", code_cause: "", code_label: "", ...state } : state);
    const before = state.compare && readSide(state.compare.before);
    const after = state.compare && readSide(state.compare.after);
    if (before && after) await this.page.compare(before, after, state.compare?.instance);
    else if (anew) this.page.stopComparing();
    if (isLatest() && state.event && !picked) await this.page.goTo(state.event.table, state.event.row, state.range !== undefined);
    if (!isLatest()) return;
    this.shown = hash;
    this.later();
  }
}
