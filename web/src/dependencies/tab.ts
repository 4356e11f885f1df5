// The tab with the dependency graph of the selected range, or of the whole trace in a saved page. A row that is
// picked in the timeline is picked in the graph, and a row that is chosen in the graph is shown in the timeline.

import type { Appearance } from "../appearance.ts";
import type { DataSource } from "../data/source.ts";
import type { View } from "../view.ts";
import type { DependencyGraph, Pick } from "./graph.ts";
import { DependenciesPanel } from "./panel.ts";

/** How long the selection must rest before a request. */
const REST_MS = 250;

/** What the tab needs from the page around it. */
export interface DependenciesTabCallbacks {
  /** Whether the tab is shown. */
  isShown: () => boolean;
  /** Opens the tab, which calls `open`. */
  show: () => void;
  /** Shows a row in the timeline. */
  go: (table: string, row: number) => void;
}

/** Connects the graph's panel with a view of a trace. */
export class DependenciesTab {
  private readonly panel: DependenciesPanel;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The row that is about to be shown among its neighbours. */
  private awaited: { table: string; row: number } | null = null;
  /** The edition of the trace that the graph is of; another edition numbers the rows anew. */
  private edition: number;

  constructor(
    private readonly view: View,
    private readonly source: DataSource,
    appearance: Appearance,
    private readonly callbacks: DependenciesTabCallbacks,
  ) {
    this.edition = view.trace.overview.edition;
    this.panel = new DependenciesPanel(appearance, { ask: (wanted) => source.allDependencies(view.trace.number, wanted), go: callbacks.go, file: source.file });
    view.onChange((change) => {
      if (change === "event") this.follow();
      if (change === "selection") this.forget();
    });
  }

  get element(): HTMLElement {
    return this.panel.element;
  }

  /**
   * Loads the graph when the tab is opened: around the row that `show` was called with, otherwise of the selection,
   * otherwise from the beginning.
   */
  open(): void {
    const { awaited } = this;
    if (awaited) {
      const wanted = this.source.file ? {} : { around: `${awaited.table}.${awaited.row}` };
      void this.panel.open(wanted, (graph) => nodeOf(graph, awaited));
      return;
    }
    const range = this.source.file ? null : this.view.selection;
    void this.panel.open(range ? { ...range } : {}, (graph) => nodeOf(graph, this.view.event?.track.rowOf(this.view.event)));
  }

  /** Updates the graph of a trace that has grown. */
  grown(): void {
    const { edition } = this.view.trace.overview;
    if (edition === this.edition) return this.panel.grown();
    this.edition = edition;
    this.forget();
  }

  /** Discards the graph, and loads another once the selection rests. */
  private forget(): void {
    this.panel.forget();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.callbacks.isShown() && this.open(), REST_MS);
  }

  /** Shows a row in the loaded graph, or else loads the graph around it. */
  show(table: string, row: number): void {
    this.awaited = this.panel.has(table, row) ? null : { table, row };
    if (this.awaited) this.callbacks.show();
    else {
      this.panel.keep(this.callbacks.show);
      this.panel.pickRow(table, row);
    }
    this.awaited = null;
  }

  /** Picks the row that is picked in the timeline, if the graph has it. */
  private follow(): void {
    const { event } = this.view;
    if (!event || !this.callbacks.isShown()) return;
    const { table, row } = event.track.rowOf(event);
    this.panel.pickRow(table, row);
  }

  /** Draws with changed colours. */
  renew(): void {
    this.panel.renew();
  }
}

/** Returns the pick of a row's node; null where the graph does not have it. */
function nodeOf(graph: DependencyGraph, place: { table: string; row: number } | undefined): Pick | null {
  const id = place && graph.at(place.table, place.row);
  return id === undefined ? null : { kind: "node", id };
}
