// The ranks of a program, compared.

import type { Part } from "./findings.ts";

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
