// A row of tabs, with the panel of the chosen one below it, and a button that copies the panel's tables.

import { fill, h } from "./dom.ts";
import { copyButton } from "./handing-over.ts";
import { copiedTables } from "./panels/table.ts";
import type { PanelName } from "./view-state.ts";

/** A tab and its panel; `opened` is called each time that the panel is shown. */
export interface Tab {
  name: PanelName;
  title: string;
  element: HTMLElement;
  opened?: () => void;
}

/** The row of tabs; the first one is shown at first. */
export class Tabs {
  readonly element: HTMLElement;
  private readonly buttons: HTMLButtonElement[];
  private readonly body = h("div", { class: "tab-body", role: "tabpanel" });
  /** The scroll positions of the elements in a tab when it was left. */
  private readonly scrolled = new WeakMap<Element, { top: number; left: number }>();
  shown: PanelName;
  /** The tabs that are hidden because the trace has nothing for them. */
  private empty: ReadonlySet<PanelName> = new Set();

  constructor(
    private readonly tabs: readonly Tab[],
    /** Called after a tab was shown, the first one included. */
    private readonly changed: (name: PanelName) => void,
    /** An element that is shown above all panels. */
    above?: HTMLElement,
  ) {
    this.shown = tabs[0].name;
    this.buttons = tabs.map((tab, number) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${tab.name}`,
          "data-tab": tab.name,
          onclick: () => this.show(tab.name),
          onkeydown: (event: Event) => this.key(event as KeyboardEvent, number),
        },
        tab.title,
      ),
    );
    const copy = copyButton("Copy table", () => copiedTables(this.body), { class: "copy-table", title: "Copy the tables of this panel, with all their rows, for a spreadsheet (tab-separated)" });
    this.element = h("section", { class: "tabs", "aria-label": "Panels" }, h("div", { class: "tab-row" }, h("div", { class: "tab-list", role: "tablist", "aria-label": "Panels" }, this.buttons), copy), above, this.body);
    this.show(this.shown);
  }

  /** Goes to the tab beside with the arrow keys, around the ends. */
  private key(event: KeyboardEvent, number: number): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const { length } = this.tabs;
    let next = (number + by + length) % length;
    while (this.buttons[next].hidden) next = (next + by + length) % length;
    this.show(this.tabs[next].name);
    this.buttons[next].focus();
  }

  /** Hides the tabs for which the trace has nothing; the tab that is shown stays. */
  hide(empty: ReadonlySet<PanelName>): void {
    this.empty = empty;
    this.tabs.forEach(({ name }, number) => (this.buttons[number].hidden = empty.has(name) && name !== this.shown));
  }

  /** Shows a panel by name, or the first where there is none of that name. */
  show(name: PanelName): void {
    const tab = this.tabs.find((tab) => tab.name === name) ?? this.tabs[0];
    this.shown = tab.name;
    this.tabs.forEach((other, number) => {
      this.buttons[number].setAttribute("aria-selected", String(other === tab));
      this.buttons[number].tabIndex = other === tab ? 0 : -1;
    });
    this.body.setAttribute("aria-labelledby", `tab-${tab.name}`);
    this.element.dataset.shown = tab.name;
    this.hide(this.empty);
    this.put(tab.element);
    tab.opened?.();
    this.changed(tab.name);
  }

  /** Shows a panel in place of another, and restores scroll positions, which elements lose when they leave the page. */
  private put(element: HTMLElement): void {
    if (this.body.firstChild === element) return;
    for (const one of this.body.querySelectorAll("*")) this.scrolled.set(one, { top: one.scrollTop, left: one.scrollLeft });
    fill(this.body, element);
    for (const one of [element, ...element.querySelectorAll("*")]) {
      const { top, left } = this.scrolled.get(one) ?? { top: 0, left: 0 };
      if (top || left) one.scrollTo(left, top);
    }
  }
}
