// Loads the findings of traces (the results of the server's analyses) into `Trace.findings`, and loads them again for
// traces that have grown.

import { type DataSource, Outdated } from "./data/source.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";

/** Requests findings, at most one answer at a time for each trace. */
export class FindingsLoader {
  private readonly requested = new Set<Trace>();
  /** The requests under way; `again` is set when the trace has changed since the request began. */
  private readonly running = new Map<Trace, { again: boolean }>();

  constructor(
    private readonly source: DataSource,
    /** Called when a trace's findings, or the reason why there are none, have arrived. */
    private readonly answered: (trace: Trace) => void,
    /** Called with a message when newer findings could not be loaded, and older ones stay. */
    private readonly failed: (problem: string) => void,
  ) {}

  /** Returns whether a trace's findings were ever requested. */
  has(trace: Trace): boolean {
    return this.requested.has(trace);
  }

  /** Requests a trace's findings. Only one request runs at a time, so that the last answer is about the present state. */
  async ask(trace: Trace): Promise<void> {
    this.requested.add(trace);
    const other = this.running.get(trace);
    if (other) {
      other.again = true;
      return;
    }
    const own = { again: false };
    this.running.set(trace, own);
    try {
      do {
        own.again = false;
        await this.once(trace);
      } while (own.again);
    } finally {
      this.running.delete(trace);
    }
  }

  /** Makes one request and takes its answer, unless it is of another edition of the trace. */
  private async once(trace: Trace): Promise<void> {
    const { edition } = trace.overview;
    try {
      const findings = await this.source.findings(trace.number);
      // The analysis may have added names.
      await trace.loadStrings();
      // Findings of another edition refer to other rows and strings. They are requested again when that edition is loaded.
      if (edition !== trace.overview.edition) return;
      trace.findings = findings;
      trace.causes.note(findings);
    } catch (error) {
      if (error instanceof Outdated || edition !== trace.overview.edition) return;
      if (trace.findings && !("missing" in trace.findings)) return this.failed(errorMessage(error));
      trace.findings = { missing: errorMessage(error) };
    }
    this.answered(trace);
  }
}
