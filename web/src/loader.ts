// Loads what is in sight, the work of the GPUs first, and keeps a live trace up to date.

import type { Appearance } from "./appearance.ts";
import type { TraceOverview } from "./data/overview.ts";
import { type DataSource, Outdated } from "./data/source.ts";
import type { Trace, Track } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { Range } from "./time/range.ts";

/** Requests at a time. */
const MAX_REQUESTS = 3;

/** Parts are loaded when what is seen has rested so long: while it moves, drawing goes first. */
const REST_MS = 80;
/** It may move on for so long before they are loaded all the same. */
const MAX_WAIT_MS = 500;

const KINDS_BY_PRIORITY = ["work", "gaps", "labels", "calls"];

/** Who looks at tracks. */
interface Viewer {
  readonly trace: Trace;
  readonly range: Range;
}

export class Loader {
  private readonly queue: { trace: Trace; track: Track; looker: Viewer }[] = [];
  private readonly running = new Set<Track>();
  private readonly labelled = new WeakSet<Track>();
  /** Tracks in parts whose rows could not be had. */
  private readonly unfilled = new WeakSet<Track>();
  /** Views that lack parts and may not rest yet. */
  private readonly moving = new WeakMap<Viewer, { timer: ReturnType<typeof setTimeout>; since_ms: number }>();
  /** What each view asked for last of tracks in parts: two views of one trace do not take turns for ever. */
  private readonly asked = new WeakMap<Viewer, Map<Track, { range: Range; generation: number }>>();

  constructor(
    private readonly source: DataSource,
    private readonly appearance: Appearance,
    private readonly loaded: (trace: Trace, track: Track) => void,
    private readonly failed: (problem: string) => void,
    /** Whether the analyses have answered. */
    private readonly answered: () => boolean,
  ) {}

  /** Tracks that are seen: what is not there yet is loaded. */
  wanted(tracks: readonly Track[], looker: Viewer): void {
    const { trace } = looker;
    this.ask(tracks.filter((track) => track.state === "waiting" || this.fills(trace, track)), looker);
    if (tracks.some((track) => this.lacks(track, looker))) this.later(tracks, looker);
    if (this.appearance.colouring === "label" || this.appearance.searching) for (const track of tracks) this.labels(trace, track);
  }

  private ask(tracks: readonly Track[], looker: Viewer): void {
    const { trace } = looker;
    for (const track of tracks) {
      if (!track.loading && !this.queue.some((other) => other.track === track)) this.queue.push({ trace, track, looker });
    }
    this.queue.sort((a, b) => priority(a.track) - priority(b.track));
    this.next();
  }

  /** Asks for parts that a view lacks once it rests. */
  private later(tracks: readonly Track[], looker: Viewer): void {
    const moving = this.moving.get(looker);
    clearTimeout(moving?.timer);
    const since_ms = moving?.since_ms ?? performance.now();
    const timer = setTimeout(
      () => {
        this.moving.delete(looker);
        this.ask(tracks.filter((track) => this.lacks(track, looker)), looker);
      },
      Math.min(REST_MS, since_ms + MAX_WAIT_MS - performance.now()),
    );
    this.moving.set(looker, { timer, since_ms });
  }

  /** Whether all rows of a track in parts are to be loaded: not before the analyses, which take all cores too, and are waited for. */
  private fills(trace: Trace, track: Track): boolean {
    return track.state === "part" && trace.isHeld && this.answered() && !this.unfilled.has(track);
  }

  /** Whether a part is to be loaded of a track that is seen. */
  private lacks(track: Track, looker: Viewer): boolean {
    if (track.state !== "part" || track.loading || track.shows(looker.range)) return false;
    const asked = this.asked.get(looker)?.get(track);
    const { range, trace } = looker;
    return !asked || asked.generation !== trace.overview.generation || asked.range.from_ns !== range.from_ns || asked.range.to_ns !== range.to_ns;
  }

  /** Label paths of a track's events, for colouring and search. */
  private labels(trace: Trace, track: Track): void {
    if (track.count === 0 || track.labels || this.labelled.has(track) || (track.kind !== "work" && track.kind !== "command-buffers")) return;
    this.labelled.add(track);
    trace
      .loadLabels(track)
      .then(() => {
        this.appearance.forget(trace, track);
        this.loaded(trace, track);
      })
      .catch((error: unknown) => {
        this.labelled.delete(track);
        if (!(error instanceof Outdated)) this.failed(errorMessage(error));
      });
  }

