// The analyses of the selected range: requested from the server once the selection rests, or counted from the rows of a saved page.

import { isMissing } from "./data/missing.ts";
import type { DataSource } from "./data/source.ts";
import { NO_LABEL, type Trace, type Track } from "./data/trace.ts";
import { errorMessage } from "./error-message.ts";
import type { CauseRow } from "./data/cause-row.ts";
import type { Cause, Findings, Kernel, LabelRow, Missing, RangeFindings } from "./generated/protocol.ts";
import { LatestRequest } from "./latest-request.ts";
import type { Range } from "./time/range.ts";
import type { View } from "./view.ts";

/** How long the selection must rest before a request. */
const REST_MS = 250;
/** The most pieces of work in a range that the page counts. */
const MAX_RANGE_PIECES = 500_000;
/** The most pieces of work in a trace whose labels the page counts. */
const MAX_TRACE_PIECES = 3_000_000;
const TRACE_TOO_LARGE = "The page counts the labels of a range only in traces with up to 3,000,000 pieces of work. This trace has more.";
const RANGE_TOO_LARGE = "More than 500,000 pieces of work start in the selected range. Select a shorter range to see this table.";

/** The results for the selected range of one view; null while unknown. Each change calls the listeners. */
export class RangeAnalysis {
  /** The server's findings; null until they arrive, and without a selection. */
  findings: RangeFindings | Missing | null = null;
  /** Kernels and idle time: from the server, or in a saved page as far as its rows tell. */
  kernels: Kernel[] | Missing | null = null;
  gaps: CauseRow[] | Missing | null = null;
  /** The work under each label, counted by the page. */
  labels: LabelRow[] | Missing | null = null;
  private readonly requests = new LatestRequest();
  private timer: ReturnType<typeof setTimeout> | undefined;
  /**
   * The request that waits or runs; `again` is set when the trace has grown since. The answer is still awaited, because a trace that grows faster
   * would otherwise never show one.
   */
  private running: { again: boolean } | null = null;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly view: View,
    private readonly source: DataSource,
  ) {
    view.onChange((change) => {
      if (change === "selection" || (change === "data" && view.selection)) this.ask(change === "selection");
    });
  }

  /** Returns whether the kernels of a range come with their limits. */
  get tellsLimits(): boolean {
    return !this.source.file;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  /** Asks for the results after a rest; `other` tells of another range, for which the old results are dropped. */
  private ask(other: boolean): void {
    const { selection, trace } = this.view;
    if (!other && this.running) {
      this.running.again = true;
      return;
    }
    clearTimeout(this.timer);
    const isLatest = this.requests.begin();
    this.running = null;
    // The known findings stay while the same range grows.
    if (other) {
      this.findings = this.kernels = this.gaps = this.labels = null;
      this.changed();
    }
    if (!selection) return;
    const running = (this.running = { again: false });
    const take = async (): Promise<void> => {
      // The server's answer comes first, because counting loads rows.
      if (!this.source.file) {
        const found = await this.source.range(trace.number, selection.from_ns, selection.to_ns).catch((error: unknown): Missing => ({ missing: errorMessage(error) }));
        if (!isLatest()) return;
        this.findings = found;
        this.kernels = isMissing(found) ? found : found.kernels;
        this.gaps = isMissing(found) ? found : found.gaps;
        this.changed();
      }
      const counted = await countedIn(trace, selection).catch((error: unknown): Missing => ({ missing: errorMessage(error) }));
      if (!isLatest()) return;
      this.labels = isMissing(counted) ? counted : counted.labels;
      if (this.source.file) {
        this.kernels = isMissing(counted) ? counted : counted.kernels;
        this.gaps = gapsIn(trace, selection);
      }
      this.changed();
    };
    this.timer = setTimeout(() => {
      running.again = false;
      void take().finally(() => {
        if (this.running !== running) return;
        this.running = null;
        if (running.again) this.ask(false);
      });
    }, REST_MS);
  }
}

