// Traces that are recorded while they are looked at: what is done when they grow.

import type { Overview } from "./data/overview.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { Loader } from "./loader.ts";
import type { ShownTraces } from "./shown-traces.ts";
import { followed, type Range } from "./time/range.ts";
import type { TimelineStack } from "./timeline-stack.ts";
import type { Topbar } from "./topbar.ts";
import type { View } from "./view.ts";

export interface LiveTracesParts {
  root: HTMLElement;
  overview: Overview;
  traces: readonly Trace[];
  shown: ShownTraces;
  view: View;
  timelineStack: TimelineStack;
  topbar: Topbar;
}

export interface LiveTracesCallbacks {
  /** A trace has more than before, and the timelines have it. */
  grown: (trace: Trace) => void;
  /** The page is about to begin anew. */
  leaving: () => void;
  say: (problem: string) => void;
}

export class LiveTraces {
  /** What there was to be seen before the trace grew. */
  private seen: Range;

  constructor(
    private readonly parts: LiveTracesParts,
    private readonly callbacks: LiveTracesCallbacks,
  ) {
    this.seen = parts.view.bounds;
  }

  /** Says whether anything is recorded. */
  show(): void {
    const { topbar, traces } = this.parts;
    topbar.recording(traces.some((trace) => trace.overview.live));
  }

  async follow(loader: Loader): Promise<void> {
    const { traces, timelineStack, topbar } = this.parts;
    try {
      await loader.follow(traces, {
        resetting: (trace) => timelineStack.views.forEach((view) => view.trace === trace && view.releaseEvents()),
        grown: (trace) => this.grown(trace),
        appeared: () => this.reload(),
      });
    } catch (error) {
      this.callbacks.say(errorMessage(error));
      topbar.recording(false);
    }
  }

  private grown(trace: Trace): void {
    const { root, overview, shown, view, timelineStack } = this.parts;
    this.show();
    // Its first rows came: it has a timeline of its own.
    if (overview.together && trace.tracks.length > 0 && trace !== shown.first && !shown.beside.includes(trace)) return this.reload();
    // Who looks at the end goes on looking at it.
    const [before, { bounds }] = [this.seen, view];
    this.seen = bounds;
    if (before.to_ns !== bounds.to_ns || before.from_ns !== bounds.from_ns) view.slide(followed(view.range, before, bounds));
    root.dataset.generation = String(shown.first.overview.generation);
    timelineStack.renew();
    for (const one of timelineStack.views) one.changed("data");
    this.callbacks.grown(trace);
  }

  private reload(): void {
    this.callbacks.leaving();
    location.reload();
  }
}
