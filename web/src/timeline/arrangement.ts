// How the person who reads the page has arranged a trace's tracks: which are hidden, pinned or folded, their order, and the filter of
// their names. A group, such as a device or a process, holds tracks; a section is a group with those of its tracks that are drawn. A
// pinned track stands at the top, outside of its group. Methods that change it call the listeners.

import type { Trace, Track } from "../data/trace.ts";
import type { CallFacts, Group } from "../generated/protocol.ts";
import { count } from "../time/format.ts";
import { trackNames } from "./track-names.ts";

/** The number of tracks above which secondary ones are hidden at first. */
const MANY_TRACKS = 14;
/** The least number of threads that are bundled. */
const MIN_BUNDLE = 3;

/** The tracks of threads that do only one and the same thing, shown as one row until it is opened. */
export interface Bundle {
  id: string;
  name: string;
  tracks: Track[];
  folded: boolean;
}

/** A group with the tracks that are drawn in it. */
export interface Section {
  group: Group;
  folded: boolean;
  tracks: Track[];
  bundles: Bundle[];
}

/** What is drawn: pinned tracks first, in the order in which they were pinned, then the sections. */
export interface VisibleTracks {
  pinned: Track[];
  sections: Section[];
}

/** The arrangement as texts, for links and storage. Absent fields are as at first. */
export interface ArrangementText {
  /** Ids joined by `*`, each with a letter before it that says what is done with the track. */
  tracks?: string | undefined;
  /** The ids of tracks and groups in an order other than that of the trace, joined by `*`. */
  order?: string | undefined;
  /** The filter of the tracks' names. */
  text?: string | undefined;
}

/** What the reader did with a track, group or bundle; `Arrangement` says what the letters mean. */
type TrackMark = "h" | "s" | "p" | "f" | "u" | "l";

/** Tells whether a track can be drawn at all. */
export type Drawable = (track: Track) => boolean;

