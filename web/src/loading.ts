// Loads what is in sight, the work of the GPUs first, and keeps a live trace up to date.

import type { TraceOverview } from "./data/overview.ts";
import { type DataSource, Outdated } from "./data/source.ts";
import type { Trace, Track } from "./data/trace.ts";
import type { Look } from "./look.ts";
import { sentence } from "./sentence.ts";

/** Requests at a time. */
const AT_ONCE = 3;
/** Rows that the page holds: 25 bytes each. Tracks beyond are drawn from their summary. */
const MOST_ROWS = 40_000_000;

const FIRST = ["work", "gaps", "labels", "calls"];

export class Loader {
  private readonly queue: { trace: Trace; track: Track }[] = [];
  private readonly running = new Set<Track>();
  private readonly labelled = new WeakSet<Track>();

  constructor(
    private readonly source: DataSource,
    private readonly look: Look,
    private readonly loaded: (trace: Trace, track: Track) => void,
    private readonly failed: (problem: string) => void,
  ) {}

  /** Tracks that are seen: those not there yet are loaded. */
  wanted(trace: Trace, tracks: readonly Track[]): void {
    for (const track of tracks) {
      if (track.state === "waiting" && !this.queue.some((other) => other.track === track)) {
        if (this.rows(trace) + (track.overview.rows ?? 0) > MOST_ROWS) {
          track.state = { missing: "too many rows for one page: select a part of the recording with `gapscope query`" };
        } else {
          this.queue.push({ trace, track });
        }
      }
      if (track.state === "ready" && (this.look.colouring === "label" || this.look.searching)) this.labels(trace, track);
    }
    this.queue.sort((a, b) => rank(a.track) - rank(b.track));
    this.next();
  }

  private rows(trace: Trace): number {
    return trace.tracks.reduce((sum, track) => sum + (track.state === "waiting" ? 0 : (track.overview.rows ?? 0)), 0);
  }

  /** Label paths of a track's events, for colouring and search. */
  private labels(trace: Trace, track: Track): void {
    if (track.labels || this.labelled.has(track) || (track.kind !== "work" && track.kind !== "command-buffers")) return;
    this.labelled.add(track);
    trace
      .loadLabels(track)
      .then(() => {
        this.look.forget(trace, track);
        this.loaded(trace, track);
      })
      .catch((error: unknown) => {
        this.labelled.delete(track);
        if (!(error instanceof Outdated)) this.failed(sentence(error));
      });
  }

  private next(): void {
    while (this.running.size < AT_ONCE) {
      const one = this.queue.shift();
      if (!one) return;
      this.running.add(one.track);
      void this.load(one.trace, one.track);
    }
  }

  private async load(trace: Trace, track: Track): Promise<void> {
    try {
      await trace.loadTrack(track);
      this.labelled.delete(track);
    } catch (error) {
      this.failed(sentence(error));
    }
    this.running.delete(track);
    this.next();
    this.loaded(trace, track);
  }

  /** Whether work is still to come. */
  get awaitsWork(): boolean {
    return [...this.running, ...this.queue.map(({ track }) => track)].some((track) => track.kind === "work");
  }

  /** How many tracks of work are there, of those that are or will be. */
  workOf(trace: Trace): { ready: number; all: number } {
    const coming = new Set([...this.running, ...this.queue.map(({ track }) => track)]);
    const work = trace.tracks.filter((track) => track.kind === "work");
    const ready = work.filter((track) => track.state === "ready").length;
    return { ready, all: ready + work.filter((track) => track.state !== "ready" && coming.has(track)).length };
  }

  /** Follows traces while they are recorded; ends when they are complete, or another one has appeared. */
  async follow(traces: readonly Trace[], steps: Following): Promise<void> {
    while (traces.some((trace) => trace.overview.live)) {
      const live = await this.source.live(traces.map((trace) => trace.overview.generation));
      if (live.traces.length !== traces.length) return steps.appeared();
      const grown = traces.filter(({ overview }, number) => live.traces[number].generation !== overview.generation || live.traces[number].live !== overview.live);
      if (grown.length === 0) continue;
      const overview = await this.source.overview();
      for (const trace of grown) {
        try {
          await this.take(trace, overview.traces[trace.number], steps);
        } catch (error) {
          // It was completed between two questions: the next are of what there is now.
          if (!(error instanceof Outdated)) throw error;
        }
      }
    }
  }

  private async take(trace: Trace, overview: TraceOverview, steps: Following): Promise<void> {
    const loaded = trace.tracks.filter((track) => track.state === "ready");
    if (overview.edition === trace.overview.edition) {
      await trace.loadStrings();
      trace.renew(overview);
    } else {
      // All at once, so that no old row is seen under a new name.
      const { strings } = await this.source.strings(trace.number, 0, overview.edition);
      steps.resetting(trace);
      trace.reset(overview, strings);
    }
    for (const track of loaded) {
      if (!trace.tracks.includes(track)) continue;
      await (track.state === "ready" ? trace.catchUp(track) : trace.awaitTrack(track));
      this.labelled.delete(track);
    }
    steps.grown(trace);
  }
}

/** What is done when traces that are followed change. */
export interface Following {
  /** Its rows are about to be replaced: nothing may hold them. */
  resetting: (trace: Trace) => void;
  grown: (trace: Trace) => void;
  /** There are more traces than before. */
  appeared: () => void;
}

function rank(track: Track): number {
  const at = FIRST.indexOf(track.kind);
  return at < 0 ? FIRST.length : at;
}
