// The search of the page: takes what is typed or picked, updates the page, and steps through the matches.

import type { Appearance } from "./appearance.ts";
import { LatestRequest } from "./latest-request.ts";
import { hitNumber, steppedLanes } from "./search-hits.ts";
import { pattern } from "./search-pattern.ts";
import { count, plural } from "./time/format.ts";
import { NOTHING_FOUND } from "./topbar.ts";
import type { View } from "./view.ts";

/** How long typing must pause before the search runs. */
const REST_MS = 120;

/** The parts of the page that the search reads and changes. */
export interface SearchCallbacks {
  view: View;
  /** The search box, and the message beside it. */
  box: { input: HTMLInputElement; searched: (problem: string, found: string) => void };
  /** Called when the matches have changed. */
  changed: () => void;
  /** Counts the matching work on all timelines. */
  events: () => number;
  /** Goes to the next or the previous match. */
  go: (forward: boolean) => void;
}

/** The search of the page. `for` is called while the reader types, and `pick` for a text in a table. */
export class Search {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly requests = new LatestRequest();
  /** The text that was searched for last. */
  private done = "";
  /** The text that was picked in a table instead of typed. */
  private picked: string | null = null;

  constructor(
    private readonly appearance: Appearance,
    private readonly callbacks: SearchCallbacks,
  ) {}

  /** Returns whether tables show only matches. Where the text was picked in a table, they show all rows, so that another can be picked. */
  get filters(): boolean {
    return this.appearance.searching && this.picked === null;
  }

  /** The text of the search. */
  get text(): string {
    return this.done;
  }

  /** Searches for a picked text, or clears the search if the same text is picked again. */
  pick(text: string): void {
    const again = this.picked === text;
    this.for(again ? "" : text);
    this.picked = again ? null : text;
  }

  /** Writes a text into the box, and searches for it once typing pauses. */
  for(text: string): void {
    this.picked = null;
    const { input } = this.callbacks.box;
    if (input.value !== text) input.value = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(text), REST_MS);
  }

  private now(text: string): void {
    this.done = text;
    const found = pattern(text);
    this.appearance.search(found);
    this.requests.begin();
    this.callbacks.box.searched(found && "problem" in found ? found.problem : "", "");
    this.callbacks.changed();
    this.tell();
  }

  /** Goes to the next or the previous match; a text that was typed just now is searched for first. */
  step(forward: boolean): void {
    clearTimeout(this.timer);
    const { value } = this.callbacks.box.input;
    if (this.done !== value) this.now(value);
    if (this.appearance.searching) this.callbacks.go(forward);
  }

  /** Shows the number of matches, two frames later because the timelines count while they draw. */
  tell(): void {
    if (!this.appearance.searching) return;
    const isLatest = this.requests.begin();
    requestAnimationFrame(() => requestAnimationFrame(() => isLatest() && this.callbacks.box.searched("", this.count())));
  }

  /** Returns the number of the picked match and of all, or how many events match on all timelines. */
  private count(): string {
    const { view } = this.callbacks;
    const lanes = steppedLanes(view.trace, this.appearance);
    const rank = hitNumber(lanes, view.event);
    if (rank !== null) return `${count(rank)} of ${count(lanes.reduce((sum, { found }) => sum + found.lane.count, 0))}`;
    // Matches of calls and labels are those of the main timeline.
    const events = this.callbacks.events() || lanes.reduce((sum, { found }) => sum + found.lane.count, 0);
    return events === 0 ? NOTHING_FOUND : plural(events, "found", "found");
  }
}
