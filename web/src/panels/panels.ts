// The panels below the timeline, behind their tabs.

import type { Appearance } from "../appearance.ts";
import { isMissing } from "../data/missing.ts";
import { NotesStore } from "../data/notes-store.ts";
import type { DataSource } from "../data/source.ts";
import type { Trace } from "../data/trace.ts";
import { DependenciesTab } from "../dependencies/tab.ts";
import { h } from "../dom.ts";
import type { Gap, Note } from "../generated/protocol.ts";
import type { RangeAnalysis } from "../range-analysis.ts";
import { escaped } from "../search-pattern.ts";
import type { Search } from "../search.ts";
import { Tables } from "../tables.ts";
import { Tabs } from "../tabs.ts";
import type { PanelName, ViewState } from "../view-state.ts";
import type { View } from "../view.ts";
import { AboutPanel } from "./about.ts";
import { ActiveFilters } from "./active-filters.ts";
import { CodePanel, NO_SAMPLES } from "./code.ts";
import { ComparePanel, type CompareCallbacks } from "./compare.ts";
import { GapsPanel } from "./gaps.ts";
import { GraphPanel } from "./graph.ts";
import { kernelTable, labelTable, NO_LABELS } from "./kernels.ts";
import { LimitsPanel, NO_LIMITS } from "./limits.ts";
import { goToNote, NotesPanel } from "./notes.ts";
import type { RanksPanel } from "./ranks.ts";
import { type SqlPlace, SqlPanel } from "./sql.ts";

/** The data that the panels show, and the objects that they share with the rest of the page. */
export interface PanelsParts {
  view: View;
  traces: readonly Trace[];
  source: DataSource;
  appearance: Appearance;
  search: Search;
  rangeAnalysis: RangeAnalysis;
  /** Null where the program has no ranks. */
  ranks: RanksPanel | null;
  /** Whether the server keeps SQL queries. */
  keeps: boolean;
  /** What a saved page leaves out, as a sentence. */
  folded: string | null;
}

const NO_BINDINGS = "The trace has no buffer bindings, so the dependencies of its work are unknown. Vulkan programs are recorded with them.";

/** What the panels ask of the page. */
export interface PanelsCallbacks {
  goToRow: (table: string, row: number) => void;
  goToGap: (gap: Gap, cause?: string) => void;
  goToAnswer: (place: SqlPlace) => void;
  compare: CompareCallbacks;
  /** Returns the message that is shown until the findings are there. */
  loadingMessage: () => string;
  /** Called when the part of the address about the panels has changed. */
  changed: () => void;
  showMessage: (problem: string) => void;
}

/** What a trace has nothing of: the tabs that would show it, and why they are not there. */
interface AbsentPart {
  tabs: PanelName[];
  why: string;
}

/** Returns what a complete and analysed trace has nothing of. A trace that is recorded may still get everything. */
function absentParts(trace: Trace): AbsentPart[] {
  const { findings, overview, hasCode } = trace;
  if (overview.live || !findings || isMissing(findings)) return [];
  const parts: AbsentPart[] = [];
  if (!hasCode) parts.push({ tabs: ["code"], why: NO_SAMPLES });
  if (findings.labels?.length === 0) parts.push({ tabs: ["labels"], why: NO_LABELS });
  if (findings.kernels && findings.kernels.every(({ limit, counters }) => limit === null && !counters)) parts.push({ tabs: ["limits"], why: NO_LIMITS });
  if (overview.tables.some(({ name, rows }) => name === "bindings" && rows === 0)) parts.push({ tabs: ["dependencies", "graph"], why: NO_BINDINGS });
  return parts;
}

/** Makes the panels and keeps them up to date. The methods say after which change each is called. */
export class Panels {
  readonly gaps: GapsPanel;
  readonly compare: ComparePanel;
  readonly dependencies: DependenciesTab;
  readonly sql: SqlPanel;
  readonly tabs: Tabs;
  private readonly trace: Trace;
  private readonly code: CodePanel;
  private readonly kernels: ReturnType<typeof kernelTable>;
  private readonly graph: GraphPanel;
  /** The panel of notes, and the store with the notes themselves. */
  private readonly noted: NotesPanel;
  private readonly kept: NotesStore;
  /** The edition (the numbering of rows, which a completed recording gets anew) and liveness of the loaded notes. */
  private notesOf: string;
  private readonly about = new AboutPanel();
  private readonly tables: Tables;

