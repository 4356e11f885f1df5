// The menu at the name of a track, which pins, hides and moves it.

import type { Track } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import type { Arrangement } from "./arrangement.ts";
import { trackNames } from "./track-names.ts";

/** One menu for all tracks. */
export class TrackMenu {
  readonly element = h("div", { class: "track-menu", role: "menu", tabindex: "-1", hidden: true, onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  private track: Track | null = null;

  constructor(
    private readonly arrangement: Arrangement,
    private readonly step: (id: string, by: 1 | -1) => void,
    /** Focuses the name of a track again. */
    private readonly back: (id: string) => void,
  ) {
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains((event as FocusEvent).relatedTarget as Node | null)) this.close();
    });
  }

  open(track: Track, at: HTMLElement): void {
    const { arrangement } = this;
    this.track = track;
    const pinned = arrangement.isPinned(track);
    const item = (text: string, key: string, done: () => void): HTMLElement =>
      h("button", { type: "button", role: "menuitem", tabindex: "-1", onclick: () => this.choose(done) }, h("span", {}, text), key ? h("span", { class: "note", "aria-hidden": "true" }, key) : null);
    const siblings = arrangement.siblings(track.id);
    const place = siblings.indexOf(track.id);
    fill(this.element, [
      item(pinned ? "Unpin" : "Pin to the top", "", () => arrangement.pin(track, !pinned)),
      item("Hide", "Delete", () => arrangement.show([track], false)),
      place > 0 ? item("Move up", "Alt ↑", () => this.step(track.id, -1)) : null,
      place > 0 ? item("Move to the top", "", () => arrangement.move(track.id, siblings[0])) : null,
      place < siblings.length - 1 ? item("Move down", "Alt ↓", () => this.step(track.id, 1)) : null,
    ]);
    this.element.setAttribute("aria-label", trackNames(track).title);
    this.element.hidden = false;
    const parent = this.element.offsetParent?.getBoundingClientRect();
    const box = at.getBoundingClientRect();
    if (parent) {
      this.element.style.left = `${box.left - parent.left + 20}px`;
      this.element.style.top = `${Math.max(0, Math.min(box.bottom - parent.top - 4, parent.height - this.element.offsetHeight - 4))}px`;
    }
    this.items[0]?.focus();
  }

  private get items(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>("[role=menuitem]")];
  }

  /** Closes the menu, does what was chosen, and focuses the track's name. */
  private choose(done: () => void): void {
    const id = this.track?.id;
    this.close();
    done();
    if (id) this.back(id);
  }

  private close(): void {
    this.element.hidden = true;
    this.track = null;
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    const { items } = this;
    const at = items.indexOf(document.activeElement as HTMLElement);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      items[(at + by + items.length) % items.length]?.focus();
    }
    if (event.key === "Escape") this.choose(() => undefined);
  }
}
