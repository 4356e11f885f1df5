// What the ranks of a program are together: their comparison, in a panel, in the verdict and between their timelines. Ranks may be inside of one
// trace too, each a device.

import { isMissing } from "./data/missing.ts";
import type { Overview } from "./data/overview.ts";
import type { Collective } from "./data/ranks.ts";
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
    private readonly shown: Shown,
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly stage: Stage,
    private readonly verdict: Verdict,
    private readonly steps: TogetherSteps,
  ) {
    this.panel = new RanksPanel(shown.first.causes, (rank) => this.choose(rank), (collective) => this.go(collective));
    const rankOf = (trace: Trace): number | null => (this.inside ? null : (trace.overview.manifest.rank?.rank ?? -1));
    this.lateness = new Lateness(stage.element, () => (stage.comparing ? [] : stage.timelines.map((timeline) => ({ rank: rankOf(timeline.view.trace), timeline }))));
    for (const view of stage.views) view.onChange((change) => (change === "range" || change === "data") && this.lateness.draw());
  }

  /** The ranks are devices of one trace, whose verdict is that of all. */
  private get inside(): boolean {
    return this.traces.length === 1;
  }

  /** Whether there may be ranks. */
  static in(overview: Overview): boolean {
    const [first] = overview.traces;
    return overview.together !== null || (overview.traces.length === 1 && (first.manifest.devices ?? []).length > 1);
  }

  /** Asks how the ranks compare. */
  async ask(): Promise<void> {
    const last = this.asked.begin();
    // Analysing all of them would disturb the program that is recorded.
    if (this.traces.some(({ overview }) => overview.live)) return this.panel.show({ missing: "The ranks are compared when the recording is complete." });
    try {
      const found = await this.source.ranks();
      if (!last()) return;
      this.panel.show(found);
      const there = isMissing(found) ? null : found;
      this.lateness.show(there?.longest ?? []);
      if (!this.inside) this.verdict.together(there);
      this.steps.changed();
    } catch (error) {
      if (last()) this.panel.show({ missing: sentence(error) });
    }
  }

  choose(rank: number): void {
    const trace = this.traces.find(({ overview }) => overview.manifest.rank?.rank === rank);
    if (trace && trace !== this.shown.first) this.steps.choose(trace.overview.name);
  }

  private go({ first_ns, skew_ns }: Collective): void {
    this.steps.stopComparing();
    this.stage.view.show({ from_ns: first_ns - skew_ns, to_ns: first_ns + 2 * skew_ns });
  }
}
