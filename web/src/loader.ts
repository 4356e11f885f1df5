// Loads the tracks in sight, the work of the GPUs first, and keeps live traces up to date. A track that is too large
// is loaded in parts: slices of the whole time, and rows or finer slices near the visible range. Timelines call
// `wanted` after each drawing.

import type { Appearance } from "./appearance.ts";
import { type DataSource, Outdated } from "./data/source.ts";
import type { Trace, Track } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { TraceOverview } from "./generated/protocol.ts";
import type { Range } from "./time/range.ts";

/** The most requests that run at a time. */
const MAX_REQUESTS = 3;

/** How long a view must rest before parts are loaded: while it moves, drawing goes first. */
const REST_MS = 80;
/** How long a view may keep moving before its parts are loaded all the same. */
const MAX_WAIT_MS = 500;

/** The kinds of tracks that are loaded first, in this order; others follow. */
const KINDS_BY_PRIORITY = ["work", "gaps", "labels", "calls"];

/** A view whose tracks are loaded. */
interface Viewer {
  readonly trace: Trace;
  readonly range: Range;
}

/** A queue of tracks to load, with a few requests at a time. */
export class Loader {
  private readonly queue: { trace: Trace; track: Track; viewer: Viewer }[] = [];
  private readonly running = new Set<Track>();
  /** Tracks whose label paths were requested since their rows were loaded. */
  private readonly labelled = new WeakSet<Track>();
  /** Tracks in parts whose rows could not be loaded. */
  private readonly unfilled = new WeakSet<Track>();
  /** Views that lack parts and may still be moving. */
  private readonly moving = new WeakMap<Viewer, { timer: ReturnType<typeof setTimeout>; since_ms: number }>();
  /** The part of each track that each view requested last, so that two views of one trace do not take turns for ever. */
  private readonly requested = new WeakMap<Viewer, Map<Track, { range: Range; generation: number }>>();

  constructor(
    private readonly source: DataSource,
    private readonly appearance: Appearance,
    /** Called after each request for a track has ended, also with a failure. */
    private readonly loaded: (trace: Trace, track: Track) => void,
    private readonly failed: (problem: string) => void,
    /** Whether the analyses have answered. */
    private readonly answered: () => boolean,
  ) {}

  /** Loads what is missing of the tracks in sight. */
  wanted(tracks: readonly Track[], viewer: Viewer): void {
    const { trace } = viewer;
    this.ask(tracks.filter((track) => track.state === "waiting" || this.fills(trace, track)), viewer);
    if (tracks.some((track) => this.lacks(track, viewer))) this.later(tracks, viewer);
    if (this.appearance.colouring === "label" || this.appearance.searching) for (const track of tracks) this.labels(trace, track);
  }

  /** Queues tracks that are not queued or loading yet. */
  private ask(tracks: readonly Track[], viewer: Viewer): void {
    const { trace } = viewer;
    for (const track of tracks) {
      if (!track.loading && !this.queue.some((other) => other.track === track)) this.queue.push({ trace, track, viewer });
    }
    this.queue.sort((a, b) => priority(a.track) - priority(b.track));
    this.next();
  }

  /** Requests the parts that a view lacks once the view rests. */
  private later(tracks: readonly Track[], viewer: Viewer): void {
    const moving = this.moving.get(viewer);
    clearTimeout(moving?.timer);
    const since_ms = moving?.since_ms ?? performance.now();
    const timer = setTimeout(
      () => {
        this.moving.delete(viewer);
        this.ask(tracks.filter((track) => this.lacks(track, viewer)), viewer);
      },
      Math.min(REST_MS, since_ms + MAX_WAIT_MS - performance.now()),
    );
    this.moving.set(viewer, { timer, since_ms });
  }

  /** Returns whether to load all rows of a track in parts: not before the analyses have answered, which use all cores and are waited for. */
  private fills(trace: Trace, track: Track): boolean {
    return track.state === "part" && trace.fitsInPage && this.answered() && !this.unfilled.has(track);
  }

