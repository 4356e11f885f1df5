// Two sides compared, and the instances of a label that make a side.

export interface Instances {
  instances: { start_ns: number; duration_ns: number; track: string; row: number }[];
  count: number;
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
