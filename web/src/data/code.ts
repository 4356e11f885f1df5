// Samples of the stacks of threads, and the samples that fall into gaps, which is the idle time of a device. A trace without samples may
// have times in ranges of submitting threads in their place, each of which is a row as a sample is. `Code`
// holds the samples as columns with one entry for each; elsewhere a sample is its index in them. A line is a readable
// text that stands for the stacks in one piece of code, and a number is its index in the header's `lines`.

import type { IdleSamplesHeader, SampledFrame, SampledThread, SamplesHeader } from "../generated/protocol.ts";
import { type Durations, Lane } from "../lane/lane.ts";
import type { Range } from "../time/range.ts";
import { type Column, column, type Frame } from "./frame.ts";

/** Stands in a column for an index or id that is unknown or absent. */
const NONE = 0xffffffff;
/** The deepest stack that is followed, so that a circle of parents ends. */
const MAX_FRAMES = 4096;
/** The least number of samples for which shares are shown. */
export const MIN_SAMPLES = 10;

/** A sample with its indices resolved, for showing it. */
export interface Sample {
  at_ns: number;
  /** The time between two samples as it then was; null for a sample that a hook took. */
  period_ns: number | null;
  thread: SampledThread;
  /** The innermost frame first; empty where the stack could not be read. */
  frames: SampledFrame[];
  line: string;
  state: string;
  source: string;
  /** The call that the thread was in; null for none. */
  system_call: string | null;
  /** The thread that had the interpreter's lock for which this one waited. */
  gil_holder: number | null;
}

/** The samples of a thread as the lanes of a track, and for each lane the index of each sample, in order of time. */
export interface SampleLanes {
  lanes: Lane[];
  rows: Uint32Array[];
}

/** All samples of a trace, from the answer `code`. */
export class Code {
  readonly header: SamplesHeader;
  readonly count: number;
  /** How far the trace was recorded when the answer was made. */
  readonly generation: number;
  readonly at_ns: Column;
  private readonly period_ns: Column;
  private readonly thread: Column;
  private readonly stack: Column;
  private readonly call: Column;
  private readonly gil: Column;
  private readonly state: Column;
  private readonly source: Column;
  /** The frames of each stack that has been asked for. */
  private readonly stacks = new Map<number, number[]>();
  /** For each frame its line with the most samples; null until the first question. */
  private commonestLines: Map<number, number> | null = null;

  constructor(frame: Frame) {
    this.header = frame.header as unknown as SamplesHeader;
    this.count = frame.header.rows;
    this.generation = frame.header.generation ?? 1;
    this.at_ns = column(frame, "at");
    this.period_ns = column(frame, "period");
    this.thread = column(frame, "thread");
    this.stack = column(frame, "stack");
    this.call = column(frame, "call");
    this.gil = column(frame, "gil");
    this.state = column(frame, "state");
    this.source = column(frame, "source");
  }

  /** Whether rows are times in ranges of threads, which are exact, in place of samples. */
  get isExact(): boolean {
    return this.header.told_by === "ranges";
  }

  /** Returns the number of the line that stands for a sample; one past the last line where its stack is unknown. */
  lineOf(sample: number): number {
    return this.header.stacks.line[this.stack[sample]] ?? this.header.lines.length;
  }

  /** Returns the text of a line; `unknown code` for the number past the last line. */
  lineText(line: number): string {
    return this.header.lines[line]?.text ?? "unknown code";
  }

  /** Returns the frame that stands for a line; null where there is none. */
  lineFrame(line: number): SampledFrame | null {
    return this.header.frames[this.header.lines[line]?.frame ?? -1] ?? null;
  }

  /** Returns the line that a frame stands for, of several the one with the most samples; null where there is none. */
  lineOfFrame(frame: number): number | null {
    if (!this.commonestLines) {
      const { counts } = this;
      this.commonestLines = new Map();
      for (const [line, { frame }] of this.header.lines.entries()) {
        const known = this.commonestLines.get(frame);
        if (known === undefined || counts[line] > counts[known]) this.commonestLines.set(frame, line);
      }
    }
    return this.commonestLines.get(frame) ?? null;
  }

