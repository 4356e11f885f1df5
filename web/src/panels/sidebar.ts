// The sidebar: details of the picked event and the selected range, or else the legend.

import type { Appearance } from "../appearance.ts";
import type { DataSource } from "../data/source.ts";
import { h } from "../dom.ts";
import type { RangeAnalysis } from "../range-analysis.ts";
import type { View } from "../view.ts";
import { DetailsPanel, type DetailsCallbacks } from "./details.ts";
import { Legend } from "./legend.ts";
import { SelectionPanel } from "./selection.ts";

/** The sidebar of the page. The legend is shown while nothing is picked or selected. */
export class Sidebar {
  readonly element: HTMLElement;
  readonly legend: Legend;
  private readonly details: DetailsPanel;
  private readonly selection: SelectionPanel;

  constructor(
    private readonly view: View,
    source: DataSource,
    appearance: Appearance,
    rangeAnalysis: RangeAnalysis,
    /** Returns the views of the visible timelines. */
    private readonly views: () => View[],
    callbacks: DetailsCallbacks,
  ) {
    this.legend = new Legend(view.trace, appearance);
    this.details = new DetailsPanel(view, source, appearance, callbacks);
    this.selection = new SelectionPanel(view, source, appearance, rangeAnalysis);
    this.element = h(
      "section",
      { class: "side", "aria-label": "Beside the timeline" },
      this.details.element,
      this.selection.element,
      this.legend.element,
      h(
        "div",
        { class: "hint" },
        h("p", {}, "Click work, a gap or a call to see its details. Drag on the ruler to select a range."),
        h("p", {}, h("kbd", {}, "W"), h("kbd", {}, "A"), h("kbd", {}, "S"), h("kbd", {}, "D"), " zoom and move, ", h("kbd", {}, "N"), " costliest gaps, ", h("kbd", {}, "J"), " next gap in time, ", h("kbd", {}, "?"), " all keys"),
      ),
    );
    view.onChange((change) => (change === "event" || change === "selection") && this.fill());
  }

  /** Shows the events that are picked in another view, too. */
  follow(view: View): void {
    this.details.follow(view);
    view.onChange((change) => change === "event" && this.fill());
  }

  /** Draws with changed colours. The legend is drawn with the findings. */
  recolour(): void {
    this.selection.show();
    this.details.recolour();
  }

  private fill(): void {
    const picked = [this.view, ...this.views()].some((view) => view.event !== null);
    this.element.classList.toggle("filled", picked || this.view.selection !== null);
    this.legend.element.hidden = picked || this.view.selection !== null;
  }
}
