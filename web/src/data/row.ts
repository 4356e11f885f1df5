// A row of a table, with what belongs to it.

import type { Gap } from "./gaps.ts";
import type { Missing } from "./missing.ts";

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

export interface Source {
  language: string;
  text: string;
  cut: boolean;
  file: string;
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
