// Lays out a dependency graph: columns by depth, submission after submission (work that was handed to a queue
// together); lanes by chains, which are nodes each of which depends on the one before; a band for each queue. The units are those
// of the drawing, which the camera scales to pixels.

import type { DependencyNode, Need } from "../generated/protocol.ts";
import { type Barrier, type DependencyGraph, strongest } from "./graph.ts";

export const NODE = { width: 138, height: 48 } as const;
/** The distance of columns, with room for a barrier and the frames of two submissions. */
const COLUMN = NODE.width + 74;
const LANE = NODE.height + 42;
/** The room between the nodes of a submission and its frame. */
const FRAME = { side: 26, top: 28, bottom: 18 } as const;
/** The room for a queue's name above its lanes. */
const BAND_TOP = 62;
/**
 * The place of a barrier's mark: its distance from a node beside it, what it is longer than a node at each end, and its
 * distance from the frame's top and bottom where it divides the whole submission.
 */
const MARK = { side: 14, beyond: 8, top: 18, bottom: 8 } as const;

/** What decides the columns: the dependencies, or the recorded barriers. */
export type ColumnsBy = "dependencies" | "barriers";

/** A node with its column, its lane within its queue's band, and its left upper corner. */
export interface PlacedNode {
  node: DependencyNode;
  column: number;
  lane: number;
  x: number;
  y: number;
}

/** The frame around the nodes of a submission. */
export interface SubmissionFrame {
  submission: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

/**
 * The place of barriers: a vertical line from `y` on. Barriers at one place share a mark, and `need` is the first of
 * theirs in the order of `NEEDS`.
 */
export interface BarrierMark {
  barriers: Barrier[];
  need: Need;
  x: number;
  y: number;
  height: number;
}

/** Where everything of a graph is drawn; `nodes` are by id. */
export interface Layout {
  nodes: Map<number, PlacedNode>;
  frames: SubmissionFrame[];
  marks: BarrierMark[];
  bands: { name: string; y: number }[];
  width: number;
  height: number;
}

/**
 * The needs of barriers, the most telling first. That of barriers for the host (`host`), and of those that may order work
 * outside of the capture (`outside`), is not known.
 */
const NEEDS: readonly Need[] = ["needless", "needed", "unknown", "host", "outside"];

/** The nodes of a submission that follow each other in a queue. */
interface SubmissionRun {
  submission: number;
  queue: string;
  nodes: PlacedNode[];
}

/** Lays out a graph with columns by its dependencies or by its barriers. */
export function layoutOf(graph: DependencyGraph, columnsBy: ColumnsBy): Layout {
  const queueOf = (submission: number): string => graph.submissions.get(submission)?.queue ?? "unknown queue";
  const placed = new Map<number, PlacedNode>();
  const runs = columns(graph, columnsBy, placed, queueOf);
  const queues = [...new Set(runs.map(({ queue }) => queue))];
  const lanesOf = new Map<string, number>();
  lanes(graph, placed, queueOf, lanesOf);
  const bands: Layout["bands"] = [];
  const tops = new Map<string, number>();
  let y = 0;
  for (const queue of queues) {
    bands.push({ name: queue, y });
    tops.set(queue, y + BAND_TOP);
    y += BAND_TOP + (lanesOf.get(queue) ?? 1) * LANE;
  }
  let width = 0;
  for (const one of placed.values()) {
    one.x = FRAME.side + one.column * COLUMN;
    one.y = (tops.get(queueOf(one.node.submission)) ?? 0) + one.lane * LANE;
    width = Math.max(width, one.x + NODE.width + FRAME.side);
  }
  const frames = runs.map(frameOf);
  return { nodes: placed, frames, marks: marks(graph, placed, frames, columnsBy), bands, width, height: y };
}

/**
 * Assigns each node a column, adds it to `placed`, and returns the submissions. A node stands to the right of all
 * that it waits for. In each queue a submission begins after the one before it has ended; by barriers, all after a
 * barrier stands to the right of all before it.
 */
function columns(graph: DependencyGraph, columnsBy: ColumnsBy, placed: Map<number, PlacedNode>, queueOf: (submission: number) => string): SubmissionRun[] {
  const runs: SubmissionRun[] = [];
  /** For each queue the submission whose nodes are being placed, the first column that the next may have, and the last taken. */
  const current = new Map<string, { run: SubmissionRun; first: number; last: number }>();
  const afterBarriers = new Set(graph.barriers.map((barrier) => graph.around(barrier).after?.id));
  for (const node of graph.nodes) {
    const queue = queueOf(node.submission);
    let at = current.get(queue);
    if (!at || at.run.submission !== node.submission) {
      const first = at ? at.last + 1 : 0;
      at = { run: { submission: node.submission, queue, nodes: [] }, first, last: first };
      current.set(queue, at);
      runs.push(at.run);
    } else if (columnsBy === "barriers" && afterBarriers.has(node.id)) {
      at.first = at.last + 1;
    }
    let column = at.first;
    for (const { from } of graph.waitsFor(node.id)) column = Math.max(column, (placed.get(from)?.column ?? -1) + 1);
    at.last = Math.max(at.last, column);
    const one = { node, column, lane: 0, x: 0, y: 0 };
    placed.set(node.id, one);
    at.run.nodes.push(one);
  }
  return runs;
}

/**
 * Assigns each node a lane: that of the node that it most strongly depends on in its queue (`strongest`: on the critical
 * path, then by reading what that wrote, then by bytes), or the nearest free one.
 * It writes the number of lanes of each queue to `counts`.
 */
function lanes(graph: DependencyGraph, placed: Map<number, PlacedNode>, queueOf: (submission: number) => string, counts: Map<string, number>): void {
  const taken = new Map<string, number[]>();
  for (const one of placed.values()) {
    const queue = queueOf(one.node.submission);
    let last = taken.get(queue);
    if (!last) taken.set(queue, (last = []));
    const before = graph.waitsFor(one.node.id).filter(({ from }) => queueOf(placed.get(from)?.node.submission ?? -1) === queue);
    const chain = strongest(before);
    const wanted = chain ? (placed.get(chain.from)?.lane ?? 0) : 0;
    one.lane = nearest(last, wanted, one.column);
    last[one.lane] = one.column;
    counts.set(queue, Math.max(counts.get(queue) ?? 0, one.lane + 1));
  }
}

/** Returns the free lane nearest to the wanted one; `last` has the last taken column of each lane. */
function nearest(last: readonly number[], wanted: number, column: number): number {
  const free = (lane: number): boolean => lane >= 0 && (last[lane] ?? -1) < column;
  for (let away = 0; away <= last.length; away += 1) {
    if (free(wanted + away)) return wanted + away;
    if (free(wanted - away)) return wanted - away;
  }
  return last.length;
}

function frameOf({ submission, nodes }: SubmissionRun): SubmissionFrame {
  const xs = nodes.map(({ x }) => x);
  const ys = nodes.map(({ y }) => y);
  const x = smallest(xs) - FRAME.side;
  const y = smallest(ys) - FRAME.top;
  return { submission, x, y, width: greatest(xs) + NODE.width + FRAME.side - x, height: greatest(ys) + NODE.height + FRAME.bottom - y };
}

function smallest(values: readonly number[]): number {
  return values.reduce((least, value) => Math.min(least, value), Infinity);
}

function greatest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity);
}

