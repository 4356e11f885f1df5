// A comparison: two sides put under each other, with what it says of them.

import { type Side, sideName } from "./compare.ts";
import type { Trace } from "./data/trace.ts";
import { Latest } from "./latest.ts";
import type { ComparePanel } from "./panels/compare.ts";
import type { Verdict } from "./panels/verdict.ts";
import { sentence } from "./sentence.ts";
import type { Stage } from "./stage.ts";

export interface ComparingSteps {
  /** Tracks came that were waited for. */
  came: () => void;
  /** Other timelines are shown than before. */
  changed: () => void;
  /** There is one timeline again. */
  ended: () => void;
  say: (problem: string) => void;
}

export class Comparing {
  private readonly begun = new Latest();

  constructor(
    private readonly root: HTMLElement,
    private readonly traces: readonly Trace[],
    private readonly stage: Stage,
    private readonly panel: ComparePanel,
    private readonly verdict: Verdict,
    private readonly steps: ComparingSteps,
  ) {}

  /** `instance`: the one that is shown first, of labels. */
  async start(before: Side, after: Side, instance?: number): Promise<void> {
    const last = this.begun.begin();
    try {
      await this.ready(before);
      await this.ready(after);
      await this.stage.compare(before, after, last, instance);
      if (!last()) return;
      this.root.dataset.comparing = "true";
      this.steps.changed();
      const found = await this.panel.show(before, after);
      if (!found || !last()) return;
      this.verdict.showSides([
        { name: sideName(before, this.traces), work: found.before },
        { name: sideName(after, this.traces), work: found.after },
      ]);
    } catch (error) {
      if (last()) this.steps.say(sentence(error));
    }
  }

  /** Aligning whole traces needs to know when their work began. */
  private async ready(side: Side): Promise<void> {
    const trace = this.traces[side.trace];
    if (!trace || side.what === "range") return;
    for (const track of trace.tracks) if (track.kind === "work") await trace.awaitTrack(track);
    this.steps.came();
  }

  /** Ends the comparison, or what would become one. */
  stop(): void {
    this.begun.begin();
    if (!this.stage.comparing) return;
    this.stage.stop();
    delete this.root.dataset.comparing;
    this.verdict.showSides([]);
    this.steps.ended();
    this.steps.changed();
  }
}
