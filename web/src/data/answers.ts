// The shapes of the answers, as `crates/view/PROTOCOL.md` describes them.

import type { CaptureOverview } from "./dependencies.ts";

export interface Missing {
  missing: string;
}

export function isMissing(answer: unknown): answer is Missing {
  return typeof answer === "object" && answer !== null && "missing" in answer;
}

export interface Overview {
  /** Of a capture: there are no traces then. */
  capture?: CaptureOverview;
  protocol: number;
  gapscope: string;
  file: { folded: string | null; made_unix_ns: string } | null;
  traces: TraceOverview[];
  /** The paths that `gapscope view` was given; absent in a file. */
  opened?: string[] | null;
  /** Whether the server keeps what the reader prefers; not in a file. */
  keeps?: boolean;
  /** The state with which a file is opened first. */
  state?: string | null;
  /** The trace that comes first in a file. */
  first?: string | null;
  /** The program whose ranks the traces are, on one clock. */
  together: string | null;
  bins: number;
}

export type GroupKind = "gpu" | "process";

export interface Group {
  id: string;
  kind: GroupKind;
  name: string;
}

export type TrackKind =
  | "work"
  | "command-buffers"
  | "labels"
  | "queue-labels"
  | "gaps"
  | "counter"
  | "calls"
  | "thread-labels"
  | "samples";

export interface TrackOverview {
  id: string;
  group: string;
  kind: TrackKind;
  name: string;
  rows: number | null;
  untimed: number;
  queue: number | null;
  process: number | null;
  thread: number | null;
  /** Of a thread's calls: the kind that all of them have. */
  only_call: string | null;
  /** Of a counter: what it counts, in which unit, and where the values come from. */
  counter: { name: string; unit: string; source: string } | null;
  busy: string | null;
}

export interface Loss {
  what: string;
  count: number;
  reason: string;
}

/** A table of which rows or a column could not be read. What rests on it is unknown. */
export interface UnreadTable {
  table: string;
  file: string;
  column: string | null;
  reason: string;
  rows_read: number;
  /** `null` where it is not known how many are missing. */
  rows_missing: number | null;
}

/** What could not be read, in sentences: files with one reason in one. */
export function unreadSentences(unread: readonly UnreadTable[]): string[] {
  const columns = unread.filter(({ column }) => column !== null).map((one) => `${unreadText(one)}.`);
  const files = unread.filter(({ column }) => column === null);
  const reasons = [...new Set(files.map(({ reason }) => reason))];
  const of = (reason: string): string => files.flatMap((one) => (one.reason === reason ? [one.file] : [])).join(", ");
  return [...columns, ...reasons.map((reason) => `${of(reason)} cannot be read (${reason}).`)];
}

/** One of them, in half a sentence. */
export function unreadText({ file, column, reason }: UnreadTable): string {
  return `${column === null ? file : `column ${column} of ${file}`} cannot be read (${reason})`;
}

export interface ManifestDevice {
  id: number;
  api: string;
  name: string;
  driver: string;
  clock: { method: string; error_ns: number | null };
}

/** What the analysis knows of a cause of idle time, in the words of the trace's API. */
export interface CauseFacts {
  cause: string;
  /** The part of the verdict's time that it counts for. */
  side: string;
  letter: string;
  colour: string;
  name: string;
  sentence: string;
  /** What suits most programs. */
  advice: string;
}

/** A kind of host call. */
export interface CallFacts {
  call: string;
  /** Why a device idles whose next work has not been submitted while the thread is in this call. */
  cause: string | null;
  /** It returns when the GPU has got somewhere, or asks whether it has. */
  waits: boolean;
}