/**
 * Sums idle time by cause over the parts of gaps that lie in a range, from the loaded tracks. A cause counts once for
 * each gap in which it has a part; `main_count` and `main_ns` are not known here and stay 0.
 */
function gapsIn(trace: Trace, range: Range): CauseRow[] | Missing {
  const tracks = trace.tracks.filter(({ kind }) => kind === "gaps");
  const absent = tracks.find((track) => track.state !== "ready");
  if (absent) return { missing: typeof absent.state === "object" ? absent.state.missing : "The gaps are not loaded." };
  const totals = new Map<number, { count: number; total_ns: number; gap: number }>();
  let gap = 0;
  for (const lane of tracks.flatMap(({ lanes }) => lanes)) {
    const { from, to } = lane.within(range);
    for (let part = from; part < to; part += 1) {
      // Parts that touch belong to one gap.
      if (part === from || lane.start_ns[part] > lane.end_ns(part - 1)) gap += 1;
      const key = lane.key[part];
      const total = totals.get(key) ?? { count: 0, total_ns: 0, gap: 0 };
      totals.set(key, { count: total.count + (total.gap === gap ? 0 : 1), total_ns: total.total_ns + Math.min(lane.end_ns(part), range.to_ns) - Math.max(lane.start_ns[part], range.from_ns), gap });
    }
  }
  return [...totals].map(([key, { count, total_ns }]) => ({ cause: trace.text(key) as Cause, count, total_ns, main_count: 0, main_ns: 0 }));
}

/** Adds up durations and busy time of work that is added in order of time. */
class Tally {
  dispatches = 0;
  transfers = 0;
  busy_ns = 0;
  readonly durations: number[] = [];
  private until_ns = -Infinity;

  /** Adds a piece of work; a dispatch with its duration, a transfer only to the count and the busy time. */
  add(start_ns: number, end_ns: number, dispatch: boolean): void {
    if (dispatch) {
      this.dispatches += 1;
      this.durations.push(end_ns - start_ns);
    } else this.transfers += 1;
    this.busy_ns += Math.max(0, end_ns - Math.max(start_ns, this.until_ns));
    this.until_ns = Math.max(this.until_ns, end_ns);
  }

  /** The figures of the dispatches that were added; null where there are none. */
  get figures(): Pick<Kernel, "timed_count" | "total_ns" | "mean_ns" | "p50_ns" | "p99_ns" | "min_ns" | "max_ns"> {
    const all = this.durations.sort((a, b) => a - b);
    const at = (part: number): number | null => all[Math.max(0, Math.ceil(all.length * part) - 1)] ?? null;
    const total_ns = all.reduce((sum, ns) => sum + ns, 0);
    return { timed_count: all.length, total_ns, mean_ns: all.length > 0 ? total_ns / all.length : null, p50_ns: at(0.5), p99_ns: at(0.99), min_ns: all[0] ?? null, max_ns: all.at(-1) ?? null };
  }
}

/** One execution of work, by its place in a track. */
interface WorkPiece {
  track: Track;
  lane: number;
  index: number;
  start_ns: number;
}

/**
 * Loads all work with its labels, and returns what starts in a range, in order of time. It throws a sentence where
 * the trace or the range is too large, or a track cannot be had.
 */
async function piecesIn(trace: Trace, range: Range): Promise<WorkPiece[]> {
  const all = trace.tracks.reduce((sum, { kind, overview }) => sum + (kind === "work" ? (overview.rows ?? 0) : 0), 0);
  if (all > MAX_TRACE_PIECES) throw new Error(TRACE_TOO_LARGE);
  const pieces: WorkPiece[] = [];
  for (const track of trace.tracks) {
    if (track.kind !== "work" || track.overview.rows === 0) continue;
    await trace.awaitTrack(track);
    if (typeof track.state === "object") throw new Error(track.state.missing);
    if (track.state === "part" && trace.fitsInPage) await trace.loadWhole(track);
    if (track.state !== "ready") throw new Error(TRACE_TOO_LARGE);
    await trace.loadLabels(track);
    track.lanes.forEach((lane, number) => {
      const [from, to] = [lane.startingBefore(range.from_ns), lane.startingBefore(range.to_ns)];
      if (pieces.length + to - from > MAX_RANGE_PIECES) throw new Error(RANGE_TOO_LARGE);
      for (let index = from; index < to; index += 1) pieces.push({ track, lane: number, index, start_ns: lane.start_ns[index] });
    });
  }
  return pieces.sort((a, b) => a.start_ns - b.start_ns);
}

