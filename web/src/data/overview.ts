// What is open: the traces, with their groups and tracks.

import type { CallFacts, CauseFacts } from "./causes.ts";
import type { CaptureOverview } from "./dependencies.ts";
import type { Loss, UnreadTable } from "./losses.ts";

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
  /** Rows that the page holds of a trace at once, of a larger one what is in sight; absent in a file. */
  page_rows?: number;
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

export interface ManifestProcess {
  id: number;
  /** What recorded it. */
  hook?: string;
}

export interface ManifestDevice {
  id: number;
  process?: number;
  api: string;
  name: string;
  driver: string;
  clock: { method: string; error_ns: number | null };
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
    processes?: ManifestProcess[];
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

export interface Live {
  /** Of each trace that the overview has, in its order. */
  traces: { generation: number; live: boolean; edition: number }[];
}
