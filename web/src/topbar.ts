// The bar at the top of the page: search, colouring, theme and link.

import { fill, h } from "./dom.ts";
import type { Colouring } from "./view-state.ts";

export const NOTHING_FOUND = "nothing found";

/** Called for what the reader does in the bar; `search` with each change of the box's text. */
export interface TopbarCallbacks {
  search: (text: string) => void;
  /** Goes to the next or the previous match. */
  step: (forward: boolean) => void;
  colour: (by: Colouring) => void;
  theme: () => void;
  share: () => void;
  help: () => void;
}

/** The bar. The page tells it what to show. */
export class Topbar {
  /** The place of the search results, below the box. */
  readonly resultList = h("span", { class: "found-list" });
  /** The buttons to the previous and the next match, which are hidden while there is none. */
  private readonly through: HTMLElement;
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  private readonly problem = h("span", { class: "search-problem", role: "status" });
  private readonly choices: HTMLButtonElement[];
  private readonly live = h("span", { class: "live", hidden: true, role: "status" }, "● recording");

  constructor(name: string, ranks: HTMLElement | null, file: boolean, callbacks: TopbarCallbacks) {
    this.input = h("input", {
      type: "search",
      placeholder: "Search kernels, calls, labels and code",
      "aria-label": "Search kernels, calls, labels and code with a regular expression",
      title: "Enter: next match; Shift + Enter: previous match",
      spellcheck: "false",
      autocomplete: "off",
      oninput: () => callbacks.search(this.input.value),
    });
    this.through = h(
      "span",
      { class: "match-buttons", hidden: true },
      h("button", { type: "button", class: "icon", title: "Shift + Enter", "aria-label": "Previous match", onclick: () => callbacks.step(false) }, "‹"),
      h("button", { type: "button", class: "icon", title: "Enter", "aria-label": "Next match", onclick: () => callbacks.step(true) }, "›"),
    );
    const colourings: Colouring[] = ["kernel", "label", "cause"];
    this.choices = colourings.map((by) => h("button", { type: "button", role: "radio", "data-colouring": by, onclick: () => callbacks.colour(by) }, by));
    const share = file
      ? h("button", { type: "button", title: "Save a picture of what is seen", onclick: callbacks.share }, "Picture")
      : h("button", { type: "button", title: "Show this view again: its address, a command, a file, a picture", onclick: callbacks.share }, "Link");
    this.element = h(
      "header",
      { class: "topbar" },
      h("span", { class: "brand" }, "gapscope"),
      h("span", { class: "trace-name clip", title: name }, name),
      ranks,
      this.live,
      h("span", { class: "search" }, this.input, this.problem, this.through, this.resultList),
      h("span", { class: "choice", role: "radiogroup", "aria-label": "Colour work by" }, h("span", { class: "note" }, "Colour"), this.choices),
      share,
      h("button", { type: "button", class: "icon", title: "Light or dark", "aria-label": "Change between light and dark", onclick: callbacks.theme }, "◐"),
      h("button", { type: "button", class: "icon", title: "Keys (?)", "aria-label": "Keys", onclick: callbacks.help }, "?"),
    );
  }

  colouring(by: Colouring): void {
    for (const choice of this.choices) choice.setAttribute("aria-checked", String(choice.dataset.colouring === by));
  }

  /** Shows what is wrong with the search, or else how much was found. */
  searched(problem: string, found: string): void {
    this.input.setAttribute("aria-invalid", String(problem !== ""));
    this.problem.classList.toggle("problem", problem !== "");
    fill(this.problem, problem || found);
    this.problem.title = problem;
    this.through.hidden = problem !== "" || found === "" || found === NOTHING_FOUND;
  }

  recording(live: boolean): void {
    this.live.hidden = !live;
  }
}
