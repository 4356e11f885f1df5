// The camera of a graph: the part of the drawing that is visible, and its scale. The drawing is the laid out graph in
// units of its own, and the screen is the canvas in CSS pixels. Each function returns a camera and changes none.

/** What is visible of a drawing. */
export interface Camera {
  /** The point of the drawing at the left and upper edge of the screen. */
  x: number;
  y: number;
  /** Screen pixels per unit of the drawing, horizontally. */
  scale: number;
}

/** The size of a drawing in its units, or of the screen in pixels. */
export interface Size {
  width: number;
  height: number;
}

/** The bounds of the horizontal scale. */
const MIN_SCALE = 0.0005;
const MAX_SCALE = 2.5;
/** The scale below which a graph opens at its left end instead of as a whole. */
const READABLE_SCALE = 0.42;
const MARGIN_PX = 16;
/** The least vertical scale of a graph that is seen from afar. */
const MIN_VERTICAL_SCALE = 0.6;

/** Returns the screen pixels per unit of the drawing, vertically. Graphs are long and low, so that from afar their lanes stay as high as there is room. */
export function upright({ scale }: Camera, drawing: Size, screen: Size): number {
  const room = Math.max(1, screen.height - 2 * MARGIN_PX) / Math.max(1, drawing.height);
  return Math.max(scale, Math.min(MIN_VERTICAL_SCALE, room));
}

/** Centres the drawing vertically, or shows its top where there is no room. */
function middle(camera: Camera, drawing: Size, screen: Size): Camera {
  const high = upright(camera, drawing, screen);
  const seen = screen.height / high;
  return { ...camera, y: drawing.height > seen - MARGIN_PX / high ? -MARGIN_PX / high : (drawing.height - seen) / 2 };
}

/** Shows all of the drawing, centred. */
export function fitted(drawing: Size, screen: Size): Camera {
  const room = { width: Math.max(1, screen.width - 2 * MARGIN_PX), height: Math.max(1, screen.height - 2 * MARGIN_PX) };
  const scale = Math.max(MIN_SCALE, Math.min(1.15, room.width / Math.max(1, drawing.width), Math.max(MIN_VERTICAL_SCALE, room.height / Math.max(1, drawing.height))));
  return middle({ scale, x: (drawing.width - screen.width / scale) / 2, y: 0 }, drawing, screen);
}

/** Shows all of the drawing where it stays readable, or else its beginning. */
export function opening(drawing: Size, screen: Size): Camera {
  const all = fitted(drawing, screen);
  if (all.scale >= READABLE_SCALE) return all;
  const scale = Math.max(READABLE_SCALE, Math.min(1, (screen.height - 2 * MARGIN_PX) / Math.max(1, drawing.height)));
  return middle({ scale, x: -MARGIN_PX / scale, y: 0 }, drawing, screen);
}

/** Zooms by a factor while the drawing stays in place at a point of the screen. */
export function zoomedAt(camera: Camera, at_x: number, at_y: number, by: number, drawing: Size, screen: Size): Camera {
  const next = { ...camera, scale: Math.max(MIN_SCALE, Math.min(MAX_SCALE, camera.scale * by)) };
  const [before, after] = [upright(camera, drawing, screen), upright(next, drawing, screen)];
  return { ...next, x: camera.x + at_x / camera.scale - at_x / next.scale, y: camera.y + at_y / before - at_y / after };
}

/** Moves the camera so that the drawing stays on at least a quarter of the screen, or wholly on it. */
export function kept(camera: Camera, drawing: Size, screen: Size): Camera {
  const keep = (at: number, size: number, seen: number): number => Math.max(-seen * 0.75, Math.min(at, size - seen * 0.25));
  return { ...camera, x: keep(camera.x, drawing.width, screen.width / camera.scale), y: keep(camera.y, drawing.height, screen.height / upright(camera, drawing, screen)) };
}

/** Moves and zooms so that a box of the drawing is visible and readable. */
export function revealing(camera: Camera, box: { x: number; y: number } & Size, drawing: Size, screen: Size): Camera {
  const next = { ...camera, scale: Math.max(camera.scale, READABLE_SCALE) };
  const [wide, high] = [screen.width / next.scale, screen.height / upright(next, drawing, screen)];
  const inside = (from: number, size: number, at: number, seen: number): number =>
    at >= from + 8 && at + size <= from + seen - 8 ? from : at + size / 2 - seen / 2;
  // After zooming in, the box is centred.
  const x = next.scale === camera.scale ? inside(camera.x, box.width, box.x, wide) : box.x + box.width / 2 - wide / 2;
  return { ...next, x, y: inside(camera.y, box.height, box.y, high) };
}
