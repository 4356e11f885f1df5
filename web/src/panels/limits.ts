// The panel of kernel limits: a roofline in shares of the limits of memory and arithmetic, and a table. A pipe is a
// unit of the device that calculates, such as the tensor cores; covered is the part of a kernel's time that counters'
// samples describe.

import type { Appearance } from "../appearance.ts";
import type { LaunchCounter } from "../data/launch-counters.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h, svg } from "../dom.ts";
import type { KernelCounters } from "../generated/protocol.ts";
import { bytes, duration, known, plural, quantity, share, statisticsText } from "../time/format.ts";
import { limitName, limitText, type NamedKernel, unitName } from "./kernels.ts";
import { type Loadable, type FindingsSoFar, part } from "./loadable.ts";
import { swatch } from "./swatch.ts";
import { Table } from "./table.ts";

const SIZE = { width: 314, height: 216, left: 42, right: 10, top: 8, bottom: 32 };
/** The share below which a kernel is near neither limit (`NEAR_LIMIT_SHARE` of the analysis). */
const NEAR_LIMIT_SHARE = 0.6;
const MAX_MARKS = 60;
/** The units that count as pipes. */
const COMPUTE = ["tensor", "fma", "alu"];

/** A kernel in the picture. */
export interface Point {
  kernel: NamedKernel;
  /** The reached share of the memory's limit. */
  memory: number;
  /** The reached share of the limit of the busiest pipe. */
  compute: number;
  /** The busiest pipe. */
  unit: string;
}

/** Returns the kernels of which both shares are known, those with the most time first, at most `MAX_MARKS`. */
export function points(kernels: readonly NamedKernel[]): Point[] {
  const found = kernels.flatMap((kernel): Point[] => {
    const shares = kernel.counters?.shares ?? [];
    const memory = shares.find(({ unit }) => unit === "dram");
    const compute = pipe(kernel.counters);
    return memory && compute ? [{ kernel, memory: memory.share, compute: compute.share, unit: compute.unit }] : [];
  });
  return found.sort((a, b) => (b.kernel.busy_ns ?? 0) - (a.kernel.busy_ns ?? 0)).slice(0, MAX_MARKS);
}

/** The panel of one trace. */
export class LimitsPanel {
  readonly element = h("div", { class: "panel limits-panel" });
  private readonly sentences = h("div", { class: "limits-sentences" });
  private readonly picture = h("figure", { class: "roofline" });
  private readonly table: Table<NamedKernel>;

  constructor(
    private readonly trace: Trace,
    private readonly appearance: Appearance,
    private readonly pick: (row: NamedKernel) => void,
  ) {
    this.table = new Table<NamedKernel>({
      name: "Limits of kernels",
      sorted: 2,
      empty: "The trace has no kernels with times.",
      pick,
      note: ({ counters }) => counters && h("span", { class: "note" }, spareText(counters)),
      columns: [
        { head: "Kernel", text: (row) => h("span", { class: "cause", title: row.full_name ?? row.name }, swatch(appearance.nameColour(trace, row.key, "kernel")), h("span", { class: "whole" }, row.name)), sort: (row) => row.name, wide: true, whole: true },
        { head: "Limit", text: (row) => h("span", { class: "words", title: row.limit === null ? row.counters?.unknown_because : null }, row.limit === null ? limitText(row) : limitName(row)), sort: (row) => row.limit },
        { head: "Could save", text: (row) => known(row.winnable_ns, (ns) => `≤ ${duration(ns)}`), sort: (row) => row.winnable_ns, number: true, tooltip: "The most time that reaching the limit with the same work could save." },
        { head: "Reached", text: (row) => reached(row.reached, row.reached_error), sort: (row) => row.reached, number: true, tooltip: "The achieved share of the limit. ± is the standard error, plus the part that samples do not cover." },
        { head: "DRAM", text: (row) => shareOf(row.counters, "dram"), sort: (row) => unitShare(row.counters, "dram"), number: true, spare: true, tooltip: "The share of the memory's bandwidth." },
        { head: "Pipe", text: (row) => pipeText(row.counters), sort: (row) => pipe(row.counters)?.share ?? null, number: true, spare: true, tooltip: "The pipe that worked most, and for which share of the time." },
        { head: "Covered", text: (row) => known(row.counters?.covered_share ?? null, share), sort: (row) => row.counters?.covered_share ?? null, number: true, spare: true, tooltip: "The share of the kernel's time that is covered by samples within its dispatches." },
      ],
    });
    this.element.append(h("div", { class: "limits-split" }, h("div", { class: "limits-side" }, this.picture, this.sentences), this.table.element));
  }

