// Decides how events are drawn: their colour, and whether they match the search. A slot is an index in the theme's
// colours of work, and a key says what an event is of, mostly an index in the trace's strings.

import { type NameKind, ColourSlots } from "./colour-slots.ts";
import type { Causes } from "./data/causes.ts";
import type { Code } from "./data/code.ts";
import type { Trace, Track } from "./data/trace.ts";
import { NO_LABEL } from "./data/trace.ts";
import { type Colours, colours, mixed, PARTS, REST, type Theme, workSlots } from "./draw/palette.ts";
import type { Lane } from "./lane/lane.ts";
import { marks, type Pattern } from "./search-pattern.ts";
import { trackNames } from "./timeline/track-names.ts";
import type { Colouring } from "./view-state.ts";

/** Returns the colour of a host call: that of the cause that it explains. */
export function callColour(call: string, causes: Causes, colours: Colours): string {
  const facts = causes.call(call);
  // Calls are paler than the gaps, because readers look for the gaps.
  if (facts?.cause) return mixed(causes.colour(facts.cause), colours.background, 0.45);
  return facts?.waits ? colours.hostWait : colours.host;
}

/** The share of its colour that an event keeps when it does not match the search. */
const PALE_SHARE = 0.3;

/** The events of a lane that match the search, as a lane of their own; `place` has their indices in the original lane. */
export interface FoundEvents {
  lane: Lane;
  place: Uint32Array;
}

/** The matches of the search in one trace: its strings, and its lanes. */
interface SearchMarks {
  strings: readonly string[];
  marks: Uint8Array;
  lanes: WeakMap<Lane, FoundEvents>;
}

/** Returns the names in a trace that a search may be for. */
function namesOf(trace: Trace): string[] {
  const { findings, code, overview } = trace;
  const there = findings && !("missing" in findings) ? findings : null;
  return [
    ...trace.strings,
    ...(there?.kernels ?? []).map(({ name }) => name),
    ...(there?.labels ?? []).map(({ path }) => path),
    ...(code?.header.frames ?? []).map(({ text }) => text),
    ...(code?.header.lines ?? []).map(({ text }) => text),
    ...overview.causes.map(({ name }) => name),
    ...trace.tracks.map((track) => trackNames(track).title),
  ];
}

/** The theme, the colouring and the search of the whole page, with what was computed for them. */
export class Appearance {
  theme: Theme = "light";
  colouring: Colouring = "kernel";
  /** The matches of each trace; empty without a search. */
  private searchMarks = new Map<Trace, SearchMarks>();
  /** The search; null without one. */
  private wanted: Exclude<Pattern, { problem: string }> = null;
  /** The typing errors that texts may have, because none matches exactly: those of the most similar one. Null where one matches; with the traces' change counters when that was decided. */
  private loose: { errors: number | null; changes: number } = { errors: null, changes: -1 };
  private readonly pales: Record<Theme, Map<string, string>> = { light: new Map(), dark: new Map() };
  private readonly lineSlots = new WeakMap<Code, Uint8Array>();
  private readonly slots: ColourSlots;

  constructor(private readonly traces: readonly Trace[]) {
    this.slots = new ColourSlots(traces);
  }

  get colours(): Colours {
    return colours(this.theme);
  }

  get searching(): boolean {
    return this.wanted !== null;
  }

  /** Whether the search shows names that are only similar, because no name matches it exactly. */
  get isLoose(): boolean {
    const { wanted, loose, traces } = this;
    if (!wanted?.errors) return false;
    const changes = traces.reduce((sum, trace) => sum + trace.changes + (trace.findings ? 1 : 0) + (trace.code ? 1 : 0), 0);
    if (changes !== loose.changes) {
      const before = loose.errors;
      loose.changes = changes;
      const names = traces.flatMap(namesOf);
      const { errors } = wanted;
      loose.errors = names.some(wanted.matches) ? null : names.reduce((least, name) => (least <= 1 ? least : Math.min(least, errors(name))), Infinity);
      if (before !== loose.errors) this.searchMarks = new Map();
    }
    return loose.errors !== null;
  }

  /** Tells whether a text matches the search; null without a search. */
  private get matches(): ((text: string) => boolean) | null {
    const { isLoose, wanted, loose } = this;
    if (!isLoose || !wanted?.errors) return wanted?.matches ?? null;
    const [errors, most] = [wanted.errors, loose.errors ?? Infinity];
    // Notes and the like are no names of a trace, and may match exactly where no name does.
    return (text) => wanted.matches(text) || (errors(text) <= most && most < Infinity);
  }

  /** Returns whether a text matches the search. Without a search every text does. */
  finds(text: string): boolean {
    return this.matches?.(text) ?? true;
  }

  /** Sets the search. An invalid pattern counts as none. */
  search(pattern: Pattern): void {
    this.wanted = pattern && "matches" in pattern ? pattern : null;
    this.loose = { errors: null, changes: -1 };
    this.searchMarks = new Map();
  }

