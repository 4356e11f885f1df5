// The controls for all tracks: a filter, and a list by group (device or process) that shows, hides and pins them.

import { fill, h } from "../dom.ts";
import { count, plural } from "../time/format.ts";
import type { Arrangement } from "./arrangement.ts";
import { trackNames } from "./track-names.ts";

/** The controls and the list of one timeline's tracks. */
export class TrackChooser {
  /** The controls in the corner of the timeline. */
  readonly tools: HTMLElement;
  /** The list that covers the timeline. */
  readonly element = h("div", { class: "track-chooser", role: "dialog", "aria-label": "All tracks", hidden: true, onkeydown: (event: Event) => this.key(event as KeyboardEvent) });
  private readonly input: HTMLInputElement;
  private readonly button = h("button", { type: "button", class: "all-tracks", "aria-haspopup": "dialog", "aria-expanded": "false", onclick: () => this.toggle() });

  constructor(private readonly arrangement: Arrangement) {
    this.input = h("input", {
      type: "text",
      role: "searchbox",
      placeholder: "Filter",
      "aria-label": "Filter tracks by words in their names",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => arrangement.filterBy(this.input.value),
      onkeydown: (event: Event) => {
        if ((event as KeyboardEvent).key === "Escape") arrangement.filterBy("");
      },
    });
    this.tools = h("span", { class: "track-tools" }, this.input, this.button);
    arrangement.onChange(() => this.renew());
    this.renew();
  }

  /** Updates the controls after tracks or their arrangement have changed. */
  renew(): void {
    const { text, hiddenCount } = this.arrangement;
    if (this.input.value !== text) this.input.value = text;
    this.button.textContent = hiddenCount > 0 ? `${count(hiddenCount)} hidden` : "Tracks";
    this.button.title = "Show, hide and pin tracks";
    if (!this.element.hidden) this.list();
  }

  private toggle(): void {
    const opened = this.element.hidden;
    this.element.hidden = !opened;
    this.button.setAttribute("aria-expanded", String(opened));
    if (!opened) return this.button.focus();
    this.list();
    this.element.querySelector<HTMLElement>("button")?.focus();
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") this.toggle();
  }

  private list(): void {
    const { arrangement } = this;
    const { all } = arrangement;
    const { scrollTop } = this.element;
    const focused = this.element.contains(document.activeElement) ? document.activeElement?.getAttribute("data-place") : null;
    const tracks = all.flatMap(({ tracks }) => tracks);
    fill(
      this.element,
      h(
        "header",
        {},
        h("button", { type: "button", "data-place": "show", onclick: () => arrangement.show(tracks, true) }, "Show all"),
        h("button", { type: "button", "data-place": "reset", title: "Undo all hiding, pinning, folding and moving", onclick: () => arrangement.reset() }, "Reset"),
        h("button", { type: "button", "data-place": "close", class: "close", "aria-label": "Close the list of tracks", onclick: () => this.toggle() }, "✕"),
      ),
      all.map(({ group, tracks }) => {
        const shown = tracks.filter((track) => arrangement.shows(track)).length;
        const whole = h("input", { type: "checkbox", checked: shown > 0, "data-place": group.id, onchange: () => arrangement.show(tracks, shown < tracks.length) });
        whole.indeterminate = shown > 0 && shown < tracks.length;
        return h(
          "fieldset",
          {},
          h("legend", {}, h("label", { title: group.name }, whole, h("b", { class: "clip" }, group.name), h("span", { class: "note" }, shown < tracks.length ? `${count(shown)} of ${count(tracks.length)}` : plural(shown, "track", "tracks")))),
          h(
            "ul",
            {},
            tracks.map((track) => {
              const { name, note, title } = trackNames(track);
              const pinned = arrangement.isPinned(track);
              return h(
                "li",
                { "data-choice": track.id },
                h("label", { title }, h("input", { type: "checkbox", checked: arrangement.shows(track), "data-place": track.id, onchange: () => arrangement.show([track], !arrangement.shows(track)) }), h("span", { class: "clip" }, name, note ? h("span", { class: "note" }, ` ${note}`) : null)),
                h("button", { type: "button", class: pinned ? "quick unpin" : "quick pin", "data-place": `pin ${track.id}`, "aria-pressed": String(pinned), "aria-label": `Pin ${title} to the top`, title: pinned ? "Unpin" : "Pin to the top", onclick: () => arrangement.pin(track, !pinned) }),
              );
            }),
          ),
        );
      }),
    );
    this.element.scrollTop = scrollTop;
    if (focused) [...this.element.querySelectorAll<HTMLElement>("[data-place]")].find((element) => element.dataset.place === focused)?.focus();
  }
}
