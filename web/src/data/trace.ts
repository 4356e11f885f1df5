// A trace in the page: its tracks with what of them has been loaded.

import { Lane, type Durations, type Integers } from "../lane/lane.ts";
import { sentence } from "../sentence.ts";
import type { Range } from "../time/range.ts";
import { Causes } from "./causes.ts";
import { Code, Idle } from "./code.ts";
import { Counter } from "./counter.ts";
import type { Findings } from "./findings.ts";
import { column, type Frame } from "./frame.ts";
import type { TraceOverview, TrackOverview } from "./overview.ts";
import { type DataSource, Outdated } from "./source.ts";

export const NO_LABEL = 0xffffffff;
/** What is seen around a moment that is gone to, about. */
const MOMENT_NS = 1e6;

export type TrackState = "waiting" | "loading" | "ready" | { missing: string };

/** A place in a track. */
export interface Place {
  lane: number;
  index: number;
}

export class Track {
  state: TrackState = "waiting";
  /** Ends when the answer that is asked for has been taken. */
  loading: Promise<void> | null = null;
  lanes: Lane[] = [];
  /** For each lane the packed table and row of each event. */
  rows: Uint32Array[] = [];
  /** For each lane the label path of each event, once asked for. */
  labels: Uint32Array[] | null = null;
  tables: string[] = [];
  counter: Counter | null = null;
  /** Busy share of equal slices of the trace's extent times 255. */
  summary: Uint8Array | null = null;
  generation = 0;
  /** Counts how often the track was cleared: an answer to what was asked before is not taken. */
  cleared = 0;
  overview: TrackOverview;

  constructor(overview: TrackOverview) {
    this.overview = overview;
    this.renew(overview);
  }

  /** Takes a newer overview. */
  renew(overview: TrackOverview): void {
    this.overview = overview;
    this.summary = overview.busy === null ? null : Uint8Array.from(atob(overview.busy), (character) => character.charCodeAt(0));
  }

  /** Forgets all rows: they are of another edition. */
  clear(): void {
    this.cleared += 1;
    this.state = "waiting";
    this.loading = null;
    this.lanes = [];
    this.rows = [];
    this.labels = null;
    this.tables = [];
    this.counter = null;
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
  get count(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.count, 0);
  }

  /** Takes a frame: all rows, or those after what is there. Some tracks always come whole. */
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

  /** Takes the samples of its thread. */
  takeSamples(code: Code): void {
    const { lanes, rows } = code.lanesOf(this.id);
    this.lanes = lanes;
    this.rows = rows;
    this.tables = ["samples"];
    this.generation = code.generation;
    this.state = "ready";
  }

  /** The table and row of an event. */
  rowOf(place: Place): { table: string; row: number } {
    const packed = this.rows[place.lane][place.index];
    return { table: this.tables[packed >>> 30] ?? "unknown", row: packed & 0x3fffffff };
  }

  /** Where an event is drawn that begins and lasts so. */
  placeAt(start_ns: number, duration_ns: number): Place | null {
    for (let lane = 0; lane < this.lanes.length; lane += 1) {
      const it = this.lanes[lane];
      for (let i = it.startingBefore(start_ns); i < it.count && it.start_ns[i] === start_ns; i += 1) {
        if (it.duration_ns[i] === duration_ns) return { lane, index: i };
      }
    }
    return null;
  }

