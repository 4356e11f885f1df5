// A trace in the page: loads its tracks, strings and samples, and holds what has been loaded. A track is one line of
// the timeline, and its events lie in lanes, in which no two overlap. A row is an event's place in a table of the
// trace. The generation counts how far a trace that is being recorded has grown; with another edition, after its end,
// all rows and strings are numbered anew.

import { errorMessage } from "../error-message.ts";
import type { Findings, TraceOverview, TrackOverview, Missing } from "../generated/protocol.ts";
import { Lane, type Durations, type Integers } from "../lane/lane.ts";
import { coveringRange, type Range, shared, widened } from "../time/range.ts";
import { Causes } from "./causes.ts";
import { Code, IdleSamples } from "./code.ts";
import { Counter } from "./counter.ts";
import { column, type Frame } from "./frame.ts";
import { contains, Slices } from "./slices.ts";
import type { Steps } from "./steps.ts";
import { type DataSource, Outdated } from "./source.ts";

/** Stands for the label path of an event that has none. */
export const NO_LABEL = 0xffffffff;
/** The duration that a sample without a period is shown with. */
const MOMENT_NS = 1e6;

/** The most rows of a trace that are loaded at once. Larger traces come as slices first, so that all of the trace is soon visible. */
const QUICK_ROWS = 2_000_000;
/** A track with more than this share of those rows is shown in parts. */
const LARGE_SHARE = 1 / 16;
/** The share of the visible length that is loaded before and after it. */
const MARGIN_SHARE = 0.5;

/**
 * `waiting`: nothing was asked for; `ready`: all rows are loaded; `part`: only rows or slices of a part of the time
 * are; an object: the rows cannot be had, and why.
 */
export type TrackState = "waiting" | "loading" | "ready" | "part" | Missing;

/**
 * The loaded part of a track that is too large to be held: its rows, or slices, which are equal spans of time that
 * each give only the busy share and the event that ran longest.
 */
export interface LoadedPart {
  range: Range;
  /** Null where the rows of the part are loaded. */
  slices: Slices | null;
}

/** The place of an event in a track: the number of its lane, and its index in that. */
export interface LanePlace {
  lane: number;
  index: number;
}

/** A track with what is loaded of it. `Trace` hands answers to the methods that begin with `take`. */
export class Track {
  state: TrackState = "waiting";
  /** Resolves when the answer that is under way has been taken. */
  loading: Promise<void> | null = null;
  lanes: Lane[] = [];
  /** For each lane, the table of each event (an index in `tables`, in the upper two bits) and its row in that. */
  rows: Uint32Array[] = [];
  /** For each lane, the label path of each event, once loaded. */
  labels: Uint32Array[] | null = null;
  /** Slices of the whole time of a track that is shown in parts. */
  coarse: Slices | null = null;
  /** The part that the lanes cover. */
  part: LoadedPart | null = null;
  /** Whether the track has grown since its slices were loaded. */
  stale = false;
  tables: string[] = [];
  counter: Counter | null = null;
  /** The busy share of equal slices of the trace's extent, times 255. */
  summary: Uint8Array | null = null;
  /** The generation that the loaded rows or slices are of; 0 before. */
  generation = 0;
  /** Counts how often the track was cleared, so that answers to earlier requests are not taken. */
  cleared = 0;
  overview: TrackOverview;

  constructor(overview: TrackOverview) {
    this.overview = overview;
    this.renew(overview);
  }

  /** Takes a newer overview, and unpacks its busy shares. */
  renew(overview: TrackOverview): void {
    this.overview = overview;
    this.summary = overview.busy === null ? null : Uint8Array.from(atob(overview.busy), (character) => character.charCodeAt(0));
  }

  /** Forgets all rows, because the trace has another edition. */
  clear(): void {
    this.cleared += 1;
    this.state = "waiting";
    this.loading = null;
    this.lanes = [];
    this.rows = [];
    this.labels = null;
    this.tables = [];
    this.counter = null;
    this.coarse = null;
    this.part = null;
    this.stale = false;
    this.generation = 0;
  }

