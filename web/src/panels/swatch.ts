// Makes the spot of colour beside a name.

import { h } from "../dom.ts";

export function swatch(colour: string): HTMLElement {
  const spot = h("span", { class: "swatch", "aria-hidden": "true" });
  spot.style.background = colour;
  return spot;
}
