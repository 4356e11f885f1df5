// What is to be known of the traces before anything else: what cannot be read, what is folded, what the recording lacks.

import { unreadSentences } from "./data/losses.ts";
import { isMissing } from "./data/missing.ts";
import type { Overview } from "./data/overview.ts";
import type { Trace } from "./data/trace.ts";
import { fill, h } from "./dom.ts";

export class Notice {
  readonly element = h("p", { class: "notice", role: "status", hidden: true });

  constructor(
    private readonly overview: Overview,
    private readonly traces: readonly Trace[],
    private readonly first: Trace,
  ) {}

  show(): void {
    const { overview } = this.first;
    const unknown = this.traces.flatMap((trace) => {
      const { findings } = trace;
      const sentences = unreadSentences(findings && !isMissing(findings) ? findings.unread : trace.overview.unread);
      return this.traces.length > 1 ? sentences.map((sentence) => `${trace.overview.name}: ${sentence}`) : sentences;
    });
    const remarks = overview.complete ? [] : overview.remarks;
    const said = [this.overview.file?.folded, ...remarks].filter(Boolean).slice(0, 2);
    if (unknown.length > 0) unknown.push("What rests on it is unknown.");
    this.element.hidden = unknown.length + said.length === 0;
    fill(this.element, unknown.length > 0 ? h("b", {}, `${unknown.join(" ")} `) : null, said.join(" "));
  }
}
