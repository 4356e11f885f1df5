// The names of the tracks, as elements beside the canvas: by them tracks are moved, pinned, hidden and folded.

import type { Trace, Track } from "../data/trace.ts";
import { fill, h } from "../dom.ts";
import { count, of } from "../time/format.ts";
import type { Arrangement } from "./arrangement.ts";
import { Drag } from "./drag.ts";
import type { HeadRow, Layout, Row, TrackRow } from "./layout.ts";
import { TrackMenu } from "./track-menu.ts";
import { trackWords } from "./track-words.ts";

export class Headers {
  readonly element = h("div", { class: "headers", role: "group", "aria-label": "Tracks", onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  /** What was done, for who does not see it. */
  readonly said = h("p", { class: "unseen", role: "status" });
  readonly menu: TrackMenu;
  private readonly pinned = h("div", { class: "pinned-headers" });
  private readonly drag: Drag;
  /** The row that the Tab key comes to. */
  private at: string | null = null;

  constructor(private readonly arrangement: Arrangement) {
    this.menu = new TrackMenu(arrangement, (id, by) => this.step(id, by), (id) => this.focus(id));
    this.drag = new Drag(this.element, arrangement);
  }

  show(layout: Layout, trace: Trace, sticky_px: number): void {
    const focused = this.element.contains(document.activeElement) ? idOf(document.activeElement) : null;
    this.pinned.style.height = `${layout.pinned_px}px`;
    this.pinned.classList.toggle("sticky", sticky_px > 0);
    this.pinned.hidden = layout.pinned_px === 0;
    fill(this.pinned, layout.rows.filter(({ pinned }) => pinned).map((row) => this.row(row, trace)));
    fill(this.element, this.pinned, layout.rows.filter(({ pinned }) => !pinned).map((row) => this.row(row, trace)), this.drag.line);
    // At least as high as what is seen, so that the canvas beside it stays whole.
    this.element.style.height = `${layout.height}px`;
    this.rove();
    if (focused !== null && document.activeElement !== this.button(focused)) this.focus(focused);
  }

  private row(row: Row, trace: Trace): HTMLElement {
    const element = row.what === "head" ? this.head(row) : this.track(row, trace);
    element.style.top = `${row.top}px`;
    element.style.height = `${row.height}px`;
    return element;
  }

  private head(row: HeadRow): HTMLElement {
    return h(
      "button",
      {
        class: row.depth === 0 ? "group-name" : "group-name bundle-name",
        type: "button",
        "aria-expanded": String(!row.closed),
        title: row.name,
        "data-head": row.id,
        onclick: () => this.drag.wasClick && this.arrangement.fold(row.id, !row.closed),
      },
      h("span", { class: "fold", "aria-hidden": "true" }, row.closed ? "▸" : "▾"),
      h("span", { class: "clip" }, row.name),
    );
  }

  private track({ track, hidden_lanes, height, pinned }: TrackRow, trace: Trace): HTMLElement {
    const state = stateOf(track, hidden_lanes, trace);
    const words = trackWords(track);
    const note = [words.note, state].filter(Boolean).join(", ");
    const quick = (what: string, says: string, done: () => void): HTMLElement =>
      h("button", { type: "button", class: `quick ${what}`, tabindex: "-1", title: says, "aria-label": `${says}: ${words.title}`, onclick: done });
    return h(
      "div",
      { class: `track-name kind-${track.kind}${pinned ? " pinned" : ""}`, title: [words.title, state].filter(Boolean).join(" · "), "data-track": track.id, "data-lanes": track.lanes.length },
      h(
        "button",
        {
          type: "button",
          class: "track-handle",
          "aria-haspopup": "menu",
          "aria-keyshortcuts": "Alt+ArrowUp Alt+ArrowDown Delete",
          onclick: (event: Event) => this.drag.wasClick && this.menu.open(track, event.currentTarget as HTMLElement),
        },
        h("span", { class: "clip" }, words.name),
        note && height >= 36 ? h("span", { class: "clip note" }, note) : null,
      ),
      h(
        "span",
        { class: "quicks" },
        quick(pinned ? "unpin" : "pin", pinned ? "Unpin" : "Pin to the top", () => this.arrangement.pin(track, !pinned)),
        quick("hide", "Hide", () => this.arrangement.show([track], false)),
      ),
    );
  }

  // ---- keyboard: the arrows go from row to row, the Tab key enters and leaves ----

  private get buttons(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>(".group-name, .track-handle")];
  }

  private button(id: string): HTMLElement | undefined {
    return this.buttons.find((button) => idOf(button) === id);
  }

  /** Puts the keyboard on a name. */
  focus(id: string): void {
    this.at = id;
    this.rove();
    (this.button(id) ?? this.buttons[0])?.focus({ preventScroll: true });
  }

  private rove(): void {
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
      this.rove();
      next.focus();
    };
    const keys: Record<string, () => void> = event.altKey
      ? { ArrowUp: () => this.step(id, -1), ArrowDown: () => this.step(id, 1) }
      : {
          ArrowUp: () => go(at - 1),
          ArrowDown: () => go(at + 1),
          Home: () => go(0),
          End: () => go(buttons.length - 1),
          ...(folds ? { ArrowLeft: () => this.arrangement.fold(id, true), ArrowRight: () => this.arrangement.fold(id, false) } : { Delete: () => this.hide(id, at) }),
        };
    const done = keys[event.key];
    if (!done) return;
    event.preventDefault();
    event.stopPropagation();
    done();
  }

  private step(id: string, by: 1 | -1): void {
    const place = this.arrangement.step(id, by);
    this.at = id;
    this.said.textContent = place ? `Moved to place ${place.at} of ${place.of}.` : by < 0 ? "It is the first." : "It is the last.";
  }

  private hide(id: string, at: number): void {
    const track = this.arrangement.all.flatMap(({ tracks }) => tracks).find((track) => track.id === id);
    if (!track) return;
    this.at = idOf(this.buttons[at + 1] ?? this.buttons[at - 1]);
    const next = this.at;
    this.arrangement.show([track], false);
    this.said.textContent = `${trackWords(track).title} is hidden.`;
    this.focus(next);
  }
}

function idOf(element: Element | null | undefined): string {
  const row = element?.closest<HTMLElement>("[data-track], [data-head]");
  return row?.dataset.track ?? row?.dataset.head ?? "";
}

function stateOf(track: Track, hidden: number, trace: Trace): string {
  const said: string[] = [];
  if (typeof track.state === "object") said.push(track.summary ? "busy share only" : trace.overview.live ? "nothing yet" : track.state.missing);
  else if (track.state === "loading") said.push("loading…");
  else if (!track.isCounter && track.overview.rows !== null) said.push(of(track.overview.rows, "row", "rows"));
  if (track.overview.untimed > 0) said.push(`${count(track.overview.untimed)} untimed`);
  if (hidden > 0) said.push(`${of(hidden, "lane", "lanes")} not drawn`);
  if (track.kind === "work" && trace.overview.sampling_mode === "command-buffer") said.push("command buffers");
  return said.join(", ");
}
