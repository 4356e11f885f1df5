// The search of the page: what is typed or picked, what it finds, and going through that.

import { hitLanes, rankOf } from "./hits.ts";
import { Latest } from "./latest.ts";
import type { Look } from "./look.ts";
import { pattern } from "./search.ts";
import { NOTHING_FOUND } from "./topbar.ts";
import { count, of } from "./time/format.ts";
import type { View } from "./view.ts";

/** Somebody who types is waited for. */
const REST_MS = 120;

export interface SearchSteps {
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
  private readonly told = new Latest();
  private done = "";
  /** What was picked in a table or the like instead of typed. */
  private picked: string | null = null;

  constructor(
    private readonly look: Look,
    private readonly steps: SearchSteps,
  ) {}

  /** Whether tables show only what it finds. Where it was picked in one, they stay as they are, so that something else can be picked. */
  get filters(): boolean {
    return this.look.searching && this.picked === null;
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
    const { input } = this.steps.box;
    if (input.value !== text) input.value = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.now(text), REST_MS);
  }

  private now(text: string): void {
    this.done = text;
    const found = pattern(text);
    this.look.search(found);
    this.told.begin();
    this.steps.box.searched(found && "problem" in found ? found.problem : "", "");
    this.steps.changed();
    this.tell();
  }

  /** Goes to the next that is found, or the one before; what was typed just now is looked for first. */
  step(forward: boolean): void {
    clearTimeout(this.timer);
    const { value } = this.steps.box.input;
    if (this.done !== value) this.now(value);
    if (this.look.searching) this.steps.go(forward);
  }

  /** Says how much is found by now, if anything is searched for. The timeline counts while it draws. */
  tell(): void {
    if (!this.look.searching) return;
    const last = this.told.begin();
    requestAnimationFrame(() => requestAnimationFrame(() => last() && this.steps.box.searched("", this.count())));
  }

  private count(): string {
    const { view } = this.steps;
    const lanes = hitLanes(view.trace, this.look);
    const rank = rankOf(lanes, view.event);
    if (rank !== null) return `${count(rank)} of ${count(lanes.reduce((sum, { found }) => sum + found.lane.count, 0))}`;
    const events = this.steps.events();
    return events === 0 ? NOTHING_FOUND : of(events, "found", "found");
  }
}