/** Counts kernels and labels of the work that starts in a range, as far as the rows of the page tell. */
async function countedIn(trace: Trace, range: Range): Promise<{ kernels: Kernel[]; labels: LabelRow[] | Missing }> {
  const { findings } = trace;
  if (!findings || isMissing(findings)) throw new Error("The analyses have not answered yet.");
  const pieces = await piecesIn(trace, range);
  const labels = new Map(ancestors(findings).map(({ name, rows }) => [name, rows]));
  const [all, by_name, by_label] = [new Tally(), new Map<number, Tally>(), new Map<number, Tally>()];
  const tally = (of: Map<number, Tally>, key: number): Tally => of.get(key) ?? (of.set(key, new Tally()).get(key) as Tally);
  for (const { track, lane, index } of pieces) {
    const it = track.lanes[lane];
    const dispatch = track.rowOf({ lane, index }).table === "dispatches";
    const [start_ns, end_ns] = [it.start_ns[index], it.end_ns(index)];
    all.add(start_ns, end_ns, dispatch);
    if (dispatch) tally(by_name, it.key[index]).add(start_ns, end_ns, true);
    const label = track.labels?.[lane][index] ?? NO_LABEL;
    for (const row of labels.get(label) ?? []) tally(by_label, row).add(start_ns, end_ns, dispatch);
  }
  const named = new Map(findings.kernel_rows.map(({ name }, at) => [name, findings.kernels?.[at]]));
  const kernels = [...by_name].map(([key, tally]): Kernel => {
    const whole = named.get(key);
    return {
      name: whole?.name ?? trace.text(key),
      full_name: whole?.full_name ?? null,
      variants: whole?.variants ?? 1,
      codes: whole?.codes ?? 1,
      count: tally.dispatches,
      untimed_count: 0,
      name_source: whole?.name_source ?? "",
      sources: whole?.sources ?? [],
      busy_ns: tally.busy_ns,
      busy_share: all.busy_ns > 0 ? tally.busy_ns / all.busy_ns : null,
      bound_read_bytes: null,
      bound_written_bytes: null,
      bound_count: 0,
      first_ns: null,
      first_start_ns: null,
      limit: null,
      limited_by: null,
      reached: null,
      reached_error: null,
      distance: null,
      winnable_ns: null,
      counters: null,
      launches: null,
      ...tally.figures,
    };
  });
  if (findings.labels === null) return { kernels, labels: { missing: "Unknown." } };
  const rows = findings.labels.flatMap((row, at): LabelRow[] => {
    const tally = by_label.get(at);
    if (!tally) return [];
    return [{ ...row, instances: null, inclusive: { ...tally.figures, dispatch_count: tally.dispatches, transfer_count: tally.transfers, busy_ns: tally.busy_ns } }];
  });
  return { kernels, labels: rows };
}

/** Returns, for each label, the rows of the label table that its work counts for: its own row and those of the enclosing labels. */
function ancestors({ labels, label_names }: Findings): { name: number; rows: number[] }[] {
  const around: number[] = [];
  return (labels ?? []).flatMap(({ depth }, row) => {
    around.length = depth;
    around[depth] = row;
    const name = label_names[row];
    return name === null || name === undefined ? [] : [{ name, rows: around.filter((one) => one !== undefined) }];
  });
}