  get id(): string {
    return this.overview.id;
  }
  get kind(): TrackOverview["kind"] {
    return this.overview.kind;
  }
  get isCounter(): boolean {
    return this.kind === "counter";
  }
  /** The number of events that are loaded. */
  get count(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.count, 0);
  }

  get laneCount(): number {
    return Math.max(this.lanes.length, this.coarse?.lanes.length ?? 0);
  }

  /** The range from the first event to the last, as far as it is known; from slices, to within one of them. */
  get extent(): Range | null {
    const { coarse } = this;
    const extents = coarse ? coarse.extents : this.lanes.filter(({ count }) => count > 0).map((lane) => ({ from_ns: lane.start_ns[0], to_ns: lane.end_ns(lane.count - 1) }));
    return extents.length > 0 ? coveringRange(extents) : null;
  }

  /** Returns whether all rows in a range are loaded. */
  has(range: Range): boolean {
    if (this.state === "ready") return true;
    if (!this.coarse || !this.part || this.part.slices) return false;
    // There are no rows outside of the trace.
    const seen = shared(range, this.coarse.range);
    return !seen || contains(this.part.range, seen);
  }

  /** Returns whether a range is shown as well as it can be: by rows, or by slices that are fine enough for it. */
  shows(range: Range): boolean {
    if (this.state !== "part" || !this.coarse) return this.state !== "waiting";
    if (this.stale) return false;
    const seen = shared(range, this.coarse.range);
    if (!seen || this.coarse.suffice(seen) || this.has(seen)) return true;
    return this.part?.slices?.suffice(seen) ?? false;
  }

  /** Splits a range, from left to right, into pieces that are drawn from slices or from events. */
  pieces(range: Range): LoadedPart[] {
    const { coarse, part } = this;
    if (!coarse) return [{ range, slices: null }];
    const inside = part && shared(part.range, range);
    if (!inside) return [{ range, slices: coarse }];
    return [
      { range: { from_ns: range.from_ns, to_ns: inside.from_ns }, slices: coarse },
      { range: inside, slices: part.slices },
      { range: { from_ns: inside.to_ns, to_ns: range.to_ns }, slices: coarse },
    ].filter(({ range: { from_ns, to_ns } }) => from_ns < to_ns);
  }

  /** Takes an answer about the whole time of the track: slices, or all rows where they are few enough. */
  takeCoarse(frame: Frame): void {
    const slices = slicesOf(frame);
    if (!slices) return this.takeWhole(frame);
    this.stale = false;
    this.takePart(frame);
    this.coarse = slices;
    this.part = null;
  }

  /** Takes all rows of a track that was shown in parts. */
  takeWhole(frame: Frame): void {
    this.coarse = this.part = null;
    this.stale = false;
    this.generation = 0;
    this.take(frame);
  }

  /** Takes a part of the track: its rows, or slices, which replace the rows that were loaded. */
  takePart(frame: Frame): void {
    const slices = slicesOf(frame);
    if (slices) {
      this.lanes = [];
      this.rows = [];
      this.labels = null;
    } else {
      this.generation = 0;
      this.take(frame);
    }
    this.generation = frame.header.generation ?? 1;
    this.part = { range: partOf(frame), slices };
    this.state = "part";
  }

  /** Takes all rows, or those after the rows that are loaded. Some tracks always arrive whole. */
  take(frame: Frame): void {
    const start = column(frame, "start") as Float64Array;
    const duration = column(frame, "duration") as Durations;
    const key = column(frame, "name") as Integers;
    const row = column(frame, "row") as Uint32Array;
    const bounds = frame.header.lanes ?? [0, frame.header.rows];
    const more = this.generation > 0 && !frame.header.whole;
    for (let lane = 0; lane + 1 < bounds.length; lane += 1) {
      const [from, to] = [bounds[lane], bounds[lane + 1]];
      const old = more ? this.lanes[lane] : undefined;
      if (old && from === to) continue;
      this.lanes[lane] = new Lane({
        start_ns: joined(old?.start_ns, start.subarray(from, to)) as Float64Array,
        duration_ns: joined(old?.duration_ns, duration.subarray(from, to)) as Durations,
        key: joined(old?.key, key.subarray(from, to)) as Integers,
      });
      this.rows[lane] = joined(old ? this.rows[lane] : undefined, row.subarray(from, to)) as Uint32Array;
    }
    if (!more) {
      this.lanes.length = bounds.length - 1;
      this.rows.length = bounds.length - 1;
    }
    this.tables = frame.header.tables ?? this.tables;
    this.generation = frame.header.generation ?? 1;
    this.labels = null;
    this.state = "ready";
  }

  /** Takes the label paths of the loaded events, in their order. */
  takeLabels(frame: Frame): void {
    const label = column(frame, "label") as Uint32Array;
    let at = 0;
    this.labels = this.lanes.map((lane) => label.subarray(at, (at += lane.count)));
  }

  takeCounter(frame: Frame): void {
    this.counter = new Counter(frame);
    this.generation = frame.header.generation ?? 1;
    this.state = "ready";
  }

  /** Takes the samples of the track's thread. */
  takeSamples(code: Code): void {
    const { lanes, rows } = code.lanesOf(this.id);
    this.lanes = lanes;
    this.rows = rows;
    this.tables = ["samples"];
    this.generation = code.generation;
    this.state = "ready";
  }

  /** Returns the table and row of an event. */
  rowOf(place: LanePlace): { table: string; row: number } {
    const packed = this.rows[place.lane][place.index];
    return { table: this.tables[packed >>> 30] ?? "unknown", row: packed & 0x3fffffff };
  }

  /** Returns the place of the first event with these times; null where none is loaded. */
  placeAt(start_ns: number, duration_ns: number): LanePlace | null {
    for (let lane = 0; lane < this.lanes.length; lane += 1) {
      const it = this.lanes[lane];
      for (let i = it.startingBefore(start_ns); i < it.count && it.start_ns[i] === start_ns; i += 1) {
        if (it.duration_ns[i] === duration_ns) return { lane, index: i };
      }
    }
    return null;
  }

  /** Returns the place of a row that starts at `start_ns`; null where it is not loaded. */
  placeOf(table: string, row: number, start_ns: number): LanePlace | null {
    const kind = this.tables.indexOf(table);
    if (kind < 0) return null;
    const packed = ((kind << 30) | row) >>> 0;
    for (let lane = 0; lane < this.lanes.length; lane += 1) {
      const it = this.lanes[lane];
      for (let i = it.startingBefore(start_ns); i < it.count && it.start_ns[i] <= start_ns; i += 1) {
        if (this.rows[lane][i] === packed) return { lane, index: i };
      }
    }
    return null;
  }
}

