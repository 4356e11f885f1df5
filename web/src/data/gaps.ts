// Idle time: gaps, and what they cost by cause.

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

/** The device of a track of gaps; null where the track is not one. */
export function deviceOfGaps(track: string | null): number | null {
  const found = /^g(\d+)\.gaps$/.exec(track ?? "");
  return found && Number(found[1]);
}
