// Updates the page while its traces are being recorded: it waits for the server's news, and moves a view of the end
// with the end.

import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { Overview } from "./generated/protocol.ts";
import type { Loader } from "./loader.ts";
import type { ShownTraces } from "./shown-traces.ts";
import { followed, type Range } from "./time/range.ts";
import type { TimelineStack } from "./timeline-stack.ts";
import type { Topbar } from "./topbar.ts";
import type { View } from "./view.ts";

/** The parts of the page that change when a trace grows. */
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
  /** Called when a trace has grown, after its timelines have been updated. */
  grown: (trace: Trace) => void;
  /** Called before the page is reloaded. */
  leaving: () => void;
  showMessage: (problem: string) => void;
}

/** `show` tells whether anything is recorded, and `follow` runs until nothing is. */
export class LiveTraces {
  /** The bounds of the view before the trace grew. */
  private seen: Range;

  constructor(
    private readonly parts: LiveTracesParts,
    private readonly callbacks: LiveTracesCallbacks,
  ) {
    this.seen = parts.view.bounds;
  }

  /** Shows whether any trace is being recorded. */
  show(): void {
    const { topbar, traces } = this.parts;
    topbar.recording(traces.some((trace) => trace.overview.live));
  }

  /** Follows the traces until all are complete, or the server does not answer any more. */
  async follow(loader: Loader): Promise<void> {
    const { traces, timelineStack, topbar } = this.parts;
    try {
      await loader.follow(traces, {
        resetting: (trace) => timelineStack.views.forEach((view) => view.trace === trace && view.releaseEvents()),
        grown: (trace) => this.grown(trace),
        appeared: () => this.reload(),
      });
    } catch (error) {
      this.callbacks.showMessage(errorMessage(error));
      topbar.recording(false);
    }
  }

  /** Updates the page after a trace has grown; a trace that has its first tracks makes the page load anew. */
  private grown(trace: Trace): void {
    const { root, overview, shown, view, timelineStack } = this.parts;
    this.show();
    // A trace with its first rows needs a timeline of its own.
    if (overview.together && trace.tracks.length > 0 && trace !== shown.first && !shown.beside.includes(trace)) return this.reload();
    // A view of the end of the trace keeps following the end.
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
