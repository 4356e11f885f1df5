// Kernels: their times, the shape of their launches, their counters and what limits them.

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

/** A kernel whose instructions were sampled; shares are 0 to 1. */
export interface SampledKernel {
  kernel: string;
  samples: number;
  /** Of all samples that were recorded. */
  share: number;
  /** Of the whole kernel, most samples first. */
  stalls: SampledStall[];
  /** Most samples first. */
  places: SampledPlace[];
}

/** A reason for which warps did not issue; `selected` where they did. */
export interface SampledStall {
  reason: string;
  share: number;
  meaning: string | null;
  advice: string | null;
}

/** A line of source; an instruction, where it has no line. */
export interface SampledPlace {
  file: string | null;
  line: number | null;
  no_line: string | null;
  offset_bytes: number;
  /** Of the kernel's samples. */
  share: number;
  stalls: SampledStall[];
}
