// Lets the reader drag the names of tracks and groups to another place among their siblings: the tracks of the same
// section (a group that is drawn) or bundle (threads that do the same, drawn as one row), or all groups.

import { h } from "../dom.ts";
import type { Arrangement } from "./arrangement.ts";

/** The least movement that makes a press a drag. */
const CLICK_PX = 5;
/** The distance from an edge at which dragging scrolls the tracks. */
const EDGE_PX = 24;

/** Follows presses on rows with `data-track` or `data-head` in an element, and moves them in the arrangement. */
export class TrackDrag {
  /** The line at the place where the dragged row would be dropped. */
  readonly line = h("div", { class: "drop-line", hidden: true });
  /** Whether the last press was a click. */
  wasClick = true;

  constructor(
    private readonly element: HTMLElement,
    private readonly arrangement: Arrangement,
  ) {
    element.addEventListener("pointerdown", (event) => this.press(event));
  }

  /** Follows a press until it ends; it becomes a drag once the pointer has moved far enough. */
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
      // Clicks by keyboard come without a press.
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

  /** Returns the sibling before which a row would be dropped at a height, null for the end, and undefined where it would not move. Moves the line there. */
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
