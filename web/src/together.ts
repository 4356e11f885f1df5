// What the ranks of a program are together: their comparison, in a panel, in the verdict and between their timelines.

import { type Collective, isMissing } from "./data/answers.ts";
import type { DataSource } from "./data/source.ts";
import type { Trace } from "./data/trace.ts";
import { Latest } from "./latest.ts";
import { Lateness } from "./lateness.ts";
import { RanksPanel } from "./panels/ranks.ts";
import type { Verdict } from "./panels/verdict.ts";
import type { Shown } from "./ranks.ts";
import { sentence } from "./sentence.ts";
import type { Stage } from "./stage.ts";

export interface TogetherSteps {
  /** Puts the trace of this name first. */
  choose: (name: string) => void;
  stopComparing: () => void;
  /** The verdict is another. */
  changed: () => void;
}

export class Together {
  readonly panel: RanksPanel;
  private readonly lateness: Lateness;
  private readonly asked = new Latest();

  constructor(
    shown: Shown,
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly stage: Stage,
    private readonly verdict: Verdict,
    private readonly steps: TogetherSteps,
  ) {
    this.panel = new RanksPanel(shown.first.causes, (rank) => this.choose(rank), (collective) => this.go(collective));
    const rankOf = (trace: Trace): number => trace.overview.manifest.rank?.rank ?? -1;
    this.lateness = new Lateness(stage.element, () => (stage.comparing ? [] : stage.timelines.map((timeline) => ({ rank: rankOf(timeline.view.trace), timeline }))));
    for (const view of stage.views) view.onChange((change) => (change === "range" || change === "data") && this.lateness.draw());
  }

  /** Asks how the ranks compare, of what there is by now. */
  async ask(): Promise<void> {
    const last = this.asked.begin();
    try {
      const found = await this.source.ranks();
      if (!last()) return;
      this.panel.show(found);
      const there = isMissing(found) ? null : found;
      this.lateness.show(there?.longest ?? []);
      this.verdict.together(there);
      this.steps.changed();
    } catch (error) {
      if (last()) this.panel.show({ missing: sentence(error) });
    }
  }

  /** Timelines were changed. */
  renew(): void {
    this.lateness.draw();
  }

  choose(rank: number): void {
    const trace = this.traces.find(({ overview }) => overview.manifest.rank?.rank === rank);
    if (trace) this.steps.choose(trace.overview.name);
  }

  private go({ first_ns, skew_ns }: Collective): void {
    this.steps.stopComparing();
    this.stage.view.show({ from_ns: first_ns - skew_ns, to_ns: first_ns + 2 * skew_ns });
  }
}
