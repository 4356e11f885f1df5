// The names of the tracks beside the canvas, with which tracks are moved, pinned, hidden and folded. A head is the
// name of a group (such as a device or a process) or of a bundle (the tracks of threads that do only the same).

import type { Trace, Track } from "../data/trace.ts";
import { h } from "../dom.ts";
import { Texts } from "../draw/texts.ts";
import { count, plural } from "../time/format.ts";
import type { Arrangement } from "./arrangement.ts";
import type { HeadRow, Layout, Row, TrackRow } from "./layout.ts";
import { TrackDrag } from "./track-drag.ts";
import { TrackMenu } from "./track-menu.ts";
import { trackNames } from "./track-names.ts";

/** The height from which the name of a row stays in sight while the row is scrolled. */
const TALL_PX = 80;

/** A row as it is shown, kept while data arrive: a button replaced between press and release is never clicked. */
interface ShownRow {
  /** The element of the row, which `show` updates for another state of the same row. */
  element: HTMLElement;
  show(row: Row, trace: Trace): void;
}

/** The column of names. `show` is called with each new layout. */
export class Headers {
  readonly element = h("div", { class: "headers", role: "group", "aria-label": "Tracks", onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  /** Tells screen readers what was done. */
  readonly status = h("p", { class: "unseen", role: "status" });
  readonly menu: TrackMenu;
  private readonly pinned = h("div", { class: "pinned-headers" });
  private readonly drag: TrackDrag;
  /** The elements of the rows that are shown, by kind and id. */
  private shown = new Map<string, ShownRow>();
  /** The row that the Tab key focuses. */
  private at: string | null = null;

  constructor(private readonly arrangement: Arrangement) {
    this.menu = new TrackMenu(arrangement, (id, by) => this.step(id, by), (id) => this.focus(id));
    this.drag = new TrackDrag(this.element, arrangement);
  }

  /**
   * Shows the names of a layout's rows, and keeps the focus. `sticky_px` is the height of pinned rows that stay in
   * place; 0 where they are scrolled.
   */
  show(layout: Layout, trace: Trace, sticky_px: number): void {
    const focused = this.element.contains(document.activeElement) ? idOf(document.activeElement) : null;
    this.pinned.style.height = `${layout.pinned_px}px`;
    this.pinned.classList.toggle("sticky", sticky_px > 0);
    this.element.style.setProperty("--sticky", `${sticky_px}px`);
    this.pinned.hidden = layout.pinned_px === 0;
    const before = this.shown;
    this.shown = new Map();
    const elements = (rows: Row[]): HTMLElement[] => rows.map((row) => this.row(row, trace, before));
    arrange(this.pinned, elements(layout.rows.filter(({ pinned }) => pinned)));
    arrange(this.element, [this.pinned, ...elements(layout.rows.filter(({ pinned }) => !pinned)), this.drag.line]);
    // The headers are at least as high as the visible part, so that the canvas beside them stays whole.
    this.element.style.height = `${layout.height}px`;
    this.updateTabStop();
    if (focused !== null && document.activeElement !== this.button(focused)) this.focus(focused);
  }

  /** Paints the names as they are seen now, into a column of a picture. */
  paint(context: CanvasRenderingContext2D, { top, width, height }: { top: number; width: number; height: number }): void {
    const body = this.element.closest(".tracks-body")?.getBoundingClientRect();
    if (!body) return;
    context.save();
    context.beginPath();
    context.rect(0, top, width, height);
    context.clip();
    const texts = document.createTreeWalker(this.element, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      const { parentElement } = text;
      if (!parentElement || !parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      const place = range.getBoundingClientRect();
      const style = getComputedStyle(parentElement);
      context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      context.fillStyle = style.color;
      context.textBaseline = "middle";
      // The name ends where the page cuts it.
      const room = parentElement.getBoundingClientRect().right - place.left;
      context.fillText(new Texts(context).cut(text.textContent ?? "", Math.max(room, 0) + 1), place.left - body.left, top + place.top - body.top + place.height / 2);
    }
    context.restore();
  }

  /** Returns the element of a row: the one from before where there is one, otherwise another. */
  private row(row: Row, trace: Trace, before: Map<string, ShownRow>): HTMLElement {
    const id = row.what === "head" ? `head ${row.id}` : `track ${row.track.id}`;
    const shown = before.get(id) ?? (row.what === "head" ? this.head(row) : this.track(row));
    this.shown.set(id, shown);
    shown.show(row, trace);
    shown.element.style.top = `${row.top}px`;
    shown.element.style.height = `${row.height}px`;
    return shown.element;
  }

  /** Makes the name of a group or bundle: a click folds it, and a bundle has a button that hides it. */
  private head(first: HeadRow): ShownRow {
    let row = first;
    const fold = h("span", { class: "fold", "aria-hidden": "true" });
    const name = h("span", { class: "clip" });
    const button = h("button", { type: "button", "data-head": row.id, onclick: () => this.drag.wasClick && this.arrangement.fold(row.id, !row.closed) }, fold, name);
    const hide = quick(() => row.bundle && this.arrangement.show(row.bundle, false));
    if (row.bundle) button.setAttribute("aria-keyshortcuts", "Delete");
    return {
      element: row.bundle ? h("div", { class: "bundle", "data-head": row.id }, button, h("span", { class: "quicks" }, hide)) : button,
      show: (now) => {
        row = now as HeadRow;
        button.className = row.depth === 0 ? "group-name" : "group-name bundle-name";
        button.title = row.name;
        button.setAttribute("aria-expanded", String(!row.closed));
        fold.textContent = row.closed ? "▸" : "▾";
        name.textContent = row.name;
        labelButton(hide, "hide", "Hide", row.name);
      },
    };
  }

  /** Makes the name of a track: a click opens its menu, and buttons pin and hide it. */
  private track(first: TrackRow): ShownRow {
    let row = first;
    const name = h("span", { class: "clip" });
    const note = h("span", { class: "clip note" });
    const handle = h(
      "button",
      {
        type: "button",
        class: "track-handle",
        "aria-haspopup": "menu",
        "aria-keyshortcuts": "Alt+ArrowUp Alt+ArrowDown Delete",
        onclick: (event: Event) => this.drag.wasClick && this.menu.open(row.track, event.currentTarget as HTMLElement),
      },
      name,
      note,
    );
    const lanes = h("button", { type: "button", class: "lanes", tabindex: "-1", onclick: () => this.arrangement.foldLanes(row.track, this.arrangement.unfolds(row.track)) });
    const pin = quick(() => this.arrangement.pin(row.track, !row.pinned));
    const hide = quick(() => this.arrangement.show([row.track], false));
    const element = h("div", { "data-track": row.track.id }, h("div", { class: "track-words" }, handle, lanes), h("span", { class: "quicks" }, pin, hide));
    return {
      element,
      show: (now, trace) => {
        row = now as TrackRow;
        const { track, pinned } = row;
        const state = stateOf(track, trace);
        const words = trackNames(track);
        element.className = `track-name kind-${track.kind}${pinned ? " pinned" : ""}${row.height >= TALL_PX ? " tall" : ""}`;
        element.title = [words.title, state].filter(Boolean).join(" · ");
        element.dataset.lanes = String(track.lanes.length);
        name.textContent = words.name;
        note.textContent = [words.note, state].filter(Boolean).join(", ");
        note.hidden = !note.textContent || row.height < 36;
        lanes.hidden = !row.folds;
        lanes.textContent = row.hidden_lanes > 0 ? `▸ ${plural(row.hidden_lanes, "more lane", "more lanes")}` : "▾ fold lanes";
        lanes.setAttribute("aria-label", `${row.hidden_lanes > 0 ? "Show all lanes" : "Fold the lanes"}: ${words.title}`);
        handle.toggleAttribute("data-folds", row.folds);
        labelButton(pin, pinned ? "unpin" : "pin", pinned ? "Unpin" : "Pin to the top", words.title);
        labelButton(hide, "hide", "Hide", words.title);
      },
    };
  }

  // ---- keyboard: arrows go from row to row, the Tab key enters and leaves ----

  private get buttons(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>(".group-name, .track-handle")];
  }

  private button(id: string): HTMLElement | undefined {
    return this.buttons.find((button) => idOf(button) === id);
  }

  focus(id: string): void {
    this.at = id;
    this.updateTabStop();
    (this.button(id) ?? this.buttons[0])?.focus({ preventScroll: true });
  }

  /** Lets the Tab key reach only the row `at`, or the first where that is gone. */
  private updateTabStop(): void {
    const { buttons } = this;
    const at = Math.max(0, buttons.findIndex((button) => idOf(button) === this.at));
    buttons.forEach((button, number) => (button.tabIndex = number === at ? 0 : -1));
  }

  private key(event: KeyboardEvent): void {
    const { buttons } = this;
    const at = buttons.indexOf(event.target as HTMLElement);
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    const id = idOf(buttons[at]);
    const folds = buttons[at].classList.contains("group-name");
    const go = (to: number): void => {
      const next = buttons[Math.max(0, Math.min(buttons.length - 1, to))];
      this.at = idOf(next);
      this.updateTabStop();
      next.focus();
    };
    const keys: Record<string, () => void> = event.altKey
      ? { ArrowUp: () => this.step(id, -1), ArrowDown: () => this.step(id, 1) }
      : {
          ArrowUp: () => go(at - 1),
          ArrowDown: () => go(at + 1),
          Home: () => go(0),
          End: () => go(buttons.length - 1),
          ...(buttons[at].hasAttribute("data-folds") ? { ArrowLeft: () => this.foldLanes(id, true), ArrowRight: () => this.foldLanes(id, false) } : {}),
          ...(folds ? { ArrowLeft: () => this.arrangement.fold(id, true), ArrowRight: () => this.arrangement.fold(id, false) } : {}),
          Delete: () => this.hide(id, at),
        };
    const done = keys[event.key];
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
    done();
  }

  private foldLanes(id: string, folded: boolean): void {
    const track = this.arrangement.all.flatMap(({ tracks }) => tracks).find((track) => track.id === id);
    if (track) this.arrangement.foldLanes(track, folded);
  }

  /** Moves a row by one place, and tells screen readers where it is. */
  private step(id: string, by: 1 | -1): void {
    const place = this.arrangement.step(id, by);
    this.at = id;
    this.status.textContent = place ? `Moved to place ${count(place.at)} of ${count(place.of)}.` : by < 0 ? "It is already the first." : "It is already the last.";
  }

  /** Hides a track or bundle, and focuses the next row that stays, or else the one before. */
  private hide(id: string, at: number): void {
    const { all, arranged } = this.arrangement;
    const track = all.flatMap(({ tracks }) => tracks).find((track) => track.id === id);
    const bundle = arranged.sections.flatMap(({ bundles }) => bundles).find((bundle) => bundle.id === id);
    const hidden = track ? [track] : bundle?.tracks;
    if (!hidden) return;
    const { buttons } = this;
    const gone = new Set(hidden.map(({ id }) => id));
    const next = [...buttons.slice(at + 1), ...buttons.slice(0, at).reverse()].map(idOf).find((other) => !gone.has(other)) ?? "";
    this.at = next;
    this.arrangement.show(hidden, false);
    this.status.textContent = track ? `${trackNames(track).title} is hidden.` : `${bundle?.name} are hidden.`;
    this.focus(next);
  }
}

/** Makes a small button beside a name. The Tab key does not reach it, because keys do the same. */
function quick(done: () => void): HTMLElement {
  return h("button", { type: "button", tabindex: "-1", onclick: done });
}

/** Gives a small button its picture, by class, and the text that says what it does to `subject`. */
function labelButton(button: HTMLElement, action: string, label: string, subject: string): void {
  button.className = `quick ${action}`;
  button.title = label;
  button.setAttribute("aria-label", `${label}: ${subject}`);
}

/** Makes the children of an element the given ones, without touching those that are in place already. */
function arrange(inside: HTMLElement, elements: HTMLElement[]): void {
  const wanted = new Set<Element>(elements);
  for (const child of [...inside.children]) if (!wanted.has(child)) child.remove();
  elements.forEach((element, at) => {
    if (inside.children[at] !== element) inside.insertBefore(element, inside.children[at] ?? null);
  });
}

/** Returns the id of the row that an element is in; empty where it is in none. */
function idOf(element: Element | null | undefined): string {
  const row = element?.closest<HTMLElement>("[data-track], [data-head]");
  return row?.dataset.track ?? row?.dataset.head ?? "";
}

/** Describes what of a track is loaded, how many rows it has, and how many cannot be drawn. */
function stateOf(track: Track, trace: Trace): string {
  const facts: string[] = [];
  if (typeof track.state === "object") facts.push(track.summary ? "busy share only" : trace.overview.live ? "nothing yet" : track.state.missing);
  else if (track.state === "loading") facts.push("loading…");
  else if (track.state === "part") facts.push(`${plural(track.overview.rows ?? 0, "row", "rows")}${track.part && !track.part.slices ? "" : " in slices"}`);
  else if (!track.isCounter && track.overview.rows !== null) facts.push(plural(track.overview.rows, "row", "rows"));
  if (track.overview.untimed > 0) facts.push(`${count(track.overview.untimed)} untimed`);
  if (track.kind === "work" && trace.overview.sampling_mode === "command-buffer") facts.push("command buffers");
  return facts.join(", ");
}
