// The shapes of the answer `dependencies`, as `crates/view/PROTOCOL.md` describes it.

export type EdgeKind = "RAW" | "WAR" | "WAW";
export type Need = "needed" | "needless" | "outside" | "host" | "unknown";

export interface AccessAnswer {
  buffer: string;
  /** Set, binding, element; of a transfer none. */
  binding: [number, number, number] | null;
  direction: "read" | "write";
  bytes: string;
  /** Why maybe not all of the bytes are reached; null: they are exact. */
  reason: string | null;
}

export interface NodeAnswer {
  id: number;
  kind: string;
  name: string;
  labels: string[];
  submission: number;
  read_bytes: string;
  written_bytes: string;
  exact: boolean;
  /** It may reach memory that is not among its accesses: why. */
  beyond: string | null;
  duration_ns: number | null;
  accesses: AccessAnswer[];
  access_count: number;
  /** Of a recording: the row that it is. */
  place: { table: string; row: number; track: string | null; start_ns: number | null } | null;
}

export interface EdgeAnswer {
  from: number;
  to: number;
  kind: EdgeKind;
  bytes: string;
  exact: boolean;
  ordered_by: "barrier" | "semaphore" | "nothing" | "unknown";
  hazard: "certain" | "possible" | null;
  buffers: string[];
  buffer_count: number;
}

export interface BarrierAnswer {
  /** Nodes before it. */
  position: number;
  submission: number;
  /** Which of its command buffer's commands it is. */
  command: number;
  need: Need;
  /** Why that is not known. */
  reason: string | null;
}

export interface SubmissionAnswer {
  number: number;
  name?: string | null;
  queue: string | null;
  called_ns: string | null;
  device_ns: string | null;
}

export interface CriticalPathAnswer {
  /** Those that are here. */
  nodes: number[];
  node_count: number;
  unit: "ns" | "commands";
  length: string;
  work: string;
  parallelism: number | null;
}

export interface DependenciesAnswer {
  first: number;
  node_count: number;
  nodes: NodeAnswer[];
  edge_count: number;
  edges: EdgeAnswer[];
  edges_left_out: number;
  edges_outside: number;
  hazard_count: number;
  possible_hazard_count: number;
  barrier_count: number;
  needless_count: number;
  barriers: BarrierAnswer[];
  submissions: SubmissionAnswer[];
  critical_path: CriticalPathAnswer | null;
  cut_at: number | null;
  unknown: string | null;
  remarks: string[];
}

export interface CapturedKernel {
  name: string;
  entry: string;
  dispatch_count: number;
  constant_count: number;
  required_subgroup_size: number | null;
  code_bytes: number | null;
  code: string | null;
}

/** What the overview says of a capture. */
export interface CaptureOverview {
  name: string;
  gapscope: string;
  command: string;
  process: number;
  window: string;
  started_unix_ns: string;
  device: { name: string; driver: string; subgroup_size: number };
  end: string | null;
  window_ns: string | null;
  submission_count: number;
  dispatch_count: number;
  transfer_count: number;
  barrier_count: number;
  buffer_count: number;
  buffer_bytes: string;
  kernel_count: number;
  kernels: CapturedKernel[];
  remarks: string[];
}