  /** Returns the matches among the strings that the trace has by now. */
  private marked(trace: Trace, matches: (text: string) => boolean): SearchMarks {
    const known = this.searchMarks.get(trace);
    if (known && known.strings === trace.strings && known.marks.length === trace.strings.length) return known;
    const marked = { strings: trace.strings, marks: marks(trace.strings, matches), lanes: new WeakMap<Lane, FoundEvents>() };
    this.searchMarks.set(trace, marked);
    return marked;
  }

  /** Returns the matches in a lane, or null where the search does not apply to it. */
  foundIn(trace: Trace, track: Track, lane: number): FoundEvents | null {
    // Gaps are never matched: readers look for them during a search, too.
    const { matches } = this;
    if (!matches || track.kind === "gaps") return null;
    const { marks: texts, lanes } = this.marked(trace, matches);
    const it = track.lanes[lane];
    const known = lanes.get(it);
    if (known) return known;
    const labels = track.labels?.[lane];
    // The keys of samples are lines of code, not strings of the trace.
    const marks = track.kind === "samples" ? this.lineMarks(trace, matches) : texts;
    const found = it.filtered((i) => marks[it.key[i]] === 1 || (labels !== undefined && labels[i] !== NO_LABEL && texts[labels[i]] === 1));
    lanes.set(it, found);
    return found;
  }

  /** Returns a function that tells whether a key of a track matches the search, for tracks without rows in the page. */
  findsKey(trace: Trace, track: Track): (key: number) => boolean {
    const { matches } = this;
    if (!matches || track.kind === "gaps") return () => true;
    const { marks } = this.marked(trace, matches);
    return (key) => marks[key] === 1;
  }

  /** Marks the lines of code that match. The last entry is for unknown code. */
  private lineMarks(trace: Trace, matches: (text: string) => boolean): Uint8Array {
    const lines = trace.code?.header.lines ?? [];
    return marks([...lines.map(({ text }) => text), "unknown code"], matches);
  }

  /** Returns the paler colour of events that do not match the search. */
  pale(colour: string): string {
    const of = this.pales[this.theme];
    const known = of.get(colour);
    if (known) return known;
    const pale = mixed(colour, this.colours.background, PALE_SHARE);
    of.set(colour, pale);
    return pale;
  }

  /** Returns the colour of a line of code. The most frequent lines have colours of their own. */
  lineColour(code: Code, line: number): string {
    let slots = this.lineSlots.get(code);
    if (!slots) this.lineSlots.set(code, (slots = workSlots(code.counts)));
    return this.colours.work[slots[line] ?? REST];
  }

  /** Discards the matches of a track whose labels have been loaded. */
  forget(trace: Trace, track: Track): void {
    for (const lane of track.lanes) this.searchMarks.get(trace)?.lanes.delete(lane);
  }

  /** Fixes the colours of names as far as possible, once all that is in sight has loaded. */
  settle(): void {
    this.slots.settle();
  }

  /** Returns the colour slot of a name. */
  slotOf(trace: Trace, name: number | null, by: NameKind): number {
    return (name === null ? undefined : this.slots.slotsOf(trace, by)[name]) ?? REST;
  }

  /** Returns the colour of a name, for tables. */
  nameColour(trace: Trace, name: number | null, by: NameKind): string {
    return by === "kernel" && name !== null && trace.isTransfer(name) ? PARTS.transfer : this.colours.work[this.slotOf(trace, name, by)];
  }

  /** Returns a function from an event of a lane to its colour. */
  colourOf(trace: Trace, track: Track, lane: number): (event: number) => string {
    const labels = track.labels?.[lane];
    if (track.kind === "work" && this.colouring === "label" && labels) {
      const { work } = this.colours;
      const slots = this.slots.slotsOf(trace, "label");
      return (event) => (labels[event] === NO_LABEL ? work[REST] : (work[slots[labels[event]]] ?? work[REST]));
    }
    const { key } = track.lanes[lane];
    const colour = this.keyColour(trace, track);
    return (event) => colour(key[event]);
  }

  /** Returns a function from a key of a track to its colour. */
  keyColour(trace: Trace, track: Track): (key: number) => string {
    const { colours } = this;
    switch (track.kind) {
      case "work": {
        const rest = colours.work[REST];
        if (this.colouring !== "kernel") return () => rest;
        const slots = this.slots.slotsOf(trace, "kernel");
        return (key) => (trace.isTransfer(key) ? PARTS.transfer : (colours.work[slots[key]] ?? rest));
      }
      case "gaps":
        return (key) => trace.causes.colour(trace.text(key));
      case "calls":
        return (key) => callColour(trace.text(key), trace.causes, colours);
      case "command-buffers":
        return () => colours.host;
      case "samples": {
        const { code } = trace;
        return (key) => (code ? this.lineColour(code, key) : colours.host);
      }
      default:
        return () => colours.marker;
    }
  }
}
