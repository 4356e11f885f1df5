// What the analyses say: asked for when the work in sight is there, shown by all that tells of it.

import type { DataSource } from "./data/source.ts";
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

/** What tells of the findings. */
export interface AnalysesParts {
  verdict: Verdict;
  panels: Panels;
  sidebar: Sidebar;
  minimap: Minimap;
  notice: Notice;
  rankComparison: RankComparison | null;
}

export class Analyses {
  private readonly findingsLoader: FindingsLoader;

  constructor(
    private readonly view: View,
    /** The traces that are analysed on their own. */
    private readonly traces: readonly Trace[],
    private readonly loader: Loader,
    source: DataSource,
    private readonly parts: AnalysesParts,
    private readonly views: () => readonly View[],
    failed: (problem: string) => void,
  ) {
    this.findingsLoader = new FindingsLoader(source, (trace) => this.explained(trace), failed);
  }

  /** Asks, once the work in sight is there: both take all cores, and work is looked at first. */
  ask(): void {
    if (this.loader.awaitsWork) return;
    for (const trace of this.traces) if (!this.findingsLoader.has(trace)) void this.findingsLoader.ask(trace);
  }

  /** Asks again: a trace has more than before. */
  grown(trace: Trace): void {
    const { trace: first } = this.view;
    if (trace === first && !trace.findings) this.show();
    if (trace === first || this.findingsLoader.has(trace)) void this.findingsLoader.ask(trace);
    for (const view of this.views()) if (view.trace === trace) this.picked(view);
  }

  /** Asks for another rank when something of it is picked: not while it is recorded, as that would disturb the program. */
  picked({ event, trace }: View): void {
    if (event === null || trace.overview.live || this.traces.includes(trace) || this.findingsLoader.has(trace)) return;
    void this.findingsLoader.ask(trace);
  }

  private explained(trace: Trace): void {
    const { panels, notice, rankComparison } = this.parts;
    panels.compare.fillChoices();
    notice.show();
    if (trace === this.view.trace) {
      this.show();
      void rankComparison?.ask();
    }
    for (const view of this.views()) if (view.trace === trace) view.changed("data");
  }

  show(): void {
    const { verdict, panels, sidebar, minimap, notice } = this.parts;
    const { findings, overview } = this.view.trace;
    verdict.show(findings, overview, coming(this.loader, this.view.trace));
    panels.show();
    sidebar.legend.show();
    minimap.draw();
    notice.show();
  }
}

/** What is said until the analyses have answered: how far it is. */
export function coming(loader: Loader, trace: Trace): string {
  const { ready, all } = loader.workOf(trace);
  return ready < all ? `Loading: ${count(ready)} of ${plural(all, "track", "tracks")} of GPU work ${ready === 1 ? "is" : "are"} here…` : "Analysing the trace…";
}
