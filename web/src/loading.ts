// Loads what is in sight, the work of the GPUs first, and keeps a live trace up to date.

import type { Overview } from "./data/answers.ts";
import type { DataSource } from "./data/source.ts";
import type { Trace, Track } from "./data/trace.ts";
import type { Look } from "./look.ts";

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
        this.look.forget(track);
        this.loaded(trace, track);
      })
      .catch((error: unknown) => this.failed(error instanceof Error ? error.message : String(error)));
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
      this.failed(error instanceof Error ? error.message : String(error));
    }
    this.running.delete(track);
    this.next();
    this.loaded(trace, track);
  }

  /** Whether work is still to come. */
  get awaitsWork(): boolean {
    return [...this.running, ...this.queue.map(({ track }) => track)].some((track) => track.kind === "work");
  }

  /** Follows a trace while it is recorded; ends when it is complete. */
  async follow(trace: Trace, grown: () => void): Promise<void> {
    while (trace.overview.live) {
      const live = await this.source.live(trace.number, trace.overview.generation);
      if (live.generation === trace.overview.generation && live.live && !live.reset) continue;
      const overview: Overview = await this.source.overview();
      const known = trace.tracks.filter((track) => track.state === "ready").map((track) => track.id);
      if (live.reset) trace.strings.length = 0;
      await trace.loadStrings();
      trace.renew(overview.traces[trace.number], live.reset);
      for (const id of known) {
        const track = trace.track(id);
        if (track) await trace.loadTrack(track);
        if (track) this.labelled.delete(track);
      }
      grown();
    }
  }
}

function rank(track: Track): number {
  const at = FIRST.indexOf(track.kind);
  return at < 0 ? FIRST.length : at;
}