  /** Where a row is drawn, given when it begins. */
  placeOf(table: string, row: number, start_ns: number): Place | null {
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

type Numbers = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Two columns as one, in the wider of their types. */
function joined(old: Numbers | undefined, more: Numbers): Numbers {
  if (!old || old.length === 0) return more;
  const Wider = (old.BYTES_PER_ELEMENT >= more.BYTES_PER_ELEMENT ? old : more).constructor as new (length: number) => Numbers;
  const both = new Wider(old.length + more.length);
  both.set(old);
  both.set(more, old.length);
  return both;
}

/** A trace with its tracks. */
export class Trace {
  overview: TraceOverview;
  causes: Causes;
  tracks: Track[];
  strings: string[] = [];
  /** Counts what came or went: tracks, their rows and labels, strings. */
  changes = 0;
  findings: Findings | { missing: string } | null = null;
  /** Called when a track's rows were replaced, with the lanes that it had. */
  replaced: (track: Track, before: readonly Lane[]) => void = () => undefined;
  /** Samples of stacks, once a track of them or the code of idle time was asked for. */
  code: Code | null = null;
  private loadingStrings: Promise<void> | null = null;
  private loadingCode: { of: string; code: Promise<Code>; idle: Promise<Idle> | null } | null = null;

  constructor(
    readonly number: number,
    overview: TraceOverview,
    private readonly source: DataSource,
  ) {
    this.overview = overview;
    this.causes = new Causes(overview.causes, overview.calls);
    this.tracks = overview.tracks.map((track) => new Track(track));
    if (overview.live) source.expect(number, overview.edition);
  }

  get whole(): Range {
    const [from_ns, to_ns] = this.overview.extent;
    return { from_ns, to_ns: Math.max(to_ns, from_ns + 1) };
  }

  track(id: string | null): Track | undefined {
    return this.tracks.find((track) => track.id === id);
  }

  text(name: number): string {
    return this.strings[name] ?? "unknown";
  }

  /** What an event of a track is called. */
  nameOf(track: Track, name: number): string {
    if (track.kind === "samples") return this.code?.lineText(name) ?? "unknown code";
    const text = this.text(name);
    return track.kind === "gaps" ? this.causes.name(text) : text;
  }

  /** Takes a newer overview. A track that is known stays the same object: whoever holds it sees it grow. */
  renew(overview: TraceOverview): void {
    const known = new Map(this.tracks.map((track) => [track.id, track]));
    this.tracks = overview.tracks.map((track) => {
      const old = known.get(track.id);
      old?.renew(track);
      // What could not be had of it may be there now.
      if (old && typeof old.state === "object") old.state = "waiting";
      return old ?? new Track(track);
    });
    this.overview = overview;
    this.causes = new Causes(overview.causes, overview.calls);
    this.changes += 1;
  }

  /** Takes another edition: what was loaded is forgotten. */
  reset(overview: TraceOverview, strings: readonly string[]): void {
    for (const track of this.tracks) track.clear();
    this.strings = [...strings];
    this.findings = null;
    this.code = null;
    this.loadingStrings = null;
    this.loadingCode = null;
    this.renew(overview);
    this.source.expect(this.number, overview.edition);
  }

  async loadStrings(): Promise<void> {
    // One at a time, so that answers are appended in order.
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

  /** Whether there are samples of stacks. */
  get hasSamples(): boolean {
    return this.tracks.some(({ kind }) => kind === "samples");
  }

  private get codeAsked(): NonNullable<Trace["loadingCode"]> {
    const of = `${this.overview.edition}.${this.overview.generation}`;
    if (this.loadingCode?.of === of) return this.loadingCode;
    const asked = { of, code: this.source.code(this.number).then((frame) => new Code(frame)), idle: null };
    this.loadingCode = asked;
    // What could not be had may be there when it is asked for again.
    asked.code.catch(() => this.loadingCode === asked && (this.loadingCode = null));
    return asked;
  }

  /** The samples of stacks, of as much as the trace has by now. */
  async loadCode(): Promise<Code> {
    const asked = this.codeAsked;
    const code = await asked.code;
    if (this.loadingCode === asked) this.code = code;
    return code;
  }

  /** The samples in gaps. */
  loadIdle(): Promise<Idle> {
    const asked = this.codeAsked;
    if (asked.idle) return asked.idle;
    const idle = Promise.all([this.loadCode(), this.source.idleCode(this.number)]).then(([code, frame]) => new Idle(code, frame));
    asked.idle = idle;
    idle.catch(() => (asked.idle = null));
    return idle;
  }

  /** Where a sample is drawn. */
  async sampleRow(row: number): Promise<{ track: string; start_ns: number; duration_ns: number; times_unknown_because?: string }> {
    const code = await this.loadCode();
    if (row >= code.count) throw new Error(`The trace has no sample ${row}.`);
    return { track: code.threadOf(row).track, start_ns: code.at_ns[row], duration_ns: code.sample(row).period_ns ?? MOMENT_NS };
  }

  /** Ends when a track is there, or is known to be missing. */
  async awaitTrack(track: Track): Promise<void> {
    if (track.state === "waiting" || track.state === "loading") await this.loadTrack(track);
  }

  /** Loads a track, or what came to it; what cannot be had is said in its state. */
  loadTrack(track: Track): Promise<void> {
    if (track.loading) return track.loading;
    const loading = this.load(track).finally(() => {
      if (track.loading === loading) track.loading = null;
    });
    return (track.loading = loading);
  }

  /** Loads what a track has got since it was loaded; an answer that was under way may be older than that. */
  async catchUp(track: Track): Promise<void> {
    while (track.state === "ready" && track.generation < this.overview.generation) {
      const { generation } = track;
      await this.loadTrack(track);
      if (track.generation === generation) return;
    }
  }

  private async load(track: Track): Promise<void> {
    const { state, cleared } = track;
    if (state !== "ready") track.state = "loading";
    try {
      if (track.kind === "samples") {
        const code = await this.loadCode();
        if (cleared !== track.cleared) return;
        const before = [...track.lanes];
        track.takeSamples(code);
        return this.replaced(track, before);
      }
      const frame = await (track.isCounter ? this.source.counter(this.number, track.id) : this.source.track(this.number, track.id, track.generation));
      if (cleared !== track.cleared) return;
      const before = [...track.lanes];
      if (track.isCounter) track.takeCounter(frame);
      else track.take(frame);
      this.changes += 1;
      this.replaced(track, before);
    } catch (error) {
      // The other edition is about to come, and it is asked for anew.
      if (cleared !== track.cleared || error instanceof Outdated) return;
      if (state === "ready") throw error;
      track.state = { missing: sentence(error) };
    }
  }

  async loadLabels(track: Track): Promise<void> {
    if (track.labels || track.state !== "ready" || !(track.kind === "work" || track.kind === "command-buffers")) return;
    const { cleared } = track;
    const frame = await this.source.trackLabels(this.number, track.id, 0);
    if (cleared !== track.cleared || frame.header.rows !== track.count) return;
    track.takeLabels(frame);
    this.changes += 1;
  }
}