/** Returns the range that a frame is of; an empty one at 0 where it is of no part. */
function partOf({ header }: Frame): Range {
  const [from_ns, to_ns] = header.part ?? [0, 0];
  return { from_ns, to_ns };
}

/** Returns the slices of a frame; null where it has rows. */
function slicesOf(frame: Frame): Slices | null {
  return frame.header.slices === undefined ? null : Slices.fromFrame(frame, partOf(frame));
}

type Numbers = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Joins two columns in the wider of their types; without old values it returns `more` itself. */
function joined(old: Numbers | undefined, more: Numbers): Numbers {
  if (!old || old.length === 0) return more;
  const Wider = (old.BYTES_PER_ELEMENT >= more.BYTES_PER_ELEMENT ? old : more).constructor as new (length: number) => Numbers;
  const both = new Wider(old.length + more.length);
  both.set(old);
  both.set(more, old.length);
  return both;
}

/** One trace, with what is loaded of it. Who shows a track calls a method that begins with `load` or `await`. */
export class Trace {
  overview: TraceOverview;
  causes: Causes;
  tracks: Track[];
  /** The names that events and other answers refer to by index. */
  strings: string[] = [];
  /** Counts changes of tracks, their rows and labels, and strings. */
  changes = 0;
  findings: Findings | Missing | null = null;
  /** Called after a track's rows were replaced, with its former lanes. */
  replaced: (track: Track, before: readonly Lane[]) => void = () => undefined;
  /** Samples of stacks, once they have been loaded. */
  code: Code | null = null;
  /** The steps of the program, from its findings; null where none are known. */
  steps: Steps | null = null;
  private loadingStrings: Promise<void> | null = null;
  /** The requests for samples; `of` names the edition and generation that they are of. */
  private loadingCode: { of: string; code: Promise<Code>; idle: Promise<IdleSamples> | null } | null = null;

