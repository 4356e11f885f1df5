// The search of the page: what is typed or picked, what it finds, and going through that.

import type { Appearance } from "./appearance.ts";
import { LatestRequest } from "./latest-request.ts";
import { hitLanes, hitNumber } from "./search-hits.ts";
import { pattern } from "./search-pattern.ts";
import { count, plural } from "./time/format.ts";
import { NOTHING_FOUND } from "./topbar.ts";
import type { View } from "./view.ts";

/** Somebody who types is waited for. */
const REST_MS = 120;

export interface SearchCallbacks {
  view: View;
  /** The box in which it is typed, and what is said beside it. */
  box: { input: HTMLInputElement; searched: (problem: string, found: string) => void };
  /** What it finds has changed. */
  changed: () => void;
  /** Work that is found on all timelines. */
  events: () => number;
  /** Goes to the next that is found, or the one before. */
  go: (forward: boolean) => void;
}

export class Search {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly told = new LatestRequest();
  private done = "";
  /** What was picked in a table or the like instead of typed. */
  private picked: string | null = null;

  constructor(
    private readonly appearance: Appearance,
    private readonly callbacks: SearchCallbacks,
  ) {}

  /** Whether tables show only what it finds. Where it was picked in one, they stay as they are, so that something else can be picked. */
  get filters(): boolean {
    return this.appearance.searching && this.picked === null;
  }

  /** What is searched for. */
  get text(): string {
    return this.done;
  }

  /** Searches for what is picked; picked again, or with any other search, that ends. */
  pick(text: string): void {
    const again = this.picked === text;
    this.for(again ? "" : text);
    this.picked = again ? null : text;
  }

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
    this.told.begin();
    this.callbacks.box.searched(found && "problem" in found ? found.problem : "", "");
    this.callbacks.changed();
    this.tell();
  }

  /** Goes to the next that is found, or the one before; what was typed just now is looked for first. */
  step(forward: boolean): void {
    clearTimeout(this.timer);
    const { value } = this.callbacks.box.input;
    if (this.done !== value) this.now(value);
    if (this.appearance.searching) this.callbacks.go(forward);
  }

  /** Says how much is found by now, if anything is searched for. The timeline counts while it draws. */
  tell(): void {
    if (!this.appearance.searching) return;
    const isLatest = this.told.begin();
    requestAnimationFrame(() => requestAnimationFrame(() => isLatest() && this.callbacks.box.searched("", this.count())));
  }

  private count(): string {
    const { view } = this.callbacks;
    const lanes = hitLanes(view.trace, this.appearance);
    const rank = hitNumber(lanes, view.event);
    if (rank !== null) return `${count(rank)} of ${count(lanes.reduce((sum, { found }) => sum + found.lane.count, 0))}`;
    const events = this.callbacks.events();
    return events === 0 ? NOTHING_FOUND : plural(events, "found", "found");
  }
}
