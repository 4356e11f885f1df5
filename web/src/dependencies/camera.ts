// Which part of a drawing is seen, and how large.

export interface Camera {
  /** What of the drawing is at the left and upper edge. */
  x: number;
  y: number;
  /** Pixels of the screen for one of the drawing. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

const LEAST = 0.004;
const MOST = 2.5;
/** A graph that would be drawn smaller than this begins at its left end instead. */
const READABLE = 0.42;
const MARGIN = 16;

/** All of the drawing, in the middle. */
export function fitted(drawing: Size, screen: Size): Camera {
  const room = { width: Math.max(1, screen.width - 2 * MARGIN), height: Math.max(1, screen.height - 2 * MARGIN) };
  const scale = Math.max(LEAST, Math.min(1.15, room.width / Math.max(1, drawing.width), room.height / Math.max(1, drawing.height)));
  return { scale, x: (drawing.width - screen.width / scale) / 2, y: (drawing.height - screen.height / scale) / 2 };
}

/** All of the drawing where it can be read then, or else its beginning. */
export function opening(drawing: Size, screen: Size): Camera {
  const all = fitted(drawing, screen);
  if (all.scale >= READABLE) return all;
  const scale = Math.max(READABLE, Math.min(1, (screen.height - 2 * MARGIN) / Math.max(1, drawing.height)));
  const high = drawing.height * scale > screen.height - 2 * MARGIN;
  return { scale, x: -MARGIN / scale, y: high ? -MARGIN / scale : (drawing.height - screen.height / scale) / 2 };
}

/** Larger or smaller, where the point of the screen stays. */
export function zoomedAt(camera: Camera, at_x: number, at_y: number, by: number): Camera {
  const scale = Math.max(LEAST, Math.min(MOST, camera.scale * by));
  return { scale, x: camera.x + at_x / camera.scale - at_x / scale, y: camera.y + at_y / camera.scale - at_y / scale };
}

/** Keeps some of the drawing in sight. */
export function kept(camera: Camera, drawing: Size, screen: Size): Camera {
  const keep = (at: number, size: number, seen: number): number => Math.max(-seen * 0.75, Math.min(at, size - seen * 0.25));
  return { ...camera, x: keep(camera.x, drawing.width, screen.width / camera.scale), y: keep(camera.y, drawing.height, screen.height / camera.scale) };
}

/** Moved so that a box of the drawing is in sight, and can be read. */
export function revealing(camera: Camera, box: { x: number; y: number } & Size, screen: Size): Camera {
  const scale = Math.max(camera.scale, READABLE);
  const [wide, high] = [screen.width / scale, screen.height / scale];
  const inside = (from: number, size: number, at: number, seen: number): number =>
    at >= from + 8 && at + size <= from + seen - 8 ? from : at + size / 2 - seen / 2;
  if (scale !== camera.scale) return { scale, x: box.x + box.width / 2 - wide / 2, y: box.y + box.height / 2 - high / 2 };
  return { scale, x: inside(camera.x, box.width, box.x, wide), y: inside(camera.y, box.height, box.y, high) };
}
