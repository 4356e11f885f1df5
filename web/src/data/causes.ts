// The causes of idle time, and which of them a host call explains: all as the analysis has them.

import type { Findings } from "./findings.ts";
import type { CauseNote } from "./gaps.ts";

/** What the analysis knows of a cause of idle time, in the words of the trace's API. */
export interface CauseFacts {
  cause: string;
  /** The part of the verdict's time that it counts for. */
  side: string;
  letter: string;
  colour: string;
  name: string;
  sentence: string;
  /** What suits most programs. */
  advice: string;
}

/** A kind of host call. */
export interface CallFacts {
  call: string;
  /** Why a device idles whose next work has not been submitted while the thread is in this call. */
  cause: string | null;
  /** It returns when the GPU has got somewhere, or asks whether it has. */
  waits: boolean;
}

export class Causes {
  private readonly facts: ReadonlyMap<string, CauseFacts>;
  private readonly calls: ReadonlyMap<string, CallFacts>;
  private notes: ReadonlyMap<string, CauseNote> = new Map();

  constructor(facts: readonly CauseFacts[], calls: readonly CallFacts[]) {
    this.facts = new Map(facts.map((one) => [one.cause, one]));
    this.calls = new Map(calls.map((one) => [one.call, one]));
  }

  get(cause: string): CauseFacts | undefined {
    return this.facts.get(cause);
  }

  /** The name of a cause for people; of one that is not known its key. */
  name(cause: string): string {
    return this.facts.get(cause)?.name ?? cause;
  }

  /** The colour of a cause; one that is not known is drawn as unknown. */
  colour(cause: string): string {
    return (this.facts.get(cause) ?? this.facts.get("unknown"))?.colour ?? "#000000";
  }

  /** The colour of a part of the verdict's time: that of the first cause that counts for it. */
  colourOfSide(side: string): string {
    for (const facts of this.facts.values()) if (facts.side === side) return facts.colour;
    return this.colour("unknown");
  }

  /** What happened, in one sentence. */
  sentence(cause: string): string {
    return this.facts.get(cause)?.sentence ?? "";
  }

  /** What to do about it: what fits this recording once its analysis has come. */
  advice(cause: string): string {
    return asSentence(this.notes.get(cause)?.advice ?? this.facts.get(cause)?.advice ?? "");
  }

  /** The code that the submitting threads ran in all of its time, where samples tell. */
  code(cause: string): string | null {
    return this.notes.get(cause)?.code ?? null;
  }

  /** Takes what the report says of the causes that it found. */
  note({ gaps, gap_notes }: Pick<Findings, "gaps" | "gap_notes">): void {
    this.notes = new Map((gaps ?? []).flatMap(({ cause }, at) => (gap_notes?.[at] ? [[cause, gap_notes[at]] as const] : [])));
  }

  call(call: string): CallFacts | undefined {
    return this.calls.get(call);
  }
}

/** Advice has no capital and no full stop of its own. */
function asSentence(advice: string): string {
  return advice && `${advice.charAt(0).toUpperCase()}${advice.slice(1)}.`;
}