/** Holds what the reader has changed, as marks by id, and derives from them what is drawn. */
export class Arrangement {
  /** The ids that the reader has hidden (h), shown (s), pinned (p), folded (f) or unfolded (u), or all of whose lanes are shown (l). */
  private marks: Record<TrackMark, Set<string>> = { h: new Set(), s: new Set(), p: new Set(), f: new Set(), u: new Set(), l: new Set() };
  /** The ids that have a place other than in the trace; all others follow them. */
  private order: string[] = [];
  /** The words of the filter in lower case; `typed` is the filter as it was written. */
  private words: string[] = [];
  private typed = "";
  /** How many of these tracks can be drawn, counted once for each list of tracks. */
  private counted: { tracks: readonly Track[]; drawable: number } | null = null;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly trace: Trace,
    private readonly drawable: Drawable,
  ) {}

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  // ---- visible tracks ----

  /** All tracks that can be drawn, hidden ones included, by group in the reader's order. */
  get all(): { group: Group; tracks: Track[] }[] {
    const own = new Map<string, Track[]>(this.trace.overview.groups.map(({ id }) => [id, []]));
    for (const track of this.inOrder(this.trace.tracks.filter(this.drawable))) own.get(track.overview.group)?.push(track);
    return this.inOrder(this.trace.overview.groups).flatMap((group) => {
      const tracks = own.get(group.id) ?? [];
      return tracks.length > 0 ? [{ group, tracks }] : [];
    });
  }

  /** The tracks that are neither hidden nor filtered out. Threads are bundled only while there is no filter. */
  get arranged(): VisibleTracks {
    const all = this.all;
    const seen = (track: Track): boolean => this.shows(track) && this.finds(track);
    const pinned = [...this.marks.p].flatMap((id) => all.flatMap(({ tracks }) => tracks.filter((track) => track.id === id && seen(track))));
    const sections = all.flatMap(({ group, tracks }) => {
      const own = tracks.filter((track) => seen(track) && !this.marks.p.has(track.id));
      if (own.length === 0) return [];
      const bundles = this.words.length > 0 ? [] : this.bundlesOf(group, own);
      const bundled = new Set(bundles.flatMap((bundle) => bundle.tracks));
      return [{ group, folded: this.marks.f.has(group.id), tracks: own.filter((track) => !bundled.has(track)), bundles }];
    });
    return { pinned, sections };
  }

  /** Bundles the threads that draw nothing but calls of one kind, and the code in those calls. */
  private bundlesOf(group: Group, tracks: readonly Track[]): Bundle[] {
    const threads = new Map<string, Track[]>();
    for (const track of tracks) {
      const thread = `${track.overview.process}.${track.overview.thread}`;
      threads.set(thread, [...(threads.get(thread) ?? []), track]);
    }
    const alike = new Map<string, Track[][]>();
    for (const own of threads.values()) {
      const [calls, ...more] = own.filter(({ kind }) => kind !== "samples");
      const call = calls?.overview.only_call;
      if (calls?.kind !== "calls" || !call || more.length > 0) continue;
      const does = soleActivity(call, this.trace.causes.call(call));
      alike.set(does, [...(alike.get(does) ?? []), own]);
    }
    return [...alike].flatMap(([what, threads]) => {
      const id = `${group.id}.${what.replaceAll(" ", "-")}`;
      return threads.length < MIN_BUNDLE ? [] : [{ id, name: `${count(threads.length)} threads that only ${what}`, tracks: threads.flat(), folded: !this.marks.u.has(id) }];
    });
  }

  /** Sorts by the reader's order; what has no place in it follows in the given order. */
  private inOrder<T extends { id: string }>(all: readonly T[]): T[] {
    if (this.order.length === 0) return [...all];
    const at = new Map(this.order.map((id, at) => [id, at]));
    const place = ({ id }: T): number => at.get(id) ?? this.order.length;
    return [...all].sort((a, b) => place(a) - place(b));
  }

  /** Returns whether a track is hidden at first, because there are many and it repeats others in another form. */
  private secondary({ kind, overview }: Track): boolean {
    if (!(kind === "command-buffers" || kind === "queue-labels" || (kind === "counter" && overview.queue !== null))) return false;
    const { tracks } = this.trace;
    if (this.counted?.tracks !== tracks) this.counted = { tracks, drawable: tracks.filter(this.drawable).length };
    return this.counted.drawable > MANY_TRACKS;
  }

  /** Returns whether a track is not hidden. The filter may leave it out all the same. */
  shows(track: Track): boolean {
    return this.secondary(track) ? this.marks.s.has(track.id) : !this.marks.h.has(track.id);
  }

  /** Returns whether a track passes the filter: all words are in its name, its note or its group's name. */
  private finds(track: Track): boolean {
    if (this.words.length === 0) return true;
    const group = this.trace.overview.groups.find(({ id }) => id === track.overview.group);
    const { name, note } = trackNames(track);
    const text = `${group?.name ?? ""} ${track.overview.name} ${name} ${note}`.toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  get hiddenCount(): number {
    return this.all.reduce((sum, { tracks }) => sum + tracks.filter((track) => !this.shows(track)).length, 0);
  }

  isPinned(track: Track): boolean {
    return this.marks.p.has(track.id);
  }

  get text(): string {
    return this.typed;
  }

  /** Returns whether all lanes of a track are drawn, however many they are. */
  unfolds(track: Track): boolean {
    return this.marks.l.has(track.id);
  }

  // ---- changes ----

  /** Shows only tracks with all of these words in their names. */
  filterBy(text: string): void {
    this.typed = text;
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.changed();
  }

  show(tracks: readonly Track[], shown: boolean): void {
    for (const track of tracks) {
      const [mark, as] = this.secondary(track) ? (["s", shown] as const) : (["h", !shown] as const);
      set(this.marks[mark], track.id, as);
    }
    this.changed();
  }

  pin(track: Track, pinned: boolean): void {
    set(this.marks.p, track.id, pinned);
    this.changed();
  }

  /** Folds a group or a bundle, or unfolds it. */
  fold(id: string, folded: boolean): void {
    if (this.trace.overview.groups.some((group) => group.id === id)) set(this.marks.f, id, folded);
    else set(this.marks.u, id, !folded);
    this.changed();
  }

  /** Draws all lanes of a track, or only the first ones. */
  foldLanes(track: Track, folded: boolean): void {
    set(this.marks.l, track.id, !folded);
    this.changed();
  }

  /** Shows and unfolds whatever hides a track. */
  reveal(track: Track): void {
    if (!this.drawable(track)) return;
    const bundle = this.arranged.sections.flatMap(({ bundles }) => bundles).find(({ tracks }) => tracks.includes(track));
    const folded = !this.isPinned(track) && this.marks.f.has(track.overview.group);
    if (this.shows(track) && this.finds(track) && !folded && !bundle?.folded) return;
    if (!this.finds(track)) this.filterBy("");
    this.show([track], true);
    this.marks.f.delete(track.overview.group);
    const now = this.arranged.sections.flatMap(({ bundles }) => bundles).find(({ tracks }) => tracks.includes(track));
    if (now) this.marks.u.add(now.id);
    this.changed();
  }

  /** Returns the ids among which a track or group can be moved, in order: pinned tracks, the tracks of a section or bundle, or groups. */
  siblings(id: string): string[] {
    const { pinned, sections } = this.arranged;
    const lists: { id: string }[][] = [pinned, sections.map(({ group }) => group), ...sections.flatMap(({ tracks, bundles }) => [tracks, ...bundles.map((bundle) => bundle.tracks)])];
    return lists.find((list) => list.some((one) => one.id === id))?.map((one) => one.id) ?? [];
  }

  /** Moves a track or group before one of its siblings, or after the last for null. Other ids change nothing. */
  move(id: string, before: string | null): void {
    const siblings = this.siblings(id);
    if (id === before || !siblings.includes(id) || (before !== null && !siblings.includes(before))) return;
    const place = (ids: readonly string[]): string[] => {
      const rest = ids.filter((one) => one !== id);
      const last = siblings.filter((one) => one !== id).at(-1);
      const at = before !== null ? rest.indexOf(before) : last === undefined ? rest.length : rest.indexOf(last) + 1;
      return [...rest.slice(0, at), id, ...rest.slice(at)];
    };
    if (this.marks.p.has(id)) {
      this.marks.p = new Set(place([...this.marks.p]));
    } else {
      // The order includes hidden siblings.
      const all = this.all;
      const own = all.find(({ group }) => group.id === id) ? all.map(({ group }) => group.id) : (all.find(({ tracks }) => tracks.some((track) => track.id === id))?.tracks.map((track) => track.id) ?? []);
      const others = this.order.filter((one) => !own.includes(one));
      this.order = [...others, ...this.needed(place(own))];
    }
    this.changed();
  }

  /** Returns the shortest start of an order that determines it; the rest follows in the trace's order. */
  private needed(ids: readonly string[]): string[] {
    const { groups } = this.trace.overview;
    const natural = new Map([...groups, ...this.trace.tracks].map(({ id }, at) => [id, at]));
    const at = (id: string): number => natural.get(id) ?? Infinity;
    let length = ids.length;
    while (length > 0) {
      const rest = ids.slice(length - 1);
      if (rest.some((id, number) => number > 0 && at(rest[number - 1]) > at(id))) break;
      length -= 1;
    }
    return ids.slice(0, length);
  }

  /** Moves a track or group one place up or down. Returns the new place and the number of siblings, or null at an end. */
  step(id: string, by: 1 | -1): { at: number; of: number } | null {
    const siblings = this.siblings(id);
    const at = siblings.indexOf(id);
    const to = at + by;
    if (at < 0 || to < 0 || to >= siblings.length) return null;
    this.move(id, siblings[by < 0 ? to : to + 1] ?? null);
    return { at: to + 1, of: siblings.length };
  }

  /** Restores the initial arrangement. */
  reset(): void {
    this.read({});
    this.changed();
  }

  // ---- as texts ----

  /** The arrangement as texts, which `read` takes. */
  get written(): ArrangementText {
    const marked = (Object.keys(this.marks) as TrackMark[]).flatMap((mark) => [...this.marks[mark]].map((id) => mark + id));
    return {
      ...(marked.length > 0 ? { tracks: marked.join("*") } : {}),
      ...(this.order.length > 0 ? { order: this.order.join("*") } : {}),
      ...(this.typed ? { text: this.typed } : {}),
    };
  }

  /** Reads an arrangement. Ids that the trace does not have are ignored. */
  read({ tracks, order, text }: ArrangementText): void {
    for (const mark of Object.keys(this.marks) as TrackMark[]) this.marks[mark] = new Set();
    for (const one of tracks?.split("*") ?? []) if (one.charAt(0) in this.marks) this.marks[one.charAt(0) as TrackMark].add(one.slice(1));
    this.order = order ? order.split("*") : [];
    this.filterBy(text ?? "");
  }
}

function set(all: Set<string>, id: string, has: boolean): void {
  if (has) all.add(id);
  else all.delete(id);
}

/** Describes what a thread does that makes only one kind of call. */
function soleActivity(call: string, facts: CallFacts | undefined): string {
  if (facts?.cause === "host-compile") return "compile";
  if (facts?.waits) return "wait for the GPU";
  return call === "submit" ? "submit" : `call ${call}`;
}
