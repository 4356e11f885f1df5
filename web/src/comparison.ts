// Begins and ends the comparison of two sides.

import { type Side, sideName } from "./compare.ts";
import type { Trace } from "./data/trace.ts";
import { Latest } from "./latest.ts";
import type { ComparePanel } from "./panels/compare.ts";
import type { Verdict } from "./panels/verdict.ts";
import { sentence } from "./sentence.ts";
import type { Stage } from "./stage.ts";

/** What a comparison changes on the page. */
export interface Compared {
  root: HTMLElement;
  stage: Stage;
  panel: ComparePanel;
  verdict: Verdict;
  /** Rows have come. */
  came: () => void;
  /** There is another comparison, or none. */
  changed: () => void;
  /** There is none any more. */
  ended: () => void;
  say: (problem: string) => void;
}

export class Comparison {
  private readonly latest = new Latest();

  constructor(
    private readonly traces: readonly Trace[],
    private readonly page: Compared,
  ) {}

  async start(before: Side, after: Side): Promise<void> {
    const { root, stage, panel, verdict } = this.page;
    const last = this.latest.begin();
    try {
      await this.ready(before);
      await this.ready(after);
      await stage.compare(before, after, last);
      if (!last()) return;
      root.dataset.comparing = "true";
      this.page.changed();
      const found = await panel.show(before, after);
      if (!found || !last()) return;
      verdict.showSides([
        { name: sideName(before, this.traces), work: found.before },
        { name: sideName(after, this.traces), work: found.after },
      ]);
    } catch (error) {
      if (last()) this.page.say(sentence(error));
    }
  }

  /** Aligning whole traces needs to know when their work began. */
  private async ready(side: Side): Promise<void> {
    const trace = this.traces[side.trace];
    if (!trace || side.what === "range") return;
    for (const track of trace.tracks) if (track.kind === "work") await trace.awaitTrack(track);
    this.page.came();
  }

  /** Ends the comparison, or what would become one. */
  stop(): void {
    const { root, stage, verdict } = this.page;
    this.latest.begin();
    if (!stage.comparing) return;
    stage.stop();
    delete root.dataset.comparing;
    verdict.showSides([]);
    this.page.ended();
    this.page.changed();
  }
}
