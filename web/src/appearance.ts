// How events look: their colour and whether the search finds them.

import { type NameKind, ColourSlots } from "./colour-slots.ts";
import type { Causes } from "./data/causes.ts";
import type { Code } from "./data/code.ts";
import type { Trace, Track } from "./data/trace.ts";
import { NO_LABEL } from "./data/trace.ts";
import { type Colours, colours, mixed, REST, type Theme, workSlots } from "./draw/palette.ts";
import type { Lane } from "./lane/lane.ts";
import { marks, type Pattern } from "./search-pattern.ts";
import type { Colouring } from "./view-state.ts";

/** The colour of a host call: that of the cause that it explains. */
export function callColour(call: string, causes: Causes, colours: Colours): string {
  const facts = causes.call(call);
  // Paler than the gaps, which are what one looks for.
  if (facts?.cause) return mixed(causes.colour(facts.cause), colours.background, 0.45);
  return facts?.waits ? colours.hostWait : colours.host;
}

/** How much of its colour is left to what the search does not find. */
const PALE_SHARE = 0.3;

/** A lane's events that the search finds, as a lane of their own. */
export interface FoundEvents {
  lane: Lane;
  place: Uint32Array;
}

/** What of a trace the search finds: which of the strings that were there, and in lanes. */
interface SearchMarks {
  strings: readonly string[];
  marks: Uint8Array;
  lanes: WeakMap<Lane, FoundEvents>;
}

export class Appearance {
  theme: Theme = "light";
  colouring: Colouring = "kernel";
  /** What the search finds, by index in a trace's strings; null without a search. */
  private found = new Map<Trace, SearchMarks>();
  private matches: ((text: string) => boolean) | null = null;
  private readonly pales: Record<Theme, Map<string, string>> = { light: new Map(), dark: new Map() };
  private readonly lineSlots = new WeakMap<Code, Uint8Array>();
  private readonly slots: ColourSlots;

  constructor(traces: readonly Trace[]) {
    this.slots = new ColourSlots(traces);
  }

  get colours(): Colours {
    return colours(this.theme);
  }

  get searching(): boolean {
    return this.matches !== null;
  }

  /** Whether the search finds a text; without a search it does. */
  finds(text: string): boolean {
    return this.matches?.(text) ?? true;
  }

  search(pattern: Pattern): void {
    this.matches = pattern && "matches" in pattern ? pattern.matches : null;
    this.found = new Map();
  }

  /** What the search finds among the strings that a trace has by now. */
  private marked(trace: Trace, matches: (text: string) => boolean): SearchMarks {
    const known = this.found.get(trace);
    if (known && known.strings === trace.strings && known.marks.length === trace.strings.length) return known;
    const marked = { strings: trace.strings, marks: marks(trace.strings, matches), lanes: new WeakMap<Lane, FoundEvents>() };
    this.found.set(trace, marked);
    return marked;
  }

  /** What the search finds of a lane. */
  foundIn(trace: Trace, track: Track, lane: number): FoundEvents | null {
    // Gaps are no work that could be found: they stay what one looks for.
    if (!this.matches || track.kind === "gaps") return null;
    const { marks: texts, lanes } = this.marked(trace, this.matches);
    const it = track.lanes[lane];
    const known = lanes.get(it);
    if (known) return known;
    const labels = track.labels?.[lane];
    // Samples have names of their own.
    const marks = track.kind === "samples" ? this.lineMarks(trace, this.matches) : texts;
    const found = it.filtered((i) => marks[it.key[i]] === 1 || (labels !== undefined && labels[i] !== NO_LABEL && texts[labels[i]] === 1));
    lanes.set(it, found);
    return found;
  }

  /** Says whether the search finds what is called so on a track that has no rows here. */
  findsKey(trace: Trace, track: Track): (key: number) => boolean {
    if (!this.matches || track.kind === "gaps") return () => true;
    const { marks } = this.marked(trace, this.matches);
    return (key) => marks[key] === 1;
  }

  private lineMarks(trace: Trace, matches: (text: string) => boolean): Uint8Array {
    const lines = trace.code?.header.lines ?? [];
    return marks([...lines.map(({ text }) => text), "unknown code"], matches);
  }

  /** A colour of what the search does not find: paler, so that it can still be told what it is. */
  pale(colour: string): string {
    const of = this.pales[this.theme];
    const known = of.get(colour);
    if (known) return known;
    const pale = mixed(colour, this.colours.background, PALE_SHARE);
    of.set(colour, pale);
    return pale;
  }

  /** The colour of a line of code: the most frequent have their own. */
  lineColour(code: Code, line: number): string {
    let slots = this.lineSlots.get(code);
    if (!slots) this.lineSlots.set(code, (slots = workSlots(code.counts)));
    return this.colours.work[slots[line] ?? REST];
  }

  /** Labels came: what was found without them is not all. */
  forget(trace: Trace, track: Track): void {
    for (const lane of track.lanes) this.found.get(trace)?.lanes.delete(lane);
  }

  /** All that was in sight is there: colours stay as they are, as far as they can. */
  settle(): void {
    this.slots.settle();
  }

  /** Which of the colours of work a name has. */
  slotOf(trace: Trace, name: number | null, by: NameKind): number {
    return (name === null ? undefined : this.slots.slotsOf(trace, by)[name]) ?? REST;
  }

  /** The colour of a name, for tables. */
  nameColour(trace: Trace, name: number | null, by: NameKind): string {
    return this.colours.work[this.slotOf(trace, name, by)];
  }

  /** Gives the colour of the events of a lane. */
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

  /** Gives the colour of what an event is, on a track. */
  keyColour(trace: Trace, track: Track): (key: number) => string {
    const { colours } = this;
    switch (track.kind) {
      case "work": {
        const rest = colours.work[REST];
        if (this.colouring !== "kernel") return () => rest;
        const slots = this.slots.slotsOf(trace, "kernel");
        return (key) => colours.work[slots[key]] ?? rest;
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
