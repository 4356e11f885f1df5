// Builds the parts of the page for traces and connects them. `begin` is called once: it reads the address, loads
// names, and then follows traces that are being recorded.

import { Address } from "./address.ts";
import { Analyses, loadingMessage } from "./analyses.ts";
import { Appearance } from "./appearance.ts";
import { ComparisonController } from "./comparison-controller.ts";
import type { DataSource } from "./data/source.ts";
import { Trace } from "./data/trace.ts";
import { fill, h } from "./dom.ts";
import type { Theme } from "./draw/palette.ts";
import type { Overview } from "./generated/protocol.ts";
import { helpDialog } from "./help.ts";
import { Keyboard } from "./keyboard.ts";
import { LiveTraces } from "./live-traces.ts";
import { Loader } from "./loader.ts";
import { Minimap } from "./minimap.ts";
import { Navigation } from "./navigation.ts";
import { Notice } from "./notice.ts";
import { Panels } from "./panels/panels.ts";
import { Sidebar } from "./panels/sidebar.ts";
import { Verdict } from "./panels/verdict.ts";
import { RangeAnalysis } from "./range-analysis.ts";
import { RankComparison } from "./rank-comparison.ts";
import { escaped } from "./search-pattern.ts";
import { SearchResults } from "./search-results.ts";
import { Search } from "./search.ts";
import { Sharing } from "./sharing.ts";
import { chooseFirst, rankChoice, type ShownTraces, shownTraces } from "./shown-traces.ts";
import { splitter } from "./splitter.ts";
import { keepTheme, storedTheme } from "./theme.ts";
import { coveringRange } from "./time/range.ts";
import { workRange } from "./work-range.ts";
import { TimelineStack } from "./timeline-stack.ts";
import { SavedArrangement } from "./timeline/saved-arrangement.ts";
import { Topbar } from "./topbar.ts";
import type { Colouring, ViewState } from "./view-state.ts";
import { View } from "./view.ts";