  /** Returns the numbers of the frames of a sample's stack, the innermost first. */
  framesOf(sample: number): readonly number[] {
    const stack = this.stack[sample];
    const known = this.stacks.get(stack);
    if (known) return known;
    const { frame, parent } = this.header.stacks;
    const found: number[] = [];
    let next: number | null | undefined = stack === NONE ? null : stack;
    for (let left = MAX_FRAMES; left > 0 && typeof next === "number"; left -= 1) {
      const one = frame[next];
      if (typeof one === "number" && this.header.frames[one]) found.push(one);
      next = parent[next];
    }
    this.stacks.set(stack, found);
    return found;
  }

  sample(row: number): Sample {
    const { header } = this;
    const period_ns = this.period_ns[row];
    const gil = this.gil[row];
    return {
      at_ns: this.at_ns[row],
      period_ns: Number.isNaN(period_ns) ? null : period_ns,
      thread: header.threads[this.thread[row]],
      frames: this.framesOf(row).map((frame) => header.frames[frame]),
      line: this.lineText(this.lineOf(row)),
      state: header.states[this.state[row]] ?? "unknown",
      source: header.sources[this.source[row]] ?? "unknown",
      system_call: header.calls[this.call[row]] ?? null,
      gil_holder: gil === NONE ? null : gil,
    };
  }

  threadOf(sample: number): SampledThread {
    return this.header.threads[this.thread[sample]];
  }

  /**
   * Returns the samples of a track. Each lasts until the next, but no longer than the time that it stands for. Samples that hooks took stand for a moment
   * only, and are in a lane below.
   */
  lanesOf(track: string): SampleLanes {
    const thread = this.header.threads.findIndex((one) => one.track === track);
    const timed: number[] = [];
    const exact: number[] = [];
    for (let row = 0; row < this.count; row += 1) {
      if (this.thread[row] === thread) (Number.isNaN(this.period_ns[row]) ? exact : timed).push(row);
    }
    const lanes = [timed, exact].filter((rows, lane) => lane === 0 || rows.length > 0);
    for (const rows of lanes) rows.sort((a, b) => this.at_ns[a] - this.at_ns[b]);
    return { lanes: lanes.map((rows) => this.lane(rows)), rows: lanes.map((rows) => Uint32Array.from(rows)) };
  }

  /** Makes a lane of samples in order of time, keyed by line. */
  private lane(rows: readonly number[]): Lane {
    const duration_ns: Durations = Float64Array.from(rows, (row, i) => {
      const period_ns = this.period_ns[row];
      if (!(period_ns > 0)) return 0;
      return i + 1 < rows.length ? Math.min(period_ns, this.at_ns[rows[i + 1]] - this.at_ns[row]) : period_ns;
    });
    return new Lane({
      start_ns: Float64Array.from(rows, (row) => this.at_ns[row]),
      duration_ns,
      key: Uint32Array.from(rows, (row) => this.lineOf(row)),
    });
  }

  /** The number of samples of each line. The last entry, for samples with an unknown stack, stays 0, so that it gets no colour of its own. */
  get counts(): Float64Array {
    const counts = new Float64Array(this.header.lines.length + 1);
    for (let row = 0; row < this.count; row += 1) counts[this.lineOf(row)] += 1;
    counts[counts.length - 1] = 0;
    return counts;
  }
}

/** A restriction of idle time; absent and null fields do not restrict it. */
export interface IdleFilter {
  range?: Range | null;
  /** Why the device was idle, as an index in the trace's strings. */
  cause?: number | null;
  /** The label path of the work that ended the gap, as an index in the trace's strings. */
  label?: number | null;
  /** The number in the id of the device's track of gaps. */
  device?: number | null;
}

/** The idle time in which threads ran a line of code. */
export interface LineTime {
  line: number;
  text: string;
  total_ns: number;
  samples: number;
  /** The numbers of its samples. */
  rows: number[];
}