  /**
   * Shows limits; `rows` are of the whole trace or of the selected range, `none` is the sentence for an empty table,
   * and `aside` says what the rows are of where one could be taken for the other.
   */
  show(findings: FindingsSoFar, loadingMessage: string, rows: Loadable<NamedKernel[]>, none: string | null = null, aside: string | null = null): void {
    this.table.take(rows.state === "loaded" ? { state: "loaded", value: rows.value.filter(({ total_ns }) => total_ns !== null) } : rows, none);
    const limits = part(findings, loadingMessage, (found) => found.kernel_limits ?? { sentences: [] });
    if (rows.state !== "loaded" || limits.state !== "loaded") return fill(this.picture);
    const all = points(rows.value);
    this.picture.hidden = all.length === 0;
    fill(this.picture, all.length > 0 ? this.roofline(all) : null, h("figcaption", { class: "note" }, CAPTION));
    const sentences = limits.value.sentences.length > 0 ? limits.value.sentences : [NO_COUNTERS];
    fill(this.sentences, aside === null ? null : h("p", { class: "of-all" }, aside), sentences.map((sentence) => h("p", { class: "note" }, sentence)));
  }

  /** Draws the picture: a mark for each kernel, whose area grows with its time. */
  private roofline(all: Point[]): SVGElement {
    const { width, height, left, right, top, bottom } = SIZE;
    // Measured limits can be exceeded.
    const most = Math.max(1, ...all.flatMap(({ memory, compute }) => [memory, compute]));
    const x = (part: number): number => left + (part / most) * (width - left - right);
    const y = (part: number): number => height - bottom - (part / most) * (height - top - bottom);
    const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
    const grid = ticks.flatMap((tick) => [
      svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: y(0), y2: y(most) }),
      svg("line", { class: "grid", x1: x(0), x2: x(most), y1: y(tick), y2: y(tick) }),
      svg("text", { x: x(tick), y: y(0) + 14, "text-anchor": "middle" }, `${Math.round(tick * 100)}`),
      svg("text", { x: x(0) - 6, y: y(tick) + 4, "text-anchor": "end" }, `${Math.round(tick * 100)}`),
    ]);
    const longest = Math.max(...all.map(({ kernel }) => kernel.busy_ns ?? 0), 1);
    const marks = all.map((point) => {
      const { kernel, memory, compute } = point;
      const radius = 4 + 10 * Math.sqrt((kernel.busy_ns ?? 0) / longest);
      const scale = most / Math.max(memory, compute, 1e-9);
      const text = pointText(point);
      const mark = svg(
        "g",
        { class: "kernel-mark", role: "button", tabindex: 0, "aria-label": text, "data-kernel": kernel.name, onclick: () => this.pick(kernel), onkeydown: (event: KeyboardEvent) => (event.key === "Enter" || event.key === " ") && this.pick(kernel) },
        // A kernel that does the same work faster moves along this line to the first limit.
        svg("line", { class: "way", x1: x(memory), y1: y(compute), x2: x(Math.min(1, memory * scale)), y2: y(Math.min(1, compute * scale)) }),
        svg("circle", { cx: x(memory), cy: y(compute), r: radius, fill: this.appearance.nameColour(this.trace, kernel.key, "kernel") }),
        svg("title", {}, text),
      );
      return mark;
    });
    return svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Kernels by their shares of the limits of memory and arithmetic" },
      svg("rect", { class: "far", x: x(0), y: y(NEAR_LIMIT_SHARE), width: x(NEAR_LIMIT_SHARE) - x(0), height: y(0) - y(NEAR_LIMIT_SHARE) }),
      grid,
      svg("path", { class: "roof", d: `M ${x(0)} ${y(1)} H ${x(1)} V ${y(0)}` }),
      svg("text", { x: (x(0) + x(1)) / 2, y: height - 4, "text-anchor": "middle" }, "% of the memory's limit"),
      svg("text", { transform: `translate(11 ${(y(0) + y(1)) / 2}) rotate(-90)`, "text-anchor": "middle" }, "% of the busiest pipe"),
      marks,
      names(all.map((point) => ({ name: point.kernel.name, x: x(point.memory), y: y(point.compute) }))),
    );
  }
}

/** Makes names beside the marks, without overlaps; kernels with the most time come first. */
function names(marks: { name: string; x: number; y: number }[]): SVGElement[] {
  const placed: { from: number; to: number; y: number }[] = [];
  return marks.flatMap(({ name, x, y }) => {
    const text = name.length > MAX_NAME_LETTERS ? `${name.slice(0, MAX_NAME_LETTERS - 1)}…` : name;
    const width = text.length * LETTER_PX;
    const right = x + BESIDE_PX + width <= SIZE.width;
    const from = right ? x + BESIDE_PX : x - BESIDE_PX - width;
    const place = { from, to: from + width, y };
    if (from < SIZE.left || placed.some((other) => Math.abs(other.y - y) < LINE_PX && other.from < place.to && place.from < other.to)) return [];
    placed.push(place);
    return svg("text", { class: "kernel-name", x: right ? from : place.to, y: y + 4, "text-anchor": right ? "start" : "end" }, text);
  });
}

