// The causes of idle time, and which of them a host call explains: all as the analysis has them.

import type { CallFacts, CauseFacts, GapTotal } from "./answers.ts";

export class Causes {
  private readonly facts: ReadonlyMap<string, CauseFacts>;
  private readonly calls: ReadonlyMap<string, CallFacts>;
  private chosen: ReadonlyMap<string, string> = new Map();

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
    return this.chosen.get(cause) ?? this.facts.get(cause)?.advice ?? "";
  }

  /** Takes the advice that the analysis chose. */
  advise(totals: readonly GapTotal[]): void {
    const chosen = new Map<string, string>();
    for (const total of totals) if (total.advice) chosen.set(total.cause, total.advice);
    this.chosen = chosen;
  }

  call(call: string): CallFacts | undefined {
    return this.calls.get(call);
  }
}
