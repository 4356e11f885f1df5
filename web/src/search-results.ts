// Lists the matches of the search below its box: kernels, labels, work, calls, gaps, tracks, notes, lines of code and functions.

import type { Appearance } from "./appearance.ts";
import { isMissing } from "./data/missing.ts";
import type { Trace, Track } from "./data/trace.ts";
import { fill, h } from "./dom.ts";
import type { Gap } from "./generated/protocol.ts";
import { gapTexts } from "./panels/gaps.ts";
import { namedKernels } from "./panels/kernels.ts";
import { goToNote, placeText } from "./panels/notes.ts";
import { swatch } from "./panels/swatch.ts";
import { type HitLane, hitLanes, nextHit, hitNumber } from "./search-hits.ts";
import { escaped } from "./search-pattern.ts";
import { count, duration, instant, known, plural } from "./time/format.ts";
import type { Arrangement } from "./timeline/arrangement.ts";
import { trackNames } from "./timeline/track-names.ts";
import { type EventPlace, eventRange, type View } from "./view.ts";

/** The most matches of each kind that are listed. */
const MAX_LISTED = 5;
/** The largest track, in rows, that is loaded only to search it. */
const MAX_LOADED_ROWS = 100_000;

/** What a click on a match does: goes to it, or replaces the search. */
export interface SearchResultsCallbacks {
  event: (event: EventPlace) => void;
  gap: (gap: Gap) => void;
  /** Replaces the search. */
  search: (text: string) => void;
  track: (id: string) => void;
  code: () => void;
  /** Loads tracks, so that they are searched, too. */
  want: (tracks: Track[]) => void;
}

/** One match in the list. `go` runs when it is clicked; without a colour it has no spot. */
interface SearchResult {
  colour?: string;
  text: string;
  note: string;
  go: () => void;
}

/** The matches of one kind: how many there are, and the first of them. */
interface ResultKind {
  name: string;
  count: number;
  /** A restriction of the count, shown after it. */
  but?: string;
  results: SearchResult[];
}

/** The list, which is open while the search box or the list has the focus and there is a search. */
export class SearchResults {
  readonly element = h("div", { class: "results", role: "region", tabindex: "-1", "aria-label": "Search results", hidden: true, onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  private open = false;

  constructor(
    private readonly view: View,
    private readonly appearance: Appearance,
    private readonly arrangement: Arrangement,
    private readonly input: HTMLInputElement,
    private readonly callbacks: SearchResultsCallbacks,
  ) {
    input.addEventListener("focus", () => this.show(true));
    input.addEventListener("input", () => this.show(true));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" || this.element.hidden) return;
      event.preventDefault();
      this.buttons[0]?.focus();
    });
    for (const element of [input, this.element]) element.addEventListener("focusout", (event) => this.left((event as FocusEvent).relatedTarget));
  }

  private get buttons(): HTMLButtonElement[] {
    return [...this.element.querySelectorAll("button")];
  }

  /** Closes the list when the focus goes elsewhere. */
  private left(to: EventTarget | null): void {
    if (to !== this.input && !this.element.contains(to as Node | null)) this.show(false);
  }

  private show(open: boolean): void {
    this.open = open;
    this.renew();
  }

  /** Lists the matches anew. */
  renew(): void {
    this.element.hidden = !this.open || !this.appearance.searching;
    if (this.element.hidden) return fill(this.element);
    const focused = this.buttons.indexOf(document.activeElement as HTMLButtonElement);
    const kinds = this.found().filter(({ count, but }) => count > 0 || but !== undefined);
    fill(
      this.element,
      kinds.length === 0 ? h("p", { class: "note" }, "No matches.") : null,
      kinds.length > 0 && this.appearance.isLoose ? h("p", { class: "note", "data-similar": "true" }, "No name in the trace is exactly this. Similar names:") : null,
      kinds.map(({ name, count: all, but, results }) => [
        h("h3", { "data-kind": name, "data-count": all }, name, h("span", { class: "note" }, ` ${count(all)}${but ?? ""}${results.length < all ? `, ${count(results.length)} listed` : ""}`)),
        h("ul", {}, results.map((result) => h("li", {}, this.button(result)))),
      ]).flat(),
    );
    if (focused >= 0) this.buttons[Math.min(focused, this.buttons.length - 1)]?.focus();
  }

