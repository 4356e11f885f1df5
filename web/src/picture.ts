// Draws the visible timelines as one PNG, by the code that paints the page, onto another canvas.

import type { Timeline } from "./timeline/timeline.ts";

/** The pixels of a PNG for each pixel of the page, so that its texts stay sharp when it is enlarged. */
const PNG_RATIO = 2;

/** Returns the size of the picture of timelines below each other, in pixels of the page. */
function sizeOf(timelines: readonly Timeline[]): { width: number; height: number } {
  const sizes = timelines.map((timeline) => timeline.pictureSize);
  return { width: Math.max(1, ...sizes.map(({ width }) => width)), height: Math.max(1, sizes.reduce((sum, { height }) => sum + height, 0)) };
}

function paint(timelines: readonly Timeline[], context: CanvasRenderingContext2D): void {
  let top = 0;
  for (const timeline of timelines) {
    context.save();
    context.translate(0, top);
    timeline.paintPicture(context);
    context.restore();
    top += timeline.pictureSize.height;
  }
}

/** Returns the picture as PNG. The error says why the browser makes none. */
export async function pngPicture(timelines: readonly Timeline[]): Promise<Blob> {
  const { width, height } = sizeOf(timelines);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * PNG_RATIO);
  canvas.height = Math.round(height * PNG_RATIO);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("This browser has no 2D canvas.");
  context.scale(PNG_RATIO, PNG_RATIO);
  paint(timelines, context);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser could not make the picture: the window is too large."))), "image/png"));
}
