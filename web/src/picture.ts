// Draws the visible timelines as one picture, by the code that paints the page: as PNG onto another canvas, or as SVG.

import { SvgContext } from "./draw/svg-context.ts";

import type { Timeline } from "./timeline/timeline.ts";

/** The pixels of a PNG for each pixel of the page, so that its texts stay sharp when it is enlarged. */
const PNG_RATIO = 2;

/** Returns the timelines, one below the other, as SVG. */
export function svgPicture(timelines: readonly Timeline[]): Blob {
  const sizes = timelines.map((timeline) => timeline.pictureSize);
  const measure = document.createElement("canvas").getContext("2d");
  if (!measure) throw new Error("This browser has no 2D canvas.");
  const context = new SvgContext(measure);
  for (const timeline of timelines) {
    // The painters use the operations that the stand-in has; the compiler knows only the whole context.
    timeline.paintPicture(context as unknown as CanvasRenderingContext2D);
    context.translate(0, timeline.pictureSize.height);
  }
  return new Blob([context.picture(Math.max(1, ...sizes.map(({ width }) => width)), Math.max(1, sizes.reduce((sum, { height }) => sum + height, 0)))], { type: "image/svg+xml" });
}

/** Returns the timelines, one below the other, as PNG. The error says why the browser makes none. */
export async function pngPicture(timelines: readonly Timeline[]): Promise<Blob> {
  const sizes = timelines.map((timeline) => timeline.pictureSize);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(Math.max(1, ...sizes.map(({ width }) => width)) * PNG_RATIO);
  canvas.height = Math.round(Math.max(1, sizes.reduce((sum, { height }) => sum + height, 0)) * PNG_RATIO);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("This browser has no 2D canvas.");
  context.scale(PNG_RATIO, PNG_RATIO);
  for (const timeline of timelines) {
    timeline.paintPicture(context);
    context.translate(0, timeline.pictureSize.height);
  }
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser could not make the picture: the window is too large."))), "image/png"));
}
