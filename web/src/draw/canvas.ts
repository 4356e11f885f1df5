// A canvas to draw on, with the widths of its texts and its size in CSS pixels.

import type { Texts } from "./texts.ts";

/** The context takes CSS pixels. */
export interface Canvas {
  context: CanvasRenderingContext2D;
  texts: Texts;
  width: number;
  height: number;
}