  private next(): void {
    while (this.running.size < MAX_REQUESTS) {
      const one = this.queue.shift();
      if (!one) return;
      this.running.add(one.track);
      void this.load(one.trace, one.track, one.looker);
    }
  }

  private async load(trace: Trace, track: Track, looker: Viewer): Promise<void> {
    try {
      if (this.fills(trace, track)) {
        this.unfilled.add(track);
        await trace.loadWhole(track);
        this.unfilled.delete(track);
      } else if (track.state === "part") {
        // By now it may be somewhere else.
        const { range } = looker;
        const { stale } = track;
        this.remember(looker, track, range);
        await trace.loadPart(track, range);
        // Its slices are there again, and the part is not.
        if (stale) this.asked.get(looker)?.delete(track);
      } else await trace.loadTrack(track);
      this.labelled.delete(track);
    } catch (error) {
      this.failed(errorMessage(error));
    }
    this.running.delete(track);
    this.next();
    this.loaded(trace, track);
  }

  private remember(looker: Viewer, track: Track, range: Range): void {
    const asked = this.asked.get(looker) ?? new Map<Track, { range: Range; generation: number }>();
    asked.set(track, { range, generation: looker.trace.overview.generation });
    this.asked.set(looker, asked);
  }

  /** Whether work is still to come. */
  get awaitsWork(): boolean {
    return [...this.running, ...this.queue.map(({ track }) => track)].some((track) => track.kind === "work");
  }

  /** How many tracks of work are there, of those that are or will be. */
  workOf(trace: Trace): { ready: number; all: number } {
    const coming = new Set([...this.running, ...this.queue.map(({ track }) => track)]);
    const work = trace.tracks.filter((track) => track.kind === "work");
    const there = work.filter(({ state }) => state === "ready" || state === "part");
    return { ready: there.length, all: there.length + work.filter((track) => !there.includes(track) && coming.has(track)).length };
  }

  /** Follows traces while they are recorded; ends when they are complete, or another one has appeared. */
  async follow(traces: readonly Trace[], callbacks: FollowCallbacks): Promise<void> {
    while (traces.some((trace) => trace.overview.live)) {
      const live = await this.source.live(traces.map((trace) => trace.overview.generation));
      if (live.traces.length !== traces.length) return callbacks.appeared();
      const grown = traces.filter(({ overview }, number) => live.traces[number].generation !== overview.generation || live.traces[number].live !== overview.live);
      if (grown.length === 0) continue;
      const overview = await this.source.overview();
      for (const trace of grown) {
        try {
          await this.take(trace, overview.traces[trace.number], callbacks);
        } catch (error) {
          // It was completed between two questions: the next are of what there is now.
          if (!(error instanceof Outdated)) throw error;
        }
      }
    }
  }

  private async take(trace: Trace, overview: TraceOverview, callbacks: FollowCallbacks): Promise<void> {
    const loaded = trace.tracks.filter((track) => track.state === "ready");
    if (overview.edition === trace.overview.edition) {
      await trace.loadStrings();
      trace.renew(overview);
    } else {
      // All at once, so that no old row is seen under a new name.
      const { strings } = await this.source.strings(trace.number, 0, overview.edition);
      callbacks.resetting(trace);
      trace.reset(overview, strings);
    }
    for (const track of loaded) {
      if (!trace.tracks.includes(track)) continue;
      await (track.state === "ready" ? trace.catchUp(track) : trace.awaitTrack(track));
      this.labelled.delete(track);
    }
    callbacks.grown(trace);
  }
}

/** What is done when traces that are followed change. */
export interface FollowCallbacks {
  /** Its rows are about to be replaced: nothing may hold them. */
  resetting: (trace: Trace) => void;
  grown: (trace: Trace) => void;
  /** There are more traces than before. */
  appeared: () => void;
}

function priority(track: Track): number {
  const at = KINDS_BY_PRIORITY.indexOf(track.kind);
  // What is shown already comes last.
  return (at < 0 ? KINDS_BY_PRIORITY.length : at) + (track.state === "part" ? KINDS_BY_PRIORITY.length : 0);
}