  constructor(
    private readonly parts: PanelsParts,
    private readonly callbacks: PanelsCallbacks,
  ) {
    const { view, traces, source, appearance, search, rangeAnalysis, ranks, keeps } = parts;
    const { trace } = view;
    this.trace = trace;
    const findText = (text: string): void => search.pick(escaped(text));
    const findName = ({ name }: { name: string }): void => search.pick(`^${escaped(name)}$`);
    this.compare = new ComparePanel(traces, source, callbacks.compare);
    const narrowed = new ActiveFilters({ range: () => view.select(null), search: () => search.for("") });
    this.gaps = new GapsPanel(trace, callbacks.goToGap, callbacks.changed);
    this.code = new CodePanel(view, appearance, findText, callbacks.changed);
    this.kernels = kernelTable(trace, appearance, findName);
    const limits = new LimitsPanel(trace, appearance, findName);
    const labels = labelTable(({ path }) => findText(path));
    this.graph = new GraphPanel(view, source, findName);
    this.dependencies = new DependenciesTab(view, source, appearance, {
      isShown: () => this.tabs.shown === "dependencies",
      show: () => this.tabs.show("dependencies"),
      go: callbacks.goToRow,
    });
    this.sql = new SqlPanel(traces, source, callbacks.goToAnswer, callbacks.changed, keeps);
    this.kept = new NotesStore(trace.number, source);
    this.notesOf = this.notesKey;
    this.noted = this.notes();
    this.tabs = new Tabs(
      [
        { name: "gaps", title: "Gaps", element: this.gaps.element },
        ...(ranks ? [{ name: "ranks" as const, title: "Ranks", element: ranks.element }] : []),
        { name: "code", title: "Code", element: this.code.element, opened: () => void this.code.open() },
        { name: "kernels", title: "Kernels", element: h("div", { class: "panel" }, this.kernels.element) },
        { name: "limits", title: "Limits", element: limits.element },
        { name: "labels", title: "Labels", element: h("div", { class: "panel" }, labels.element) },
        { name: "dependencies", title: "Dependencies", element: this.dependencies.element, opened: () => this.dependencies.open() },
        { name: "graph", title: "Data flow", element: this.graph.element, opened: () => void this.graph.open() },
        { name: "compare", title: "Compare", element: this.compare.element },
        { name: "sql", title: "SQL", element: this.sql.element, opened: () => this.sql.open() },
        { name: "notes", title: "Notes", element: this.noted.element },
        { name: "about", title: "Trace", element: this.about.element },
      ],
      callbacks.changed,
      narrowed.element,
    );
    this.tables = new Tables(view, appearance, { gaps: this.gaps, kernels: this.kernels, limits, labels, narrowed, rangeAnalysis, search }, callbacks.loadingMessage);
    view.onChange((change) => change === "selection" && this.graph.forget());
  }

  /** The edition and liveness of the trace, which decide whether notes can be written. */
  private get notesKey(): string {
    const { edition, live } = this.trace.overview;
    return `${edition}.${live}`;
  }

  /** Makes the panel of notes, loads them, and marks them on the timeline's ruler. */
  private notes(): NotesPanel {
    const { view } = this.parts;
    const notes = this.kept;
    notes.onChange(() => {
      view.notes = notes.all;
      view.changed("notes");
      if (notes.problem) this.callbacks.showMessage(notes.problem);
    });
    void notes.load();
    return new NotesPanel(view, notes, (note) => goToNote(view, note));
  }

  /** The restrictions of the panels' tables that the address has. */
  get filters(): Pick<ViewState, "cause" | "code_cause" | "code_label"> {
    const { cause, label } = this.code.only;
    return { cause: this.gaps.only, code_cause: cause, code_label: label };
  }

  /** Sets restrictions; absent ones stay as they are. */
  set filters({ cause, code_cause, code_label }: Pick<ViewState, "cause" | "code_cause" | "code_label">) {
    if (cause !== undefined) this.gaps.only = cause;
    if (code_cause === undefined && code_label === undefined) return;
    const { only } = this.code;
    this.code.only = { cause: code_cause ?? only.cause, label: code_label ?? only.label };
  }

  /** Shows the present findings, and hides the tabs for which the trace has nothing. */
  show(): void {
    const { findings, overview } = this.trace;
    const nothing = absentParts(this.trace);
    this.tabs.hide(new Set(nothing.flatMap(({ tabs }) => tabs)));
    this.about.show(overview, findings && !isMissing(findings) ? findings : null, this.parts.folded, nothing.map(({ why }) => why));
    this.tables.show();
  }

  /** Draws the tables with changed colours of work. */
  recolour(): void {
    if (this.kernels.all.length > 0) this.tables.show();
  }

  /** Updates the panels after the search has changed. */
  searched(): void {
    this.tables.show();
    this.code.renew();
  }

  /** Draws with a changed theme. */
  themed(): void {
    this.dependencies.renew();
    this.code.renew();
  }

  /** Updates the panels after a trace has grown. */
  grown(): void {
    this.graph.grown();
    this.dependencies.grown();
    if (this.notesOf === this.notesKey) return;
    this.notesOf = this.notesKey;
    void this.kept.load();
  }

  showNote(note: Note): void {
    this.tabs.show("notes");
    goToNote(this.parts.view, note);
  }

  /** Opens the form for a new note. */
  beginNote(): void {
    this.tabs.show("notes");
    this.noted.begin();
  }
}
