// Starts and stops a comparison of two sides, which are traces, labels or ranges: aligns the timelines of both sides
// and shows the comparison's results.

import { type Side, sideName } from "./comparison-sides.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import { LatestRequest } from "./latest-request.ts";
import type { ComparePanel } from "./panels/compare.ts";
import type { Verdict } from "./panels/verdict.ts";
import type { TimelineStack } from "./timeline-stack.ts";

export interface ComparisonCallbacks {
  /** Called when tracks that the comparison waits for have loaded. */
  came: () => void;
  /** Called when other timelines are shown than before. */
  changed: () => void;
  /** Called when the comparison has ended. */
  ended: () => void;
  showMessage: (problem: string) => void;
}

/** One comparison at a time: a later start or stop makes an earlier start end without effect. */
export class ComparisonController {
  private readonly latest = new LatestRequest();

  constructor(
    private readonly root: HTMLElement,
    private readonly traces: readonly Trace[],
    private readonly timelineStack: TimelineStack,
    private readonly panel: ComparePanel,
    private readonly verdict: Verdict,
    private readonly callbacks: ComparisonCallbacks,
  ) {}

  /** Starts a comparison; `instance` is the instance of labels that is shown first. */
  async start(before: Side, after: Side, instance?: number): Promise<void> {
    const isLatest = this.latest.begin();
    try {
      await this.ready(before);
      await this.ready(after);
      await this.timelineStack.compare(before, after, isLatest, instance);
      if (!isLatest()) return;
      this.root.dataset.comparing = "true";
      this.callbacks.changed();
      const found = await this.panel.show(before, after);
      if (!found || !isLatest()) return;
      this.verdict.showSides([
        { name: sideName(before, this.traces), work: found.before },
        { name: sideName(after, this.traces), work: found.after },
      ]);
    } catch (error) {
      if (isLatest()) this.callbacks.showMessage(errorMessage(error));
    }
  }

  /** Loads the work of a side: aligning whole traces needs the time at which their work began. */
  private async ready(side: Side): Promise<void> {
    const trace = this.traces[side.trace];
    if (!trace || side.what === "range") return;
    for (const track of trace.tracks) if (track.kind === "work") await trace.awaitTrack(track);
    this.callbacks.came();
  }

  /** Ends the comparison, also one that is still starting. */
  stop(): void {
    this.latest.begin();
    if (!this.timelineStack.comparing) return;
    this.timelineStack.stop();
    delete this.root.dataset.comparing;
    this.verdict.showSides([]);
    this.callbacks.ended();
    this.callbacks.changed();
  }
}
