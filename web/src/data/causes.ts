// The causes of idle time, and the kinds of host calls with the functions that were called, as the analyses define them.

import type { CallFacts, CauseFacts, CauseNote, Findings } from "../generated/protocol.ts";


/** Looks up causes of idle time by key, with the notes of the report once `note` has been called with it. */
export class Causes {
  private readonly facts: ReadonlyMap<string, CauseFacts>;
  private readonly calls: ReadonlyMap<string, CallFacts>;
  private notes: ReadonlyMap<string, CauseNote> = new Map();

  /** Takes the causes and the kinds of host calls from the trace's overview. */
  constructor(facts: readonly CauseFacts[], calls: readonly CallFacts[]) {
    this.facts = new Map(facts.map((one) => [one.cause, one]));
    this.calls = new Map(calls.map((one) => [one.name, one]));
  }

  /** Returns what is known of a cause; undefined for a key that the trace's overview does not list. */
  get(cause: string): CauseFacts | undefined {
    return this.facts.get(cause);
  }

  /** Returns the readable name of a cause, or its key where the page does not know it. */
  name(cause: string): string {
    return this.facts.get(cause)?.name ?? cause;
  }

  /** Returns the colour of a cause; a cause that the page does not know has the colour of `unknown`. */
  colour(cause: string): string {
    return (this.facts.get(cause) ?? this.facts.get("unknown"))?.colour ?? "#000000";
  }

  /** Returns the colour of a side of the verdict: that of the first cause of this side. */
  colourOfSide(side: string): string {
    for (const facts of this.facts.values()) if (facts.side === side) return facts.colour;
    return this.colour("unknown");
  }

  /** Returns a sentence that says what happened in idle time of a cause; empty for an unknown cause. */
  sentence(cause: string): string {
    return this.facts.get(cause)?.sentence ?? "";
  }

  /** Returns advice for a cause: that for this trace once it has been analysed, before that the general one. */
  advice(cause: string): string {
    return asSentence(this.notes.get(cause)?.advice ?? this.facts.get(cause)?.advice ?? "");
  }

  /** Returns the code that the submitting threads ran during all idle time of a cause, where samples tell. */
  code(cause: string): string | null {
    return this.notes.get(cause)?.code ?? null;
  }

  /** Takes the report's notes on the causes that it found. */
  note({ gaps, gap_notes }: Pick<Findings, "gaps" | "gap_notes">): void {
    this.notes = new Map((gaps ?? []).flatMap(({ cause }, at) => (gap_notes?.[at] ? [[cause, gap_notes[at]] as const] : [])));
  }

  /** Returns what is known of calls with a name, a function's or a kind's; undefined for one that the overview does not list. */
  call(name: string): CallFacts | undefined {
    return this.calls.get(name);
  }
}

/** Adds a capital and a full stop, which advice comes without. */
function asSentence(advice: string): string {
  return advice && `${advice.charAt(0).toUpperCase()}${advice.slice(1)}.`;
}
