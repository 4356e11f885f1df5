// What the analyses say of a trace, or of a range of it.

import type { CauseNote, Gap, GapTotal } from "./gaps.ts";
import type { Durations, KernelRow, ProfiledKernel, SampledKernel } from "./kernels.ts";
import type { Loss, UnreadTable } from "./losses.ts";

export interface Part {
  what: string;
  total_ns: number;
  share: number;
  sentence: string;
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
  /** Absent where no instructions were sampled. */
  sampled_kernels?: SampledKernel[] | null;
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
