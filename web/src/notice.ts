// What is to be known before anything else: what cannot be read, what is folded, what the recording lacks.

import { unreadSentences } from "./data/losses.ts";
import { isMissing } from "./data/missing.ts";
import type { Trace } from "./data/trace.ts";
import { fill, h } from "./dom.ts";

/** So much is said of what is folded or lacks. */
const MAX_REMARKS = 2;

export class Notice {
  readonly element = h("p", { class: "notice", role: "status", hidden: true });

  constructor(
    private readonly traces: readonly Trace[],
    private readonly first: Trace,
    /** What a file leaves out. */
    private readonly folded: string | null,
  ) {}

  show(): void {
    const { overview } = this.first;
    const unknown = this.traces.flatMap((trace) => {
      const { findings } = trace;
      const sentences = unreadSentences(findings && !isMissing(findings) ? findings.unread : trace.overview.unread);
      return this.traces.length > 1 ? sentences.map((sentence) => `${trace.overview.name}: ${sentence}`) : sentences;
    });
    const remarks = overview.complete ? [] : overview.remarks;
    const said = [this.folded, ...remarks].filter(Boolean).slice(0, MAX_REMARKS);
    if (unknown.length > 0) unknown.push("What rests on it is unknown.");
    this.element.hidden = unknown.length + said.length === 0;
    fill(this.element, unknown.length > 0 ? h("b", {}, `${unknown.join(" ")} `) : null, said.join(" "));
  }
}