  constructor(
    /** The trace's number in the server's list. */
    readonly number: number,
    overview: TraceOverview,
    private readonly source: DataSource,
    /** The most rows that may be held: in a larger trace, large tracks stay in parts. Null where the source has no parts. */
    private readonly most_rows: number | null = null,
  ) {
    this.overview = overview;
    this.causes = new Causes(overview.causes, overview.calls);
    this.tracks = overview.tracks.map((track) => new Track(track));
    if (overview.live) source.expect(number, overview.edition);
  }

  /** The time that the trace covers, at least 1 ns. */
  get whole(): Range {
    const [from_ns, to_ns] = this.overview.extent;
    return { from_ns, to_ns: Math.max(to_ns, from_ns + 1) };
  }

  track(id: string | null): Track | undefined {
    return this.tracks.find((track) => track.id === id);
  }

  /** Returns a string by index; `unknown` where it is not loaded. */
  text(name: number): string {
    return this.strings[name] ?? "unknown";
  }

  /** Returns whether a string is the name of a kind of transfer. A kernel with the same name has another string. */
  isTransfer(name: number): boolean {
    const [first, past] = this.overview.transfer_names;
    return name >= first && name < past;
  }

  /** Returns the name of an event from its key: the text of a line of code, a readable cause, or a string. */
  nameOf(track: Track, name: number): string {
    if (track.kind === "samples") return this.code?.lineText(name) ?? "unknown code";
    const text = this.text(name);
    return track.kind === "gaps" ? this.causes.name(text) : text;
  }

  /** Takes a newer overview. A known track stays the same object, so that whoever holds it sees it grow. */
  renew(overview: TraceOverview): void {
    const known = new Map(this.tracks.map((track) => [track.id, track]));
    this.tracks = overview.tracks.map((track) => {
      const old = known.get(track.id);
      old?.renew(track);
      if (old?.state === "part" && old.generation < overview.generation) old.stale = true;
      // A track that could not be loaded may be available now.
      if (old && typeof old.state === "object") old.state = "waiting";
      return old ?? new Track(track);
    });
    this.overview = overview;
    this.causes = new Causes(overview.causes, overview.calls);
    if (this.findings && !("missing" in this.findings)) this.causes.note(this.findings);
    this.changes += 1;
  }

  /** Takes another edition and forgets what was loaded. */
  reset(overview: TraceOverview, strings: readonly string[]): void {
    for (const track of this.tracks) track.clear();
    this.strings = [...strings];
    this.findings = null;
    this.code = null;
    this.steps = null;
    this.loadingStrings = null;
    this.loadingCode = null;
    this.renew(overview);
    this.source.expect(this.number, overview.edition);
  }

