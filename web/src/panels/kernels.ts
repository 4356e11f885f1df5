// The tables of kernels and labels, and the words for a kernel's limit, which is what keeps it from being faster.

import type { Appearance } from "../appearance.ts";
import type { Trace } from "../data/trace.ts";
import { h } from "../dom.ts";
import type { Findings, Kernel, LabelRow, Launches } from "../generated/protocol.ts";
import { bytes, count, duration, known, share } from "../time/format.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

/** A kernel with the key of its name, by which the kernel is coloured. */
export interface NamedKernel extends Kernel {
  /** The index of the name in the trace's strings; null where the findings do not tell it. */
  key: number | null;
}

/** Makes the table of kernels; `pick` is called for the row that is clicked. */
export function kernelTable(trace: Trace, appearance: Appearance, pick: (row: NamedKernel) => void): Table<NamedKernel> {
  return new Table<NamedKernel>({
    name: "Kernels",
    sorted: 2,
    empty: "The trace has no dispatches.",
    pick,
    columns: [
      { head: "Kernel", text: (row) => h("span", { class: "cause", title: tooltip(row) }, swatch(appearance.nameColour(trace, row.key, "kernel")), h("span", { class: "whole" }, row.name)), sort: (row) => row.name, wide: true, whole: true },
      { head: "Dispatches", text: (row) => count(row.count), sort: (row) => row.count, number: true },
      { head: "Busy", text: (row) => known(row.busy_ns, duration), sort: (row) => row.busy_ns, number: true, tooltip: "Time in which at least one of them ran." },
      { head: "Share", text: (row) => known(row.busy_share, share), sort: (row) => row.busy_share, number: true, tooltip: "Of the devices' busy time." },
      { head: "Median", text: (row) => known(row.p50_ns, duration), sort: (row) => row.p50_ns, number: true },
      { head: "p99", text: (row) => known(row.p99_ns, duration), sort: (row) => row.p99_ns, number: true },
      { head: "Longest", text: (row) => known(row.max_ns, duration), sort: (row) => row.max_ns, number: true },
      { head: "Limit", text: (row) => limitText(row), sort: (row) => row.winnable_ns, number: true, tooltip: "What limits the kernel, by hardware counters and the shape of its launches, and the most time that reaching the limit could save." },
      { head: "Reads", text: (row) => known(row.bound_read_bytes, bytes), sort: (row) => row.bound_read_bytes, number: true, tooltip: "Bytes of the buffer ranges bound for reading: an upper bound." },
      { head: "Writes", text: (row) => known(row.bound_written_bytes, bytes), sort: (row) => row.bound_written_bytes, number: true, tooltip: "Bytes of the buffer ranges bound for writing: an upper bound." },
    ],
  });
}

/** Formats the limit of a kernel, such as `tail ≤ 17.0 ms`; a dash where the launches' shape shows no limit. */
export function limitText(row: Kernel): string {
  const { launches, limit, winnable_ns, counters } = row;
  if (limit === null) return launches && !counters ? "–" : "unknown";
  const name = limitName(row);
  return winnable_ns === null ? name : `${name} ≤ ${duration(winnable_ns)}`;
}

const UNITS: Record<string, string> = { dram: "DRAM", l2: "L2", tensor: "tensor", fma: "FMA", alu: "ALU", issue: "issue", pcie: "PCIe", nvlink: "NVLink" };

/** Returns the readable name of a unit; an unknown one keeps its own. */
export function unitName(unit: string): string {
  return UNITS[unit] ?? unit;
}

/** Returns the limit of a kernel, such as `memory` or `compute: tensor`; of one with phases, such as `memory 60.0 %, idle 40.0 %`. */
export function limitName({ phases, ...kernel }: Pick<Kernel, "limit" | "limited_by" | "phases">): string {
  return phases?.length ? phases.map((phase) => `${phaseLimitName(phase)} ${share(phase.time_share)}`).join(", ") : phaseLimitName(kernel);
}

/** Returns the name of one limit. */
function phaseLimitName({ limit, limited_by }: Pick<Kernel, "limit" | "limited_by">): string {
  const name = limit?.replaceAll("-", " ") ?? "unknown";
  return limited_by && (limit === "compute" || limit === "link" || limited_by === "l2") ? `${name}: ${unitName(limited_by)}` : name;
}

/** Returns the tooltip of a kernel: its shown name, its full name, its variants and the shape of its launches. */
export function tooltip(row: Kernel): string {
  const variants = row.variants > 1 ? `${count(row.variants)} variants: specialised or launched in different ways` : null;
  return [row.name, row.full_name, variants, row.launches && shapeText(row.launches)].filter((line) => line !== null).join("\n\n");
}

/** Describes the shape of a kernel's launches. */
function shapeText({ mean_multiprocessors, multiprocessors, waves, occupancy, occupancy_limited_by }: Launches): string {
  const facts = [`workgroups for ${mean_multiprocessors.toFixed(0)} of ${multiprocessors} multiprocessors`];
  if (waves !== null) facts.push(`${waves.toFixed(1)} waves`);
  if (occupancy !== null) facts.push(`occupancy at most ${share(occupancy)}${occupancy_limited_by ? ` (${occupancy_limited_by})` : ""}`);
  return facts.join(", ");
}

/** Returns the kernels of the findings with their keys; null where they are unknown. */
export function namedKernels(findings: Findings): NamedKernel[] | null {
  return findings.kernels && findings.kernels.map((kernel, at) => ({ ...kernel, key: findings.kernel_rows[at]?.name ?? null }));
}

export const NO_LABELS = "The trace has no labels. Labels (debug-utils, NVTX) show which part of the program GPU work belongs to.";

/** Makes the table of labels, indented by depth and in the order of the findings at first. */
export function labelTable(pick: (row: LabelRow) => void): Table<LabelRow & { order: number }> {
  const indented = (row: LabelRow): HTMLElement => {
    const element = h("span", { class: "clip", title: row.path }, row.text);
    element.style.paddingLeft = `${Math.min(row.depth, 12) * 12}px`;
    return element;
  };
  return new Table<LabelRow & { order: number }>({
    name: "Labels",
    sorted: -1,
    empty: NO_LABELS,
    pick,
    columns: [
      { head: "Label", text: indented, sort: (row) => row.order, wide: true },
      { head: "Set", text: (row) => known(row.instances, count), sort: (row) => row.instances, number: true, tooltip: "How often it was set." },
      { head: "Dispatches", text: (row) => count(row.inclusive.dispatch_count), sort: (row) => row.inclusive.dispatch_count, number: true, tooltip: "With those of the labels inside." },
      { head: "Transfers", text: (row) => count(row.inclusive.transfer_count), sort: (row) => row.inclusive.transfer_count, number: true },
      { head: "Busy", text: (row) => known(row.inclusive.busy_ns, duration), sort: (row) => row.inclusive.busy_ns, number: true, tooltip: "Time in which work of it ran." },
    ],
  });
}
