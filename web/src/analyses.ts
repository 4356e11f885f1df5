// Asks for a trace's findings (the results of the server's analyses) once the work in sight has loaded, and updates
// every part of the page that shows them.

import type { DataSource } from "./data/source.ts";
import { stepsOf } from "./data/steps.ts";
import type { Trace } from "./data/trace.ts";
import { FindingsLoader } from "./findings-loader.ts";
import type { Loader } from "./loader.ts";
import type { Minimap } from "./minimap.ts";
import type { Notice } from "./notice.ts";
import type { Panels } from "./panels/panels.ts";
import type { Sidebar } from "./panels/sidebar.ts";
import type { Verdict } from "./panels/verdict.ts";
import type { RankComparison } from "./rank-comparison.ts";
import { count, plural } from "./time/format.ts";
import type { View } from "./view.ts";

/** The parts of the page that show findings. */
export interface AnalysesParts {
  verdict: Verdict;
  panels: Panels;
  sidebar: Sidebar;
  minimap: Minimap;
  notice: Notice;
  rankComparison: RankComparison | null;
}

/** Decides when findings are asked for. `ask` is called after each load, `grown` and `picked` after those events. */
export class Analyses {
  private readonly findingsLoader: FindingsLoader;

  constructor(
    private readonly view: View,
    /** The traces whose findings are asked for without a request of the reader. */
    private readonly traces: readonly Trace[],
    private readonly loader: Loader,
    source: DataSource,
    private readonly parts: AnalysesParts,
    private readonly views: () => readonly View[],
    failed: (problem: string) => void,
  ) {
    this.findingsLoader = new FindingsLoader(source, (trace) => this.explained(trace), failed);
  }

  /** Asks for findings once the work in sight has loaded: both use all cores, and the work is looked at first. */
  ask(): void {
    if (this.loader.awaitsWork) return;
    for (const trace of this.traces) if (!this.findingsLoader.has(trace)) void this.findingsLoader.ask(trace);
  }

  /** Asks again for the findings of a trace that has grown. */
  grown(trace: Trace): void {
    const { trace: first } = this.view;
    if (trace === first && !trace.findings) this.show();
    if (trace === first || this.findingsLoader.has(trace)) void this.findingsLoader.ask(trace);
    for (const view of this.views()) if (view.trace === trace) this.picked(view);
  }

  /** Asks for the findings of another rank when one of its events is picked, but not while it is recorded: that would disturb the program. */
  picked({ event, trace }: View): void {
    if (event === null || trace.overview.live || this.traces.includes(trace) || this.findingsLoader.has(trace)) return;
    void this.findingsLoader.ask(trace);
  }

  /** Updates the page after the findings of a trace, or why there are none, have arrived. */
  private explained(trace: Trace): void {
    const { panels, notice, rankComparison } = this.parts;
    trace.steps = trace.findings && "steps" in trace.findings && !trace.overview.live ? stepsOf(trace.findings) : null;
    panels.compare.fillChoices();
    notice.show();
    if (trace === this.view.trace) {
      this.show();
      void rankComparison?.ask();
    }
    for (const view of this.views()) if (view.trace === trace) view.changed("data");
  }

  /** Shows the findings of the first trace, or the progress until they are there. */
  show(): void {
    const { verdict, panels, sidebar, minimap, notice } = this.parts;
    const { findings, overview } = this.view.trace;
    verdict.show(findings, overview, loadingMessage(this.loader, this.view.trace));
    panels.show();
    sidebar.legend.show();
    minimap.draw();
    notice.show();
  }
}

/** Returns a message about the progress until the findings are there. */
export function loadingMessage(loader: Loader, trace: Trace): string {
  const { ready, all } = loader.workOf(trace);
  return ready < all ? `Loading: ${count(ready)} of ${plural(all, "track", "tracks")} of GPU work ${ready === 1 ? "is" : "are"} here…` : "Analysing the trace…";
}