  /** Loads the strings that follow those that are loaded. An answer to a request before `reset` is dropped. */
  async loadStrings(): Promise<void> {
    // Requests run one at a time, so that answers are appended in order.
    const before = this.loadingStrings;
    const loading = (async () => {
      await before?.catch(() => undefined);
      const { strings } = this;
      const more = await this.source.strings(this.number, strings.length);
      if (strings !== this.strings || more.from !== strings.length) return;
      for (const text of more.strings) strings.push(text);
      this.changes += 1;
    })();
    this.loadingStrings = loading;
    await loading;
  }

  get hasSamples(): boolean {
    return this.tracks.some(({ kind }) => kind === "samples");
  }

  /** Whether samples or ranges of submitting threads tell the code behind idle time. */
  get hasCode(): boolean {
    return this.hasSamples || this.overview.code === "ranges";
  }

  /** The requests for samples of the trace's present generation; makes the first where there is none. */
  private get codeAsked(): NonNullable<Trace["loadingCode"]> {
    const of = `${this.overview.edition}.${this.overview.generation}`;
    if (this.loadingCode?.of === of) return this.loadingCode;
    const asked = { of, code: this.source.code(this.number).then((frame) => new Code(frame)), idle: null };
    this.loadingCode = asked;
    // After a failure the next request tries again.
    asked.code.catch(() => this.loadingCode === asked && (this.loadingCode = null));
    return asked;
  }

  /** Loads the samples of stacks of the trace's present generation. */
  async loadCode(): Promise<Code> {
    const asked = this.codeAsked;
    const code = await asked.code;
    if (this.loadingCode === asked) this.code = code;
    return code;
  }

  /** Loads the samples in gaps, and all samples before them. */
  loadIdle(): Promise<IdleSamples> {
    const asked = this.codeAsked;
    if (asked.idle) return asked.idle;
    const idle = Promise.all([this.loadCode(), this.source.idleCode(this.number)]).then(([code, frame]) => new IdleSamples(code, frame));
    asked.idle = idle;
    idle.catch(() => (asked.idle = null));
    return idle;
  }

  /** Returns the track and times of a sample; one that a hook took is given a length of 1 ms. */
  async sampleRow(row: number): Promise<{ track: string; start_ns: number; duration_ns: number; times_unknown_because?: string }> {
    const code = await this.loadCode();
    if (row >= code.count) throw new Error(`The trace has no sample ${row}.`);
    return { track: code.threadOf(row).track, start_ns: code.at_ns[row], duration_ns: code.sample(row).period_ns ?? MOMENT_NS };
  }

  /** Resolves when a track is loaded, or is known to be missing. */
  async awaitTrack(track: Track): Promise<void> {
    if (track.state === "waiting" || track.state === "loading") await this.loadTrack(track);
  }

  /** Loads a track, or the rows that it has gained. A failure is kept in the track's state. */
  loadTrack(track: Track): Promise<void> {
    return track.loading ?? this.loaded(track, (cleared) => this.load(track, cleared));
  }

  /**
   * Runs `load` as the track's request. A failure becomes the state of a track that has nothing yet, and is thrown
   * where older rows stay; failures of requests before `clear` are dropped.
   */
  private loaded(track: Track, load: (cleared: number) => Promise<void>): Promise<void> {
    const { state, cleared } = track;
    if (state !== "ready" && state !== "part") track.state = "loading";
    const loading = load(cleared)
      .catch((error: unknown) => {
        // The track will be requested again for the other edition.
        if (cleared !== track.cleared || error instanceof Outdated) return;
        if (track.state === "ready" || track.state === "part") throw error;
        track.state = { missing: errorMessage(error) };
      })
      .finally(() => {
        if (track.loading === loading) track.loading = null;
      });
    return (track.loading = loading);
  }

  /**
   * Loads the part of a track that shows a range, with a margin of half its length on both sides. A request that is
   * under way is awaited instead, and a track that is not in parts, or has grown, is loaded as by `loadTrack`.
   */
  loadPart(track: Track, range: Range): Promise<void> {
    if (track.loading || !track.coarse || track.stale) return this.loadTrack(track);
    const seen = shared(widened(range, MARGIN_SHARE), track.coarse.range);
    if (!seen) return Promise.resolve();
    return this.loaded(track, async (cleared) => {
      const frame = await this.source.trackPart(this.number, track.id, seen);
      this.taken(track, cleared, () => track.takePart(frame));
    });
  }