/** The most letters of a name, the width of a letter, the height of a line, and a name's distance from its mark. */
const MAX_NAME_LETTERS = 18;
const LETTER_PX = 6.2;
const LINE_PX = 13;
const BESIDE_PX = 16;

const CAPTION = "A roofline in shares of the limits. On the strong line a kernel is as fast as memory or a pipe allows. A kernel that does the same work faster moves away from the origin along its own line. The shaded area is near neither limit. The size of a mark shows the time.";
export const NO_LIMITS = "The limits of its kernels are unknown: the trace has neither hardware counters nor launches whose shape tells.";
const NO_COUNTERS = "The trace has no hardware counters, so limits are derived from the shape of launches alone.";

/** Describes a mark. */
export function pointText({ kernel, memory, compute, unit }: Point): string {
  return `${kernel.name}: ${share(memory)} of the memory's limit, ${unitName(unit)} ${share(compute)}, ${known(kernel.busy_ns, duration)}, ${limitText(kernel)}`;
}

/** Formats a reached share and its error, such as `65 % ± 2`. */
export function reached(part: number | null, error: number | null): string {
  if (part === null) return "unknown";
  return error === null ? share(part) : `${Math.round(part * 100)} % ± ${Math.ceil(Math.round(error * 1e4) / 100)}`;
}

/** Returns the reached share of a unit's limit; null where it is unknown. */
function unitShare(counters: KernelCounters | null, unit: string): number | null {
  return counters?.shares.find((one) => one.unit === unit)?.share ?? null;
}

function shareOf(counters: KernelCounters | null, unit: string): string {
  return known(unitShare(counters, unit), share);
}

/** Returns the first pipe among the shares; null where there is none. */
function pipe(counters: KernelCounters | null): { unit: string; share: number } | null {
  return counters?.shares.find(({ unit }) => COMPUTE.includes(unit)) ?? null;
}

function pipeText(counters: KernelCounters | null): string {
  const busiest = pipe(counters);
  return busiest ? `${unitName(busiest.unit)} ${share(busiest.share)}` : "unknown";
}

/** Describes the values of the columns that narrow panels leave out: `DRAM 80.0 %, FMA 10.0 %, 100 % covered`. */
export function spareText(counters: KernelCounters): string {
  const busiest = pipe(counters);
  return [unitShare(counters, "dram") === null ? null : `DRAM ${shareOf(counters, "dram")}`, busiest && pipeText(counters), `${share(counters.covered_share)} covered`].filter((text) => text !== null).join(", ");
}

/** Says how many samples lie in a dispatch: the most of any counter. */
function samplesText(launch: readonly LaunchCounter[]): string {
  return plural(Math.max(...launch.map(({ samples }) => samples)), "sample", "samples");
}

/**
 * Makes the counters of a kernel for its details: over all dispatches, and in the picked one from `launch`; null
 * where the kernel has none.
 */
export function counterDetails(row: NamedKernel, launch: readonly LaunchCounter[] = []): HTMLElement | null {
  const { counters } = row;
  if (!counters) return null;
  const moved = (name: string, found: { value: number; error: number } | null): HTMLElement[] => (found ? [h("dt", {}, name), h("dd", {}, `about ${bytes(found.value)} ± ${bytes(found.error)}`)] : []);
  return h(
    "div",
    { class: "kernel-counters" },
    h("h3", {}, "Counters while it ran alone", h("span", { class: "note" }, ` ${share(counters.covered_share)} of its time in samples`)),
    h("p", {}, `Limit: ${limitText(row)}${row.reached === null ? "" : `, reached ${reached(row.reached, row.reached_error)}`}`),
    counters.unknown_because ? h("p", { class: "note" }, counters.unknown_because) : null,
    h(
      "dl",
      { class: "fields" },
      counters.means.flatMap(({ name, unit, mean, error, min, max }) => [h("dt", {}, name), h("dd", { title: `${quantity(min, unit)} to ${quantity(max, unit)}` }, `${quantity(mean, unit)}${error === null ? "" : ` ± ${quantity(error, unit)}`}`)]),
      moved("read from memory in all", counters.dram_read_bytes),
      moved("written in all", counters.dram_written_bytes),
    ),
    launch.length > 0 ? h("h3", {}, "In this dispatch", h("span", { class: "note" }, ` ${samplesText(launch)} that lie in it`)) : null,
    launch.length > 0 ? h("dl", { class: "fields launch-counters" }, launch.flatMap(({ track: { overview }, found }) => [h("dt", {}, overview.counter?.name), h("dd", {}, statisticsText(found, overview.counter?.unit ?? "count"))])) : null,
  );
}
