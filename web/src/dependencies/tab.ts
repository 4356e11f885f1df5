// The graph of dependencies beside a timeline: of the selected range, and what is picked in the one is picked in the other.

import type { Appearance } from "../appearance.ts";
import type { DataSource } from "../data/source.ts";
import type { View } from "../view.ts";
import type { DependencyGraph, Pick } from "./graph.ts";
import { DependenciesPanel } from "./panel.ts";

/** The server is asked when the selection has rested for so long. */
const REST_MS = 250;

export interface DependenciesTabCallbacks {
  /** Whether the tab is the one that is shown, and shows it. */
  isShown: () => boolean;
  show: () => void;
  /** Shows a row in the timeline. */
  go: (table: string, row: number) => void;
}

export class DependenciesTab {
  private readonly panel: DependenciesPanel;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** A row that is about to be shown among what ran around it. */
  private sought: { table: string; row: number } | null = null;
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

  /** Loads what is wanted when the tab is opened. */
  open(): void {
    const { sought } = this;
    if (sought) {
      const wanted = this.source.file ? {} : { around: `${sought.table}.${sought.row}` };
      void this.panel.open(wanted, (graph) => nodeOf(graph, sought));
      return;
    }
    const range = this.source.file ? null : this.view.selection;
    void this.panel.open(range ? { ...range } : {}, (graph) => nodeOf(graph, this.view.event?.track.rowOf(this.view.event)));
  }

  /** The recording has more. */
  grown(): void {
    const { edition } = this.view.trace.overview;
    if (edition === this.edition) return this.panel.grown();
    // Rows are numbered anew.
    this.edition = edition;
    this.forget();
  }

  /** What is shown is of another range or edition. */
  private forget(): void {
    this.panel.forget();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.callbacks.isShown() && this.open(), REST_MS);
  }

  /** Shows a row: where it is already, or else among what ran around it. */
  show(table: string, row: number): void {
    this.sought = this.panel.has(table, row) ? null : { table, row };
    if (this.sought) this.callbacks.show();
    else {
      this.panel.keep(this.callbacks.show);
      this.panel.pickRow(table, row);
    }
    this.sought = null;
  }

  /** What is picked in the timeline is picked here too, where it is here. */
  private follow(): void {
    const { event } = this.view;
    if (!event || !this.callbacks.isShown()) return;
    const { table, row } = event.track.rowOf(event);
    this.panel.pickRow(table, row);
  }

  /** Colours changed. */
  renew(): void {
    this.panel.renew();
  }
}

function nodeOf(graph: DependencyGraph, place: { table: string; row: number } | undefined): Pick | null {
  const id = place && graph.at(place.table, place.row);
  return id === undefined ? null : { kind: "node", id };
}
