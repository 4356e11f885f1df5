// Asks what the analyses say of a trace, again when it has grown.

import { type DataSource, Outdated } from "./data/source.ts";
import type { Trace } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";

export class FindingsLoader {
  private readonly asked = new Set<Trace>();
  /** Questions that are under way; `again` when the trace has changed since. */
  private readonly asking = new Map<Trace, { again: boolean }>();

  constructor(
    private readonly source: DataSource,
    /** A trace's findings, or why there are none, have come. */
    private readonly answered: (trace: Trace) => void,
    private readonly failed: (problem: string) => void,
  ) {}

  /** Whether a trace's findings were ever asked for. */
  has(trace: Trace): boolean {
    return this.asked.has(trace);
  }

  /** Asks for a trace's findings: one question at a time, so that the last answer is of what there is. */
  async ask(trace: Trace): Promise<void> {
    this.asked.add(trace);
    const other = this.asking.get(trace);
    if (other) {
      other.again = true;
      return;
    }
    const own = { again: false };
    this.asking.set(trace, own);
    try {
      do {
        own.again = false;
        await this.once(trace);
      } while (own.again);
    } finally {
      this.asking.delete(trace);
    }
  }

  private async once(trace: Trace): Promise<void> {
    const { edition } = trace.overview;
    try {
      const findings = await this.source.findings(trace.number);
      // Names may have come with the analysis.
      await trace.loadStrings();
      // What was found of another edition names other rows and strings, and is asked for again when that is here.
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