/** The samples in gaps with the idle time that each stands for; one in the gaps of two devices is there twice. */
export class IdleSamples {
  readonly causes: IdleSamplesHeader["causes"];
  /** The index of each sample in `code`. */
  private readonly sampleAt: Column;
  private readonly device: Column;
  /** The idle time that each sample stands for: an estimate, and 0 for other kinds than `sampled`. */
  private readonly weight_ns: Column;
  private readonly causeAt: Column;
  private readonly labelAt: Column;
  private readonly partAt: Column;
  /** The kinds of samples, which `partAt` numbers. */
  private readonly parts: string[];

  constructor(
    readonly code: Code,
    frame: Frame,
  ) {
    const header = frame.header as unknown as IdleSamplesHeader;
    this.causes = header.causes;
    this.parts = header.parts;
    this.sampleAt = column(frame, "sample");
    this.device = column(frame, "device");
    this.weight_ns = column(frame, "weight");
    this.causeAt = column(frame, "cause");
    this.labelAt = column(frame, "label");
    this.partAt = column(frame, "part");
  }

  /**
   * Visits the samples of one kind that pass a filter: `sampled` are of the submitting thread, `exact` were taken by
   * a hook (gapscope's library in the program), and `worker` are of a process for which that thread waited.
   */
  each(part: "sampled" | "exact" | "worker", { range = null, cause = null, label = null, device = null }: IdleFilter, visit: (sample: number, weight_ns: number) => void): void {
    const wanted = this.parts.indexOf(part);
    for (let row = 0; row < this.sampleAt.length; row += 1) {
      if (this.partAt[row] !== wanted || (device !== null && this.device[row] !== device)) continue;
      if ((cause !== null && this.causeAt[row] !== cause) || (label !== null && this.labelAt[row] !== label)) continue;
      const sample = this.sampleAt[row];
      const at_ns = this.code.at_ns[sample];
      // A sample that a hook takes at the end of a wait belongs to the gap that ends there.
      const past = range !== null && (at_ns > range.to_ns || (part !== "exact" && at_ns === range.to_ns));
      if (range !== null && this.code.isExact) {
        // A time in a range counts as far as it lies in the asked range.
        const inside_ns = Math.min(at_ns + this.weight_ns[row], range.to_ns) - Math.max(at_ns, range.from_ns);
        if (inside_ns > 0) visit(sample, inside_ns);
      } else if (range === null || (at_ns >= range.from_ns && !past)) visit(sample, this.weight_ns[row]);
    }
  }

  /** Sums the idle time of one kind of samples by line: the greatest first, then the line with most samples. */
  lines(part: "sampled" | "exact" | "worker", asked: IdleFilter): LineTime[] {
    const found = new Map<number, LineTime>();
    // A worker's sample in gaps of two devices counts once; other samples stand for time of each device.
    const seen = new Set<number>();
    this.each(part, asked, (sample, weight_ns) => {
      const line = this.code.lineOf(sample);
      let time = found.get(line);
      if (!time) found.set(line, (time = { line, text: this.code.lineText(line), total_ns: 0, samples: 0, rows: [] }));
      time.total_ns += weight_ns;
      if (part === "worker" && seen.has(sample)) return;
      seen.add(sample);
      time.samples += 1;
      time.rows.push(sample);
    });
    return [...found.values()].sort((a, b) => b.total_ns - a.total_ns || b.samples - a.samples || (a.text < b.text ? -1 : 1));
  }

  /** The label paths of the work that ended gaps, each once, as indices in the trace's strings. */
  get labels(): number[] {
    return [...new Set(this.labelAt)].filter((label) => label !== NONE);
  }
}

/** Returns the first of these samples that has the stack that most of them have, or the most time in ranges; null where there are none. */
export function commonest(code: Code, rows: readonly number[]): number | null {
  const counts = new Map<string, { row: number; count: number }>();
  for (const row of rows) {
    const key = code.framesOf(row).join(" ");
    const known = counts.get(key);
    const count = code.isExact ? (code.sample(row).period_ns ?? 0) : 1;
    if (known) known.count += count;
    else counts.set(key, { row, count });
  }
  const most = [...counts.values()].sort((a, b) => b.count - a.count)[0];
  return most?.row ?? null;
}