export interface TraceOverview {
  name: string;
  generation: number;
  /** Changes when the rows and strings that were there before are worth nothing: when a recording was completed. */
  edition: number;
  live: boolean;
  complete: boolean;
  origin_ns: string;
  /** How its tracks were arranged before, where the server keeps that. */
  arranged?: { tracks?: string; order?: string; text?: string } | null;
  start_unix_ns: string | null;
  duration_ns: number | null;
  extent: [number, number];
  sampling_mode: string;
  clock_error_ns: number | null;
  manifest: {
    /** How often a second stacks were sampled at first; absent where they were not. */
    stack_rate_hz?: number | null;
    rank?: { rank: number; world_size: number } | null;
    command?: string[];
    host?: { system?: string; processor?: string; cores?: number };
    devices?: ManifestDevice[];
    exit?: { code?: number; signal?: number } | null;
  };
  tables: { name: string; rows: number | null; bytes: number }[];
  losses: Loss[];
  remarks: string[];
  unread: UnreadTable[];
  causes: CauseFacts[];
  calls: CallFacts[];
  groups: Group[];
  tracks: TrackOverview[];
}

export interface Strings {
  from: number;
  strings: string[];
}

export interface Part {
  what: string;
  total_ns: number;
  share: number;
  sentence: string;
}

export interface GapTotal {
  cause: string;
  count: number;
  total_ns: number;
  main_count: number;
  main_ns: number;
  /** What to do about it, as far as it fits what was recorded. */
  advice?: string;
  /** The part that calls of other threads explain. */
  by_other_threads_ns: number;
  uncertain_ns: number | null;
}

/** What the report says of a cause of idle time. */
export interface CauseNote {
  /** The code of the submitting threads in it, where samples tell. */
  code: string | null;
  /** What to do, as far as it fits what was recorded, and what it is of. */
  advice: string | null;
}

export interface HostTime {
  call: string;
  /** The function, where the trace says. */
  function?: string;
  count: number;
  total_ns: number;
}

export interface WorkName {
  name: string;
  label: string | null;
  queue_id: number;
}

export interface Gap {
  device: number;
  start_ns: number;
  duration_ns: number;
  cause: string;
  parts: { cause: string; start_ns: number; duration_ns: number }[];
  before: WorkName;
  after: WorkName;
  thread: number | null;
  thread_name: string | null;
  submission: number | null;
  submit_begin_ns: number | null;
  host_calls: HostTime[];
  other_threads: HostTime[];
  waited_for_queue: number | null;
}

export interface Durations {
  timed_count: number;
  total_ns: number | null;
  mean_ns: number | null;
  p50_ns: number | null;
  p99_ns: number | null;
  min_ns: number | null;
  max_ns: number | null;
}

/** The shape of a kernel's launches; means are by time. */
export interface LaunchShape {
  multiprocessors: number;
  mean_multiprocessors: number;
  waves: number | null;
  occupancy: number | null;
  occupancy_limited_by: string | null;
}

/** Hardware counters while a kernel ran alone. */
export interface KernelCounters {
  ran_ns: number;
  covered_share: number;
  sample_count: number;
  means: { name: string; unit: string; mean: number; error: number | null; min: number; max: number }[];
  /** Of the limit of each unit, the greatest first. */
  shares: { unit: string; share: number; error: number | null }[];
  dram_read_bytes: { value: number; error: number } | null;
  dram_written_bytes: { value: number; error: number } | null;
  unknown_because: string | null;
}

export interface KernelRow extends Durations {
  name: string;
  /** The whole name in the code, where `name` is a shorter one. */
  full_name: string | null;
  /** Kernels of the row that differ in code, entry point or specialisation. */
  variants: number;
  /** Different codes in the row. */
  codes: number;
  count: number;
  untimed_count: number;
  busy_ns: number | null;
  busy_share: number | null;
  bound_read_bytes: number | null;
  bound_written_bytes: number | null;
  /** What limits it: `short`, `memory`, `compute`, `too-small`, `tail`, `idle`, `latency`. */
  limit: string | null;
  /** The unit that is nearest to its limit: `dram`, `l2`, `tensor`, `fma`, `alu`, `issue`. */
  limited_by: string | null;
  /** Achieved over possible, and how far that may be off. */
  reached: number | null;
  reached_error: number | null;
  /** Time that reaching the limit would save, at most. */
  winnable_ns: number | null;
  /** Null where the trace has no hardware counters. */
  counters: KernelCounters | null;
  /** Null where the size of the GPU is not known. */
  launches: LaunchShape | null;
}