/** Places barriers before the node that follows them, and the last of a submission after its last node. */
function marks(graph: DependencyGraph, placed: Map<number, PlacedNode>, frames: readonly SubmissionFrame[], columnsBy: ColumnsBy): BarrierMark[] {
  const found = new Map<string, BarrierMark>();
  const frameBySubmission = new Map(frames.map((frame) => [frame.submission, frame]));
  for (const barrier of graph.barriers) {
    const { before, after } = graph.around(barrier);
    const next = after && placed.get(after.id);
    const last = before && placed.get(before.id);
    const at = next ?? last;
    const frame = frameBySubmission.get(barrier.submission);
    if (!at || !frame) continue;
    const x = next ? next.x - MARK.side : at.x + NODE.width + MARK.side;
    // By barriers, a barrier divides the whole submission, so that its mark is as high as the frame.
    const dividesSubmission = columnsBy === "barriers";
    const y = dividesSubmission ? frame.y + MARK.top : at.y - MARK.beyond;
    const height = dividesSubmission ? frame.height - MARK.top - MARK.bottom : NODE.height + 2 * MARK.beyond;
    const key = `${x}.${y}`;
    const mark = found.get(key);
    if (mark) {
      mark.barriers.push(barrier);
      if (NEEDS.indexOf(barrier.need) < NEEDS.indexOf(mark.need)) mark.need = barrier.need;
    } else {
      found.set(key, { barriers: [barrier], need: barrier.need, x, y, height });
    }
  }
  return [...found.values()];
}
