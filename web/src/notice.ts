// A notice at the top of the page: tables that cannot be read, folded data, and remarks about an incomplete trace.

import { unreadSentences } from "./data/losses.ts";
import { isMissing } from "./data/missing.ts";
import type { Trace } from "./data/trace.ts";
import { fill, h } from "./dom.ts";

/** The most remarks that are shown. */
const MAX_REMARKS = 2;

/** The notice, which is hidden while there is nothing to say. */
export class Notice {
  readonly element = h("p", { class: "notice", role: "status", hidden: true });

  constructor(
    private readonly traces: readonly Trace[],
    private readonly first: Trace,
    /** What a saved page leaves out, as a sentence. */
    private readonly folded: string | null,
  ) {}

  /** Shows what is known by now; the findings may name more that cannot be read than the overview. */
  show(): void {
    const { overview } = this.first;
    const unknown = this.traces.flatMap((trace) => {
      const { findings } = trace;
      const sentences = unreadSentences(findings && !isMissing(findings) ? findings.unread : trace.overview.unread);
      return this.traces.length > 1 ? sentences.map((sentence) => `${trace.overview.name}: ${sentence}`) : sentences;
    });
    const remarks = overview.complete ? [] : overview.remarks;
    const sentences = [this.folded, ...remarks].filter(Boolean).slice(0, MAX_REMARKS);
    if (unknown.length > 0) unknown.push("Figures that need this data are unknown.");
    this.element.hidden = unknown.length + sentences.length === 0;
    fill(this.element, unknown.length > 0 ? h("b", {}, `${unknown.join(" ")} `) : null, sentences.join(" "));
  }
}
