// Saves the arrangement of a trace's tracks for the next time: on the server where that keeps arrangements, or else
// in the browser's storage.

import type { DataSource } from "../data/source.ts";
import type { Overview, TraceOverview } from "../generated/protocol.ts";
import type { Arrangement, ArrangementText } from "./arrangement.ts";

/** Returns the key of a trace in the browser's storage, which names its start. */
function keyOf({ name, start_unix_ns, origin_ns }: TraceOverview): string {
  return `gapscope-tracks ${start_unix_ns ?? name}.${origin_ns}`;
}

/** Saves the arrangement of one trace. */
export class SavedArrangement {
  private sending = false;
  /** The arrangement to send after the request under way. */
  private next: ArrangementText | null = null;

  constructor(
    private readonly source: DataSource,
    private readonly overview: Overview,
    /** The trace's number in the overview. */
    private readonly number: number,
  ) {}

  private get trace(): TraceOverview {
    return this.overview.traces[this.number];
  }

  /** Restores the saved arrangement, and saves every change from now on. */
  follow(arrangement: Arrangement): void {
    arrangement.read(this.found);
    arrangement.onChange(() => this.keep(arrangement.written));
  }

  /** Saves an arrangement; on the server only the latest one after the request under way. */
  private keep(arranged: ArrangementText): void {
    if (!this.overview.keeps) return keepHere(this.trace, arranged);
    this.next = arranged;
    if (!this.sending) void this.send();
  }

  private async send(): Promise<void> {
    this.sending = true;
    while (this.next) {
      const arranged = this.next;
      this.next = null;
      // An arrangement that cannot be saved lasts until the page is closed.
      await this.source.keepArrangement(this.number, arranged).catch(() => undefined);
    }
    this.sending = false;
  }

  /** The saved arrangement; an empty one where nothing was saved. */
  private get found(): ArrangementText {
    return this.overview.keeps ? asWritten(this.trace.arranged) : foundHere(this.trace);
  }
}

/** Saves an arrangement in the browser, or removes it where nothing was changed. */
function keepHere(trace: TraceOverview, arranged: ArrangementText): void {
  try {
    if (Object.keys(arranged).length === 0) localStorage.removeItem(keyOf(trace));
    else localStorage.setItem(keyOf(trace), JSON.stringify(arranged));
  } catch {
    // Without storage the arrangement lasts until the page is closed.
  }
}

function foundHere(trace: TraceOverview): ArrangementText {
  try {
    return asWritten(JSON.parse(localStorage.getItem(keyOf(trace)) ?? "{}"));
  } catch {
    // A saved page may have no storage, and the stored text may be from something else.
    return {};
  }
}

/** Takes what is text of a stored value, whatever that is. */
function asWritten(found: unknown): ArrangementText {
  const text = (name: string): string | undefined => {
    const value: unknown = typeof found === "object" && found !== null ? (found as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
  return { tracks: text("tracks"), order: text("order"), text: text("text") };
}
