// The curve of an edge (a dependency of commands), from a node's right side to another's left side, in drawing units.

import { NODE, type PlacedNode } from "./layout.ts";

/** A cubic Bézier curve: its ends, and the two points that bend it. */
export interface Curve {
  x1: number;
  y1: number;
  cx1: number;
  cy1: number;
  cx2: number;
  cy2: number;
  x2: number;
  y2: number;
}

/** The vertical offset of each kind of edge (read after write …), so that edges of the same nodes are apart. */
const OFFSETS = { RAW: 0, WAR: 9, WAW: -9 } as const;

/** Returns the curve of an edge. It makes a bow around nodes between its ends in the same lane. */
export function curveOf(from: PlacedNode, to: PlacedNode, kind: keyof typeof OFFSETS): Curve {
  const offset = OFFSETS[kind];
  const x1 = from.x + NODE.width;
  const y1 = from.y + NODE.height / 2 + offset;
  const x2 = to.x;
  const y2 = to.y + NODE.height / 2 + offset;
  const bend = Math.max(24, (x2 - x1) / 2);
  const passes = to.column - from.column > 1 && to.lane === from.lane && y1 === y2;
  if (!passes) return { x1, y1, cx1: x1 + bend, cy1: y1, cx2: x2 - bend, cy2: y2, x2, y2 };
  // The edge passes by the nodes between its ends: RAW above, the others below.
  const away = (kind === "RAW" ? -1 : 1) * (NODE.height * 0.5 + 26 + Math.min(14, 2 * (to.column - from.column)) ) * 1.25;
  const side = Math.min(90, (x2 - x1) / 3);
  return { x1, y1, cx1: x1 + side, cy1: y1 + away, cx2: x2 - side, cy2: y2 + away, x2, y2 };
}

/** Returns the point at `t`, from 0 for the start to 1 for the end. */
export function pointOn(curve: Curve, t: number): { x: number; y: number } {
  const s = 1 - t;
  const [a, b, c, d] = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
  return { x: a * curve.x1 + b * curve.cx1 + c * curve.cx2 + d * curve.x2, y: a * curve.y1 + b * curve.cy1 + c * curve.cy2 + d * curve.y2 };
}

/**
 * Returns the approximate distance of a point from a curve in horizontal units; infinity where it is certainly more
 * than `most`. `tall` is the ratio of the vertical to the horizontal scale.
 */
export function distance(curve: Curve, x: number, y: number, most: number, tall = 1): number {
  const left = Math.min(curve.x1, curve.x2) - most;
  const right = Math.max(curve.x1, curve.x2) + most;
  const top = Math.min(curve.y1, curve.cy1, curve.cy2, curve.y2) - most / tall;
  const bottom = Math.max(curve.y1, curve.cy1, curve.cy2, curve.y2) + most / tall;
  if (x < left || x > right || y < top || y > bottom) return Infinity;
  let best = Infinity;
  let before = pointOn(curve, 0);
  for (let step = 1; step <= 16; step += 1) {
    const point = pointOn(curve, step / 16);
    best = Math.min(best, fromLine(x, y, before, point, tall));
    before = point;
  }
  return best;
}

/** Returns the distance of a point from the line between `a` and `b`, in the same units. */
function fromLine(x: number, y: number, a: { x: number; y: number }, b: { x: number; y: number }, tall: number): number {
  const [dx, dy] = [b.x - a.x, (b.y - a.y) * tall];
  const [px, py] = [x - a.x, (y - a.y) * tall];
  const along = Math.max(0, Math.min(1, (px * dx + py * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(px - along * dx, py - along * dy);
}