export interface LabelRow {
  path: string;
  text: string;
  depth: number;
  instances: number | null;
  inclusive: Durations & { dispatch_count: number; transfer_count: number; busy_ns: number | null };
}

export interface Interval {
  start_ns: number;
  end_ns: number;
}

export interface DeviceBusy {
  name?: string;
  analysed?: { window_ns: number; busy_ns: number; transfer_only_ns: number | null } | null;
  [figure: string]: unknown;
}

export interface IdleTime {
  gap_count: number;
  total_ns: number;
  devices?: { device: number; total_ns: number; verdict: string; verdict_sentence: string; verdict_window_ns: number | null }[];
  serialised_ns: number;
  serialised_count: number;
  uncertain_ns: number | null;
  longest: Gap[];
}

/** A launch that was profiled; shares are 0 to 1. */
export interface ProfiledKernel {
  profile: number;
  kernel: string;
  passes: number;
  duration_ns: number | null;
  bound: string;
  sentence: string;
  dram: number | null;
  l2: number | null;
  l1: number | null;
  dram_read_bytes: number | null;
  dram_written_bytes: number | null;
  l2_bytes: number | null;
  l1_bytes: number | null;
  l2_hit_rate: number | null;
  l1_hit_rate: number | null;
  achieved_occupancy: number | null;
  theoretical_occupancy: number | null;
  occupancy_limited_by: string | null;
  stalls: { reason: string; share: number; meaning: string; advice: string | null }[];
}

export interface Findings {
  verdict: string;
  verdict_sentence: string;
  verdict_window_ns: number | null;
  verdict_evidence: Part[];
  sampling_mode: string;
  gpu_busy_ns: number | null;
  wall_ns: number | null;
  analysed_window: Interval | null;
  work_window: Interval | null;
  /** `null`, as what follows: it rests on a table that could not be read. */
  dispatch_count: number | null;
  timed_dispatch_count: number | null;
  transfer_count: number | null;
  transfer_bytes: number | null;
  devices: DeviceBusy[];
  gaps: GapTotal[] | null;
  /** Of each of `gaps`, in order. */
  gap_notes?: CauseNote[];
  idle_time: IdleTime | null;
  kernels: KernelRow[] | null;
  /** What the limits of kernels rest on; absent without hardware counters. */
  kernel_limits?: { sentences: string[] };
  /** Absent where none was profiled. */
  profiled_kernels?: ProfiledKernel[] | null;
  labels: LabelRow[] | null;
  unread: UnreadTable[];
  losses: Loss[];
  notes: string[];
  kernel_rows: { name: number | null; kernels: number[] }[];
  label_names: (number | null)[];
  activity?: {
    window: Interval;
    rows: { device: number; queue_id: number | null; slices: { length_ns: number; busy_ns: number; idle_cause: string | null }[] }[];
  } | null;
  generation?: number;
}

export interface Field {
  name: string;
  value: string | null;
  meaning: string;
}

export interface Link {
  relation: string;
  table: string;
  row: number;
  name: string;
  track: string | null;
  start_ns: number | null;
  duration_ns: number | null;
}

export interface Binding {
  set: number;
  binding: number;
  element: number;
  access: string;
  buffer: string;
  buffer_row: number;
  offset_bytes: string;
  bytes: string;
}

export interface Row {
  table: string;
  row: number;
  title: string;
  start_ns: number | null;
  duration_ns: number | null;
  track: string | null;
  times_unknown_because?: string;
  fields: Field[];
  label: { path: string[]; rows: number[] } | null;
  kernel: { row: number; name: string; fields: Field[]; has_source: boolean } | null;
  queue: string | null;
  device: string | null;
  thread: string | null;
  bindings?: Binding[] | Missing | null;
  links: Link[];
  link_counts?: Record<string, number>;
  gap?: Gap;
  explanation?: string;
}

export interface Dependency {
  table: string;
  row: number;
  name: string;
  track: string | null;
  start_ns: number | null;
  duration_ns: number | null;
  buffers: string[];
  bytes: string;
  kind: string;
}

