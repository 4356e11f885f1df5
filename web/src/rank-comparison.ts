// Compares the ranks of a program (parts that do the same work) in a panel, in the verdict and between timelines. A
// rank has a trace of its own, or is a device of one trace. A collective is an operation of several ranks.

import { CollectiveWaits } from "./collective-waits.ts";
import { isMissing } from "./data/missing.ts";
import type { DataSource } from "./data/source.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { Collective, Overview } from "./generated/protocol.ts";
import { LatestRequest } from "./latest-request.ts";
import { RanksPanel } from "./panels/ranks.ts";
import type { Verdict } from "./panels/verdict.ts";
import type { ShownTraces } from "./shown-traces.ts";
import type { TimelineStack } from "./timeline-stack.ts";

export interface RankComparisonCallbacks {
  /** Shows the trace of this name first. */
  choose: (name: string) => void;
  /** Leaves the comparison of two traces. */
  stopComparing: () => void;
  /** Called when the comparison has arrived. */
  changed: () => void;
}

/** Requests the comparison of ranks, and gives it to the panel of ranks, to the verdict, and to the lines that lead from waits to the late rank. */
export class RankComparison {
  readonly panel: RanksPanel;
  private readonly collectiveWaits: CollectiveWaits;
  private readonly requests = new LatestRequest();

  constructor(
    private readonly shown: ShownTraces,
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly timelineStack: TimelineStack,
    private readonly verdict: Verdict,
    private readonly callbacks: RankComparisonCallbacks,
  ) {
    this.panel = new RanksPanel(shown.first.causes, (rank) => this.choose(rank), (collective) => this.go(collective));
    // Null stands for ranks that are devices of this one trace, and -1 for a trace without a rank.
    const rankOf = (trace: Trace): number | null => (this.inside ? null : (trace.overview.manifest.rank?.rank ?? -1));
    this.collectiveWaits = new CollectiveWaits(timelineStack.element, () => (timelineStack.comparing ? [] : timelineStack.timelines.map((timeline) => ({ rank: rankOf(timeline.view.trace), timeline }))));
    for (const view of timelineStack.views) view.onChange((change) => (change === "range" || change === "data") && this.collectiveWaits.draw());
  }

  /** Returns whether the ranks are devices of one trace, whose verdict covers all of them. */
  private get inside(): boolean {
    return this.traces.length === 1;
  }

  /** Returns whether the opened traces may be ranks: traces of one program, or one trace with several devices. */
  static in(overview: Overview): boolean {
    const [first] = overview.traces;
    return overview.together !== null || (overview.traces.length === 1 && (first.manifest.devices ?? []).length > 1);
  }

  /** Requests the comparison of the ranks. */
  async ask(): Promise<void> {
    const isLatest = this.requests.begin();
    // Analysing all ranks would disturb the program that is recorded.
    if (this.traces.some(({ overview }) => overview.live)) return this.panel.show({ missing: "The ranks are compared once recording has ended." });
    try {
      const found = await this.source.ranks();
      if (!isLatest()) return;
      this.panel.show(found);
      const there = isMissing(found) ? null : found;
      this.collectiveWaits.show(there?.longest ?? []);
      if (!this.inside) this.verdict.takeRanks(there);
      this.callbacks.changed();
    } catch (error) {
      if (isLatest()) this.panel.show({ missing: errorMessage(error) });
    }
  }

  /** Shows the trace of a rank first. */
  choose(rank: number): void {
    const trace = this.traces.find(({ overview }) => overview.manifest.rank?.rank === rank);
    if (trace && trace !== this.shown.first) this.callbacks.choose(trace.overview.name);
  }

  /** Shows the time from one skew (last less first arrival) before a collective's first arrival to two after it. */
  private go({ first_ns, skew_ns }: Collective): void {
    this.callbacks.stopComparing();
    this.timelineStack.view.show({ from_ns: first_ns - skew_ns, to_ns: first_ns + 2 * skew_ns });
  }
}
