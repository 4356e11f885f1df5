// The movable line between the timelines and the panels.

import { h } from "./dom.ts";

const MIN_HEIGHT_PX = 80;

/** Makes a line that sets the height of the element below it, through the property `--panels` of `root`. */
export function splitter(root: HTMLElement, below: HTMLElement): HTMLElement {
  const announce = (): void => line.setAttribute("aria-valuenow", String(below.offsetHeight));
  const set = (pixels: number): void => {
    root.style.setProperty("--panels", `${Math.round(Math.max(MIN_HEIGHT_PX, Math.min(pixels, window.innerHeight - 260)))}px`);
    announce();
  };
  const line = h("div", {
    class: "splitter",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "horizontal",
    "aria-label": "Height of the panels",
    "aria-valuemin": String(MIN_HEIGHT_PX),
    "aria-valuenow": "0",
    onfocus: announce,
    onpointerdown: (event: Event) => {
      const { pointerId, clientY } = event as PointerEvent;
      const line = event.currentTarget as HTMLElement;
      const start = below.offsetHeight;
      line.setPointerCapture(pointerId);
      const move = (event: PointerEvent): void => set(start + clientY - event.clientY);
      line.addEventListener("pointermove", move);
      const up = (): void => {
        line.removeEventListener("pointermove", move);
        line.removeEventListener("pointerup", up);
        line.removeEventListener("pointercancel", up);
      };
      line.addEventListener("pointerup", up);
      line.addEventListener("pointercancel", up);
    },
    onkeydown: (event: Event) => {
      const by = { ArrowUp: 24, ArrowDown: -24 }[(event as KeyboardEvent).key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      set(below.offsetHeight + by);
    },
  });
  requestAnimationFrame(announce);
  return line;
}