export interface Dependencies {
  predecessors: Dependency[];
  successors: Dependency[];
  note: string;
}

export interface Source {
  language: string;
  text: string;
  cut: boolean;
  file: string;
}

export interface RangeFindings {
  verdict: string;
  verdict_sentence: string;
  verdict_evidence: Part[];
  gaps: GapTotal[];
  kernels: KernelRow[];
  dispatch_count: number;
  transfers: { kind: string; count: number; bytes: number }[];
  transfer_bytes: string | null;
}

export interface Instances {
  instances: { start_ns: number; duration_ns: number; track: string; row: number }[];
  count: number;
}

export interface GraphNode {
  id: number;
  name: string;
  label: string | null;
  count: number;
  total_ns: number | null;
  first_start_ns: number | null;
  kind: "dispatch" | "transfer" | "rest";
}

export interface GraphEdge {
  from: number;
  to: number;
  count: number;
  buffers: string[];
  bytes: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  folded: string;
  dispatches: number;
  considered: number;
}

export interface Work {
  name: string;
  evaluations: number | null;
  counted_evaluations: number;
  dispatch_count: number | null;
  gpu_busy_ns: number | null;
  wall_ns: number | null;
  verdict: string;
  verdict_sentence: string;
}

/** One figure of both sides: medians of evaluations, or totals. */
export interface Ratio {
  what: string;
  before: number | null;
  after: number | null;
  /** `before / after`. */
  ratio: number | null;
  /** The interval of the true ratio. */
  low: number | null;
  high: number | null;
  within_noise: boolean | null;
}

export interface KernelChange {
  name: string;
  before_count: number | null;
  after_count: number | null;
  before_ns: number | null;
  after_ns: number | null;
}

/** Idle time of a cause. */
export interface CauseChange {
  cause: string;
  before_ns: number | null;
  after_ns: number | null;
}

/** What devices idled for. */
export interface RankIdle {
  window_ns: number;
  total_ns: number;
  cause: string | null;
  cause_ns: number | null;
}

export interface RankRow {
  rank: number;
  verdict: string;
  verdict_sentence: string;
  verdict_evidence: Part[];
  idle: RankIdle | null;
  gpu_busy_ns: number | null;
  collective_ns: number | null;
  waited_ns: number | null;
  last_count: number | null;
  last_skew_ns: number | null;
}

/** A collective that the ranks did not reach together. */
export interface Collective {
  kind: string;
  number: number;
  first_ns: number;
  skew_ns: number;
  first_rank: number;
  last_rank: number;
  arrivals: { rank: number; start_ns: number; end_ns: number; queue: number | null; waited_ns: number | null }[];
}

export interface Outlier {
  ranks: number[];
}

/** The ranks of a program, compared. */
export interface RankFindings {
  world_size: number | null;
  verdict: string;
  verdict_sentence: string;
  verdict_evidence: Part[];
  ranks: RankRow[];
  /** The trace of each of them. */
  traces: number[];
  missing_ranks: number[];
  longest: Collective[];
  straggler: { rank: number; cause: { what: string; longer_ns: number } | null } | null;
  outliers: Outlier[];
  sentences: string[];
}

export interface Comparison {
  before: Work;
  after: Work;
  per_evaluation: boolean;
  /** What says that the work is equal: `labels`, `claim`; or that it is not: `no-common-kernel`, `few-common-kernels`. */
  basis: string;
  common_kernels: number | null;
  all_kernels: number | null;
  ratios: Ratio[];
  /** What differs most comes first. */
  kernels: KernelChange[];
  causes: CauseChange[];
  sentences: string[];
}

export interface Live {
  /** Of each trace that the overview has, in its order. */
  traces: { generation: number; live: boolean; edition: number }[];
}

/** What a reader noted at a moment, or of a range. */
export interface Note {
  from_ns: number;
  /** `null` of a moment. */
  to_ns: number | null;
  text: string;
}

export interface NotesAnswer {
  /** Changes with the notes. */
  revision: string;
  notes: Note[];
  /** Why none can be written. */
  unwritable: string | null;
}