  private button({ colour, text, note, go }: SearchResult): HTMLElement {
    const done = (): void => {
      this.input.focus();
      this.show(false);
      go();
    };
    return h("button", { type: "button", title: text, onclick: done }, colour ? swatch(colour) : null, h("span", { class: "clip" }, text), h("span", { class: "number note" }, note));
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    const { buttons } = this;
    const at = buttons.indexOf(event.target as HTMLButtonElement);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      (buttons[at + by] ?? (by < 0 ? this.input : buttons[0])).focus();
    }
    if (event.key === "Escape") this.input.focus();
  }

  /** Finds the matches of each kind; gaps only among those that the findings list. */
  private found(): ResultKind[] {
    const { trace } = this.view;
    const { findings } = trace;
    const there = findings && !isMissing(findings) ? findings : null;
    const { appearance } = this;
    const kernels = (there ? (namedKernels(there) ?? []) : []).filter(({ name }) => appearance.finds(name));
    const labels = (there?.labels ?? []).filter(({ path }) => appearance.finds(path));
    const gaps = (there?.idle_time?.longest ?? []).filter((gap) => gapTexts(gap, trace).some((text) => appearance.finds(text)));
    const tracks = this.arrangement.all.flatMap(({ tracks }) => tracks).filter((track) => appearance.finds(trackNames(track).title));
    // The code is loaded for the first search.
    if (trace.hasCode && !trace.code) void trace.loadCode().then(() => this.renew(), () => undefined);
    const lines = trace.code?.header.lines.filter(({ text }) => appearance.finds(text)) ?? [];
    const own = new Set(lines.map(({ text }) => text));
    const functions = [...new Set(trace.code?.header.frames.flatMap(({ text }) => (appearance.finds(text) && !own.has(text) ? [text] : [])))];
    const listed = <T>(all: readonly T[], result: (one: T) => SearchResult): { count: number; results: SearchResult[] } => ({ count: all.length, results: all.slice(0, MAX_LISTED).map(result) });
    return [
      { name: "Kernels", ...listed(kernels, (row) => ({ colour: appearance.nameColour(trace, row.key, "kernel"), text: row.name, note: `${count(row.count)} ×  ${known(row.busy_ns, duration)}`, go: () => this.callbacks.search(`^${escaped(row.name)}$`) })) },
      { name: "Labels", ...listed(labels, (row) => ({ text: row.path, note: known(row.inclusive.busy_ns, duration), go: () => this.callbacks.search(escaped(row.path)) })) },
      this.events("Work", trace, "work"),
      this.events("Calls", trace, "calls"),
      this.events("Labels of threads", trace, "thread-labels"),
      {
        name: "Gaps",
        ...listed(gaps, (gap) => ({ colour: trace.causes.colour(gap.cause), text: `${trace.causes.name(gap.cause)}, ${gap.before.name} → ${gap.after.name}`, note: `${duration(gap.duration_ns)} at ${instant(gap.start_ns, 1e4)}`, go: () => this.callbacks.gap(gap) })),
        ...(there?.idle_time && there.idle_time.longest.length < there.idle_time.gap_count ? { but: ` of the ${count(there.idle_time.longest.length)} longest` } : {}),
      },
      { name: "Tracks", ...listed(tracks, (track) => ({ text: trackNames(track).title, note: this.arrangement.shows(track) ? "" : "hidden", go: () => this.callbacks.track(track.id) })) },
      { name: "Notes", ...listed(this.view.notes.filter(({ text }) => appearance.finds(text)), (note) => ({ text: note.text, note: placeText(note), go: () => goToNote(this.view, note) })) },
      { name: "Code", ...listed(lines, ({ text }) => ({ text, note: "", go: () => (this.callbacks.search(escaped(text)), this.callbacks.code()) })) },
      { name: "Functions", ...listed(functions, (text) => ({ text, note: "in stacks", go: () => (this.callbacks.search(escaped(text)), this.callbacks.code()) })) },
    ];
  }

  /** Lists matching events from the picked one on, or else from the left edge. */
  private events(name: string, trace: Trace, kind: "work" | "calls" | "thread-labels"): ResultKind {
    const lanes = hitLanes(trace, this.appearance, kind);
    const all = lanes.reduce((sum, { found }) => sum + found.lane.count, 0);
    const unloaded = trace.tracks.filter((track) => track.kind === kind && track.state !== "ready" && track.overview.rows !== 0);
    const absent = unloaded.length;
    this.callbacks.want(unloaded.filter(({ state, overview }) => state === "waiting" && (overview.rows ?? Infinity) <= MAX_LOADED_ROWS));
    const { event, range } = this.view;
    const places: EventPlace[] = [];
    let next = event && hitNumber(lanes, event) !== null ? event : nextHit(lanes, null, range.from_ns, true);
    while (next && places.length < Math.min(MAX_LISTED, all)) {
      places.push(next);
      next = nextHit(lanes, next, range.from_ns, true);
    }
    const results = places.map((place) => this.event(trace, lanes, place));
    return { name, count: all, results, ...(absent > 0 ? { but: ` so far: ${plural(absent, "track is", "tracks are")} not loaded` } : {}) };
  }

  /** Makes the entry of an event, with its number among the matches. */
  private event(trace: Trace, lanes: readonly HitLane[], place: EventPlace): SearchResult {
    const { from_ns, to_ns } = eventRange(place);
    const key = place.track.lanes[place.lane].key[place.index];
    const colour = this.appearance.colourOf(trace, place.track, place.lane)(place.index);
    const rank = hitNumber(lanes, place);
    return { colour, text: trace.nameOf(place.track, key), note: `${rank === null ? "" : `${count(rank)}.  `}${duration(to_ns - from_ns)} at ${instant(from_ns, 1e4)}`, go: () => this.callbacks.event(place) };
  }
}