  /** Returns whether a view lacks a part of a track in sight. */
  private lacks(track: Track, viewer: Viewer): boolean {
    if (track.state !== "part" || track.loading || track.shows(viewer.range)) return false;
    const requested = this.requested.get(viewer)?.get(track);
    const { range, trace } = viewer;
    return !requested || requested.generation !== trace.overview.generation || requested.range.from_ns !== range.from_ns || requested.range.to_ns !== range.to_ns;
  }

  /** Loads the label paths of a track's events, for colouring and search. */
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
      void this.load(one.trace, one.track, one.viewer);
    }
  }

  /** Loads a track: all of its rows, the part for a view, or what it has gained. Failures become messages. */
  private async load(trace: Trace, track: Track, viewer: Viewer): Promise<void> {
    try {
      if (this.fills(trace, track)) {
        this.unfilled.add(track);
        await trace.loadWhole(track);
        this.unfilled.delete(track);
      } else if (track.state === "part") {
        // The view may have moved since the request was queued.
        const { range } = viewer;
        const { stale } = track;
        this.remember(viewer, track, range);
        await trace.loadPart(track, range);
        // The slices have been renewed, but the part is missing.
        if (stale) this.requested.get(viewer)?.delete(track);
      } else await trace.loadTrack(track);
      this.labelled.delete(track);
    } catch (error) {
      this.failed(errorMessage(error));
    }
    this.running.delete(track);
    this.next();
    this.loaded(trace, track);
  }

  private remember(viewer: Viewer, track: Track, range: Range): void {
    const requested = this.requested.get(viewer) ?? new Map<Track, { range: Range; generation: number }>();
    requested.set(track, { range, generation: viewer.trace.overview.generation });
    this.requested.set(viewer, requested);
  }

  /** Returns whether tracks of work are still to be loaded. */
  get awaitsWork(): boolean {
    return [...this.running, ...this.queue.map(({ track }) => track)].some((track) => track.kind === "work");
  }

  /** Counts the tracks of work that are loaded, and those that are loaded or requested. */
  workOf(trace: Trace): { ready: number; all: number } {
    const coming = new Set([...this.running, ...this.queue.map(({ track }) => track)]);
    const work = trace.tracks.filter((track) => track.kind === "work");
    const there = work.filter(({ state }) => state === "ready" || state === "part");
    return { ready: there.length, all: there.length + work.filter((track) => !there.includes(track) && coming.has(track)).length };
  }

  /** Waits for changes of live traces and takes them. Returns when none is live, or when more traces appear. */
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
          // The trace was completed between two requests; the next ones are for its present edition.
          if (!(error instanceof Outdated)) throw error;
        }
      }
    }
  }

  /** Takes a newer overview, and brings loaded tracks up to date; after a new edition all is loaded anew. */
  private async take(trace: Trace, overview: TraceOverview, callbacks: FollowCallbacks): Promise<void> {
    const loaded = trace.tracks.filter((track) => track.state === "ready");
    if (overview.edition === trace.overview.edition) {
      await trace.loadStrings();
      trace.renew(overview);
    } else {
      // Strings and rows are replaced together, so that no old row is drawn with a new name.
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

/** Callbacks for changes of the traces that are followed. */
export interface FollowCallbacks {
  /** Called before the rows of a trace are replaced, to drop references to them. */
  resetting: (trace: Trace) => void;
  /** Called after a trace has taken a newer overview and its tracks are loaded. */
  grown: (trace: Trace) => void;
  /** Called when there are more traces than before. */
  appeared: () => void;
}

/** Returns the place of a track in the queue, the smallest first. */
function priority(track: Track): number {
  const at = KINDS_BY_PRIORITY.indexOf(track.kind);
  // Tracks that are shown in parts already come last.
  return (at < 0 ? KINDS_BY_PRIORITY.length : at) + (track.state === "part" ? KINDS_BY_PRIORITY.length : 0);
}
