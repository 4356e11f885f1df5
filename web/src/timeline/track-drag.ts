// Dragging names of tracks and groups to another place among their siblings.

import { h } from "../dom.ts";
import type { Arrangement } from "./arrangement.ts";

/** A press that moves less is a click. */
const CLICK_PX = 5;
/** Near the edges the tracks are scrolled while one is dragged. */
const EDGE_PX = 24;

export class TrackDrag {
  /** Where it would be put. */
  readonly line = h("div", { class: "drop-line", hidden: true });
  /** Whether the press that ended last was a click. */
  wasClick = true;

  constructor(
    private readonly element: HTMLElement,
    private readonly arrangement: Arrangement,
  ) {
    element.addEventListener("pointerdown", (event) => this.press(event));
  }

  private press(event: PointerEvent): void {
    this.wasClick = true;
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-track], [data-head]");
    const id = row?.dataset.track ?? row?.dataset.head;
    if (!row || !id || event.button !== 0 || (event.target as HTMLElement).closest(".quick")) return;
    const start_y = event.clientY;
    let before: string | null | undefined;
    const move = (event: PointerEvent): void => {
      if (this.wasClick && Math.abs(event.clientY - start_y) < CLICK_PX) return;
      if (this.wasClick) this.element.classList.add("dragging");
      this.wasClick = false;
      this.scroll(event.clientY);
      before = this.target(id, event.clientY);
    };
    const up = (event: Event): void => {
      document.removeEventListener("pointermove", move);
      document.removeEventListener("pointerup", up);
      document.removeEventListener("pointercancel", up);
      this.element.classList.remove("dragging");
      this.line.hidden = true;
      if (!this.wasClick && before !== undefined && event.type === "pointerup") this.arrangement.move(id, before);
      // The keyboard's clicks have no press before them.
      if (!this.wasClick) setTimeout(() => (this.wasClick = true));
    };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", up);
    document.addEventListener("pointercancel", up);
  }

  private scroll(y: number): void {
    const body = this.element.closest(".tracks-body");
    if (!body) return;
    const { top, bottom } = body.getBoundingClientRect();
    if (y < top + EDGE_PX) body.scrollTop -= EDGE_PX / 2;
    else if (y > bottom - EDGE_PX) body.scrollTop += EDGE_PX / 2;
  }

  /** Before which sibling it would come at a height, null behind the last; the line shows it. Undefined where it would not move. */
  private target(id: string, y: number): string | null | undefined {
    const siblings = this.arrangement.siblings(id);
    const boxes = siblings.flatMap((sibling) => {
      const found = [...this.element.querySelectorAll<HTMLElement>("[data-track], [data-head]")].find(({ dataset }) => (dataset.track ?? dataset.head) === sibling);
      return found ? [{ sibling, box: found.getBoundingClientRect() }] : [];
    });
    const at = boxes.findIndex(({ box }) => y < box.top + box.height / 2);
    const last = boxes.at(-1);
    const edge = at >= 0 ? boxes[at].box.top : last?.box.bottom;
    if (edge === undefined) return undefined;
    this.line.hidden = false;
    this.line.style.top = `${edge - this.element.getBoundingClientRect().top - 1}px`;
    const before = at >= 0 ? boxes[at].sibling : null;
    const own = siblings.indexOf(id);
    return before === id || before === (siblings[own + 1] ?? null) ? undefined : before;
  }
}