/** The page. Each part gets callbacks for what it needs of the others. */
export class App {
  private readonly traces: Trace[];
  private readonly shown: ShownTraces;
  private readonly appearance: Appearance;
  private readonly view: View;
  private readonly loader: Loader;
  private readonly timelineStack: TimelineStack;
  private readonly topbar: Topbar;
  private readonly minimap: Minimap;
  private readonly panels: Panels;
  private readonly sidebar: Sidebar;
  /** Null where the program has no ranks (processes of a distributed program). */
  private readonly rankComparison: RankComparison | null;
  private readonly status = h("p", { class: "status", role: "status", hidden: true });
  private readonly navigation: Navigation;
  private readonly address: Address;
  private readonly search: Search;
  private readonly results: SearchResults;
  private readonly comparison: ComparisonController;
  private readonly analyses: Analyses;
  private readonly liveTraces: LiveTraces;
  private readonly keyboard: Keyboard;
  /** Whether the traces have loaded their strings. */
  private named = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly source: DataSource,
    private readonly overview: Overview,
  ) {
    this.traces = overview.traces.map((trace, number) => new Trace(number, trace, source, overview.page_rows ?? null));
    this.appearance = new Appearance(this.traces);
    this.shown = shownTraces(overview, this.traces, location.search);
    const { first: trace, beside } = this.shown;
    const folded = overview.file?.folded ?? null;
    const showMessage = (problem: string): void => this.showMessage(problem);
    const addressChanged = (): void => this.address.later();
    const writeAddress = (): void => this.address.write();
    const stopComparing = (): void => this.comparison.stop();
    // The bounds cover all ranks, so that one can scroll to the end of the longest.
    this.view = new View(trace, () => coveringRange([trace, ...beside].map((one) => one.whole)));
    this.address = new Address(this.view, {
      state: () => ({ search: this.topbar.input.value, sql: this.panels.sql.sql, colouring: this.appearance.colouring, panel: this.panels.tabs.shown, arranged: this.timelineStack.main.arrangement.written, ...this.panels.filters }),
      show: (state) => this.show(state),
      stopComparing,
      compare: (before, after, instance) => this.comparison.start(before, after, instance),
      sides: () => this.timelineStack.comparedSides,
      goTo: (table, row, stays) => this.navigation.goTo(this.view, table, row, stays),
    });
    const sharing = new Sharing(overview.gapscope, () => {
      this.address.write();
      const state = [location.search, location.hash].map((part) => part.slice(1)).filter(Boolean);
      return { opened: overview.opened ?? [], state: state.join("&"), address: location.href };
    }, () => this.timelineStack.timelines);
    const help = helpDialog();
    const verdict = new Verdict(beside.length > 0 ? trace.overview.name : null, trace, (rank) => this.rankComparison?.choose(rank));
    this.setTheme(storedTheme());
    this.loader = new Loader(source, this.appearance, () => this.onData(), showMessage, () => this.shown.first.findings !== null);
    this.timelineStack = new TimelineStack(this.view, this.traces, source, this.appearance, (tracks, view) => this.loader.wanted(tracks, view), (shown, all) => this.panels.compare.instances(shown, all), (view) => this.follow(view), beside);
    this.rankComparison = RankComparison.in(overview)
      ? new RankComparison(this.shown, this.traces, source, this.timelineStack, verdict, {
          choose: (name) => chooseFirst(name, writeAddress),
          stopComparing,
          changed: () => this.analyses.show(),
        })
      : null;
    const name = overview.together ?? this.traces.map(({ overview }) => overview.name).join("  |  ");
    this.topbar = new Topbar(name, rankChoice(this.shown, writeAddress), source.file, {
      search: (text) => this.search.for(text),
      step: (forward) => this.search.step(forward),
      colour: (by) => this.colour(by),
      theme: () => this.changeTheme(),
      share: () => sharing.open(),
      help: () => help.showModal(),
    });
    this.search = new Search(this.appearance, {
      view: this.view,
      box: this.topbar,
      changed: () => this.searched(),
      events: () => this.timelineStack.timelines.reduce((sum, { found }) => sum + found, 0),
      go: (forward) => this.navigation.hit(this.appearance, forward),
    });
    this.minimap = new Minimap(this.view, this.appearance);
    const rangeAnalysis = new RangeAnalysis(this.view, source);
    this.panels = new Panels(
      { view: this.view, traces: this.traces, source, appearance: this.appearance, search: this.search, rangeAnalysis, ranks: this.rankComparison?.panel ?? null, keeps: overview.keeps ?? false, folded },
      {
        goToRow: (table, row) => void this.navigation.goTo(this.view, table, row),
        goToGap: (gap, cause) => this.navigation.goToGap(gap, cause),
        goToAnswer: (place) => void this.navigation.goToAnswer(place),
        compare: {
          start: (before, after) => void this.comparison.start(before, after),
          stop: stopComparing,
          step: (by) => {
            this.timelineStack.step(by);
            addressChanged();
          },
          layOver: (over) => this.timelineStack.layOver(over),
          selection: () => {
            const { selection, trace } = this.timelineStack.timelines.find(({ view }) => view.selection !== null)?.view ?? this.view;
            return selection && { trace: trace.number, range: selection };
          },
        },
        loadingMessage: () => loadingMessage(this.loader, trace),
        changed: addressChanged,
        showMessage,
      },
    );
    this.timelineStack.main.noted = (note) => this.panels.showNote(note);
    this.navigation = new Navigation(root, source, this.timelineStack, this.panels.gaps, stopComparing, showMessage);
    this.results = new SearchResults(this.view, this.appearance, this.timelineStack.main.arrangement, this.topbar.input, {
      event: (event) => this.navigation.goToEvent(event),
      gap: (gap) => this.navigation.goToGap(gap),
      search: (text) => this.search.pick(text),
      track: (id) => {
        const track = trace.track(id);
        if (track) this.timelineStack.main.goToTrack(track);
      },
      code: () => this.panels.tabs.show("code"),
      want: (tracks) => this.loader.wanted(tracks, this.view),
    });
    this.topbar.resultList.append(this.results.element);
    this.sidebar = new Sidebar(this.view, source, this.appearance, rangeAnalysis, () => this.timelineStack.timelines.map(({ view }) => view), {
      go: (view, table, row) => void this.navigation.goTo(view, table, row),
      search: (text) => this.search.pick(escaped(text)),
      graph: (view, table, row) => {
        if (view.trace === trace) this.panels.dependencies.show(table, row);
      },
    });
    for (const view of this.timelineStack.views) if (view !== this.view) this.follow(view);
    for (const one of this.traces) one.replaced = (track, before) => this.timelineStack.views.forEach((view) => view.trace === one && view.replaced(track, before));
    this.comparison = new ComparisonController(root, this.traces, this.timelineStack, this.panels.compare, verdict, {
      came: () => this.onData(),
      changed: addressChanged,
      ended: () => this.analyses.show(),
      showMessage,
    });
    const notice = new Notice(this.traces, trace, folded);
    const analysed = overview.together ? [trace] : this.traces;
    this.analyses = new Analyses(this.view, analysed, this.loader, source, { verdict, panels: this.panels, sidebar: this.sidebar, minimap: this.minimap, notice, rankComparison: this.rankComparison }, () => this.timelineStack.views, showMessage);
    this.liveTraces = new LiveTraces(
      { root, overview, traces: this.traces, shown: this.shown, view: this.view, timelineStack: this.timelineStack, topbar: this.topbar },
      {
        grown: (grown) => {
          this.panels.grown();
          this.analyses.grown(grown);
        },
        leaving: writeAddress,
        showMessage,
      },
    );
    this.keyboard = new Keyboard(
      { timelineStack: this.timelineStack, navigation: this.navigation, search: this.search, input: this.topbar.input, help, sharing: sharing.element },
      { note: () => this.panels.beginNote(), clearMessage: () => this.showMessage("") },
    );
    const { tabs } = this.panels;
    fill(
      root,
      this.topbar.element,
      notice.element,
      verdict.element,
      h("div", { class: "minimap-row" }, this.minimap.wholeRun, this.minimap.canvas),
      this.timelineStack.element,
      splitter(root, tabs.element),
      tabs.element,
      this.sidebar.element,
      this.status,
      help,
      sharing.element,
    );
  }

  /** Shows the page, loads what it needs, and registers for keys and changes. */
  async begin(): Promise<void> {
    const trace = this.shown.first;
    document.title = `${this.overview.together ?? trace.overview.name} · gapscope`;
    this.analyses.show();
    this.topbar.colouring(this.appearance.colouring);
    this.liveTraces.show();
    this.view.onChange((change) => {
      if (change === "range" || change === "selection" || change === "event") this.address.later();
      if (change === "selection") this.panels.compare.selected();
      if (change === "data") this.navigation.resume();
      if (change !== "event" && change !== "data" && change !== "notes") return;
      this.search.tell();
      this.results.renew();
    });
    this.keyboard.listen();
    window.addEventListener("hashchange", () => void this.address.read(true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme(storedTheme()));
    const { arrangement } = this.timelineStack.main;
    new SavedArrangement(this.source, this.overview, trace.number).follow(arrangement);
    arrangement.onChange(() => this.address.later());
    this.timelineStack.main.draw();
    this.minimap.draw();
    requestAnimationFrame(() => requestAnimationFrame(() => this.mark("firstDraw")));
    // A saved page starts in its own state unless the address gives another.
    if (this.overview.state && location.hash.length < 2) history.replaceState(null, "", `#${this.overview.state}`);
    // Where most of a trace is start-up, the part with GPU work comes first.
    if (!trace.overview.live && this.shown.beside.length === 0) this.address.openOn(workRange(trace));
    // The address is read before the first drawing, because afterwards the reader may have gone elsewhere.
    const read = this.address.read(false);
    await Promise.all(this.traces.map((trace) => trace.loadStrings()));
    this.named = true;
    this.settle();
    this.timelineStack.renew();
    this.changed();
    this.analyses.ask();
    await read;
    if (this.traces.length > 1 && !this.overview.together && !this.timelineStack.comparing) {
      this.panels.tabs.show("compare");
      void this.comparison.start({ trace: 0, what: "all" }, { trace: 1, what: "all" });
    }
    // Without tracks no data will arrive.
    if (trace.tracks.length === 0 && !trace.overview.live) this.onData();
    if (!this.source.file) void this.liveTraces.follow(this.loader);
  }

  /** Shows the events that are picked in a view other than the main one, and asks for the findings about them. */
  private follow(view: View): void {
    this.sidebar.follow(view);
    view.onChange((change) => {
      if (change === "event") this.analyses.picked(view);
      if (change === "selection") this.panels.compare.selected();
    });
  }

  /** Updates the page after rows, labels or counters have arrived. */
  private onData(): void {
    this.timelineStack.renew();
    this.changed();
    this.analyses.ask();
    if (!this.shown.first.findings) this.analyses.show();
    this.settle();
    if (!this.complete) return;
    requestAnimationFrame(() => requestAnimationFrame(() => this.mark("fullDraw")));
    // Legend and tables use the colours of what has been drawn.
    this.sidebar.legend.show();
    this.panels.recolour();
  }

  /** Tells all views, those of other ranks and of a comparison included, that their traces have new data. */
  private changed(): void {
    for (const view of this.timelineStack.views) view.changed("data");
  }

  /** Returns whether all work in sight has loaded. */
  private get complete(): boolean {
    return this.timelineStack.timelines.every((timeline) => timeline.complete);
  }

  /** Fixes the colours once all work in sight has loaded with its names. */
  private settle(): void {
    if (this.named && this.complete) this.appearance.settle();
  }

  /** Publishes when something was first drawn, in milliseconds since 1970, for measurements from outside. */
  private mark(what: "firstDraw" | "fullDraw"): void {
    this.root.dataset[what] ??= (performance.timeOrigin + performance.now()).toFixed(1);
    this.root.dataset[`${what}Ms`] ??= performance.now().toFixed(1);
  }

  /** Shows a message in the status line, or hides the line for an empty text. */
  private showMessage(problem: string): void {
    this.status.textContent = problem;
    this.status.hidden = problem === "";
  }

  /** Updates the page after the search has changed. */
  private searched(): void {
    this.panels.searched();
    this.results.renew();
    this.timelineStack.renew();
    this.address.later();
  }

  /** Shows what an address gives besides range, selection and event. */
  private show({ colouring, search, sql, panel, arranged, ...filters }: ViewState): void {
    this.panels.filters = filters;
    if (sql !== undefined) this.panels.sql.show(sql);
    if (arranged) this.timelineStack.main.arrangement.read(arranged);
    if (colouring && colouring !== this.appearance.colouring) this.colour(colouring);
    if (search !== undefined && search !== this.topbar.input.value) this.search.for(search);
    if (panel && panel !== this.panels.tabs.shown) this.panels.tabs.show(panel);
  }

  private colour(by: Colouring): void {
    this.appearance.colouring = by;
    this.topbar.colouring(by);
    this.sidebar.legend.show();
    this.timelineStack.renew();
    this.address.later();
  }

  private changeTheme(): void {
    const theme = this.appearance.theme === "dark" ? "light" : "dark";
    keepTheme(theme);
    this.applyTheme(theme);
  }

  private applyTheme(theme: Theme): void {
    this.setTheme(theme);
    this.timelineStack.renew();
    this.minimap.draw();
    this.panels.themed();
    this.analyses.show();
    this.sidebar.recolour();
    this.results.renew();
  }

  /** Sets the theme without drawing. */
  private setTheme(theme: Theme): void {
    this.appearance.theme = theme;
    document.documentElement.dataset.theme = theme;
  }
}