  /** Resolves when the rows of a track in a range are loaded, as far as they are available. */
  async awaitRows(track: Track, range: Range): Promise<void> {
    await this.awaitTrack(track);
    // A request that is under way may be for another range.
    for (let tries = 0; tries < 2 && track.state === "part" && !track.has(range); tries += 1) await this.loadPart(track, range);
  }

  /** Returns whether a track is loaded in parts at first: the trace is too large to load quickly, and so is the track, or enough is loaded already. */
  private isInParts(track: Track): boolean {
    if (this.most_rows === null || track.isCounter || track.kind === "samples") return false;
    const most = Math.min(this.most_rows, QUICK_ROWS);
    const rows = track.overview.rows ?? Infinity;
    const held = this.tracks.reduce((sum, { count }) => sum + count, 0);
    return this.rows > most && (rows > most * LARGE_SHARE || held + rows > most);
  }

  /** The number of rows on all tracks, as far as it is known. */
  private get rows(): number {
    return this.tracks.reduce((sum, { overview }) => sum + (overview.rows ?? 0), 0);
  }

  /** Returns whether the page may hold all rows of the trace. */
  get fitsInPage(): boolean {
    return this.rows <= (this.most_rows ?? Infinity);
  }

  /** Loads all rows of a track that is shown in parts. */
  loadWhole(track: Track): Promise<void> {
    if (track.loading || track.state !== "part") return this.awaitTrack(track);
    return this.loaded(track, async (cleared) => {
      const frame = await this.source.track(this.number, track.id, 0);
      this.taken(track, cleared, () => track.takeWhole(frame));
    });
  }

  /** Loads what a track has gained since it was loaded. An answer that was under way may be older than that. */
  async catchUp(track: Track): Promise<void> {
    while (track.state === "ready" && track.generation < this.overview.generation) {
      const { generation } = track;
      await this.loadTrack(track);
      if (track.generation === generation) return;
    }
  }

  /** Asks for what a track lacks, and takes the answer: samples, a counter, slices of the whole time, or its rows. */
  private async load(track: Track, cleared: number): Promise<void> {
    const { number, source } = this;
    if (track.kind === "samples") {
      const code = await this.loadCode();
      return this.taken(track, cleared, () => track.takeSamples(code));
    }
    if (track.isCounter) {
      const frame = await source.counter(number, track.id);
      return this.taken(track, cleared, () => track.takeCounter(frame));
    }
    if (track.coarse || (track.generation === 0 && this.isInParts(track))) {
      const frame = await source.trackPart(number, track.id, this.whole);
      return this.taken(track, cleared, () => track.takeCoarse(frame));
    }
    const frame = await source.track(number, track.id, track.generation);
    this.taken(track, cleared, () => track.take(frame));
  }

  /** Takes an answer and calls `replaced`, unless the track was cleared after the request. */
  private taken(track: Track, cleared: number, take: () => void): void {
    if (cleared !== track.cleared) return;
    const before = [...track.lanes];
    take();
    this.changes += 1;
    this.replaced(track, before);
  }

  /**
   * Loads the label paths of the loaded events, for work and command buffers only. An answer that does not fit the
   * loaded rows any more is dropped.
   */
  async loadLabels(track: Track): Promise<void> {
    const { cleared, part } = track;
    if (track.labels || track.count === 0 || !(track.kind === "work" || track.kind === "command-buffers")) return;
    const frame = await this.source.trackLabels(this.number, track.id, part?.range ?? null);
    if (cleared !== track.cleared || part !== track.part || frame.header.rows !== track.count) return;
    track.takeLabels(frame);
    this.changes += 1;
  }
}
