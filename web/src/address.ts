// Keeps the part of the page's address after `#` equal to what the page shows, and shows what an address says. Another visible
// range is an entry of the browser's history, so that its button Back undoes a zoom.
// `later` is called after every change of the page, and `read` at the start and after the reader has changed the
// address.

import { readSide, type Side, writeSide } from "./comparison-sides.ts";
import { LatestRequest } from "./latest-request.ts";
import { length, type Range } from "./time/range.ts";
import { placeName } from "./timeline/timeline.ts";
import { readViewState, type ViewState, writeViewState } from "./view-state.ts";
import type { View } from "./view.ts";

/** How long the view must rest before the address is written. */
const REST_MS = 300;

/** The parts of the page that an address reads and changes. */
export interface AddressCallbacks {
  /** Returns what the page shows besides the range, selection and event. */
  state: () => ViewState;
  /** Shows a state besides the range, selection and event. */
  show: (state: ViewState) => void;
  stopComparing: () => void;
  /** Starts a comparison, and resolves when both sides are shown or it has failed. */
  compare: (before: Side, after: Side, instance?: number) => Promise<void>;
  /** Returns the sides that are compared; `instance` only where it is not the one that is shown first. */
  sides: () => { before: Side; after: Side; instance?: number } | null;
  /** Goes to a row; with `stays` the visible range stays as it is, because the address gives it. */
  goTo: (table: string, row: number, stays: boolean) => Promise<void>;
}

/** Reads and writes the address for one view. */
export class Address {
  private readonly reading = new LatestRequest();
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The address that was read or written last. The page never writes over any other address: it came from outside and is about to be read. */
  private shown: string | null = null;
  /** The range that an address without one shows; null for everything. */
  private opening: Range | null = null;

  constructor(
    private readonly view: View,
    private readonly page: AddressCallbacks,
  ) {}

  /** Makes an address without a range show this one, in place of everything. */
  openOn(range: Range | null): void {
    this.opening = range;
  }

  /** Writes the address once the view has rested. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), REST_MS);
  }

  /** Writes the address at once, unless it came from outside and was not read yet. */
  write(): void {
    if (location.hash !== this.shown) return;
    const { range, bounds, selection, event } = this.view;
    const state = this.page.state();
    const { opening } = this;
    if (opening ? opening.from_ns !== range.from_ns || opening.to_ns !== range.to_ns : length(range) < length(bounds) * 0.999) state.range = range;
    if (selection) state.selection = selection;
    if (event) state.event = event.track.rowOf(event);
    const sides = this.page.sides();
    if (sides) state.compare = { ...sides, before: writeSide(sides.before), after: writeSide(sides.after) };
    const hash = `#${writeViewState(state)}`;
    if (hash === this.shown || (hash === "#" && this.shown === "")) return;
    const [now, before] = [readViewState(hash).range, readViewState(this.shown ?? "").range];
    if (now?.from_ns === before?.from_ns && now?.to_ns === before?.to_ns) history.replaceState(null, "", hash);
    else history.pushState(null, "", hash);
    this.shown = location.hash;
  }

  /** Shows what the address says. With `anew`, the page also resets whatever the address does not mention. */
  async read(anew: boolean): Promise<void> {
    const isLatest = this.reading.begin();
    const { hash } = location;
    const state = readViewState(hash);
    this.shown = null;
    if (state.range) this.view.show(state.range);
    else if (this.opening) {
      if (anew) this.view.show(this.opening);
      else this.view.slide(this.opening);
      this.opening = this.view.range;
    } else if (anew) this.view.fit();
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
