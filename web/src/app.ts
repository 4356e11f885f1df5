// Puts the page together and connects its parts.

import { Address } from "./address.ts";
import { Comparison } from "./comparison.ts";
import { isMissing } from "./data/missing.ts";
import { Notes } from "./data/notes.ts";
import type { Overview } from "./data/overview.ts";
import type { DataSource } from "./data/source.ts";
import { Trace } from "./data/trace.ts";
import { DependenciesTab } from "./dependencies/tab.ts";
import { fill, h } from "./dom.ts";
import type { Theme } from "./draw/palette.ts";
import { Explainer } from "./explaining.ts";
import { helpDialog } from "./help.ts";
import { Shortcuts } from "./input/shortcuts.ts";
import type { Colouring, ViewState } from "./link.ts";
import { InRange } from "./in-range.ts";
import { Loader } from "./loading.ts";
import { Look } from "./look.ts";
import { Minimap } from "./minimap.ts";
import { Navigation } from "./navigation.ts";
import { Notice } from "./notice.ts";
import { AboutPanel } from "./panels/about.ts";
import { CodePanel } from "./panels/code.ts";
import { ComparePanel } from "./panels/compare.ts";
import { DetailsPanel } from "./panels/details.ts";
import { GapsPanel } from "./panels/gaps.ts";
import { GraphPanel } from "./panels/graph.ts";
import { Legend } from "./panels/legend.ts";
import { LimitsPanel } from "./panels/limits.ts";
import { kernelTable, labelTable } from "./panels/kernels.ts";
import { goToNote, NotesPanel } from "./panels/notes.ts";
import { Narrowed } from "./panels/narrowed.ts";
import { SelectionPanel } from "./panels/selection.ts";
import { SqlPanel } from "./panels/sql.ts";
import { Verdict } from "./panels/verdict.ts";
import { chooseFirst, rankChoice, type Shown, shownOf } from "./ranks.ts";
import { escaped, Results } from "./results.ts";
import { Search } from "./searching.ts";
import { sentence } from "./sentence.ts";
import { Sharing } from "./sharing.ts";
import { splitter } from "./splitter.ts";
import { Stage } from "./stage.ts";
import { Tabs } from "./tabs.ts";
import { Tables } from "./tables.ts";
import { keepTheme, storedTheme } from "./theme.ts";
import { of } from "./time/format.ts";
import { followed, type Range } from "./time/range.ts";
import { Kept } from "./timeline/kept.ts";
import { Together } from "./together.ts";
import { Topbar } from "./topbar.ts";
import { View } from "./view.ts";

export class App {
  private readonly traces: Trace[];
  private readonly shown: Shown;
  private readonly look = new Look();
  private readonly view: View;
  private readonly loader: Loader;
  private readonly stage: Stage;
  private readonly topbar: Topbar;
  private readonly minimap: Minimap;
  private readonly verdict: Verdict;
  private readonly gaps: GapsPanel;
  private readonly code: CodePanel;
  private readonly kernels;
  private readonly labels;
  private readonly limits: LimitsPanel;
  private readonly about = new AboutPanel();
  private readonly legend: Legend;
  private readonly details: DetailsPanel;
  private readonly graph: GraphPanel;
  private readonly dependencies: DependenciesTab;
  private readonly compare: ComparePanel;
  private readonly sql: SqlPanel;
  private readonly tabs: Tabs;
  /** Of a program with ranks. */
  private readonly together: Together | null;
  private readonly help = helpDialog();
  private readonly sharing: Sharing;
  private readonly notice: Notice;
  private readonly status = h("p", { class: "status", role: "status", hidden: true });
  private readonly side = h("section", { class: "side", "aria-label": "Beside the timeline" });
  private readonly navigation: Navigation;
  private readonly address: Address;
  private readonly search: Search;
  private readonly results: Results;
  private readonly noted: NotesPanel;
  private readonly tables: Tables;
  private readonly comparison: Comparison;
  private readonly shortcuts: Shortcuts;
  private readonly explainer: Explainer;
  /** What there was to be seen before the trace grew. */
  private seen: Range;

  constructor(
    private readonly root: HTMLElement,
    private readonly source: DataSource,
    private readonly overview: Overview,
  ) {
    this.traces = overview.traces.map((trace, number) => new Trace(number, trace, source));
    this.look.traces = this.traces;
    this.shown = shownOf(overview, this.traces, location.search);
    const { first: trace, beside } = this.shown;
    // Of all ranks, so that the end of the longest can be reached.
    this.view = new View(trace, () => around([trace, ...beside].map((one) => one.whole)));
    this.address = new Address(this.view, {
      state: () => ({ search: this.topbar.input.value, sql: this.sql.sql, colouring: this.look.colouring, panel: this.tabs.shown, arranged: this.stage.main.arrangement.written }),
      show: (state) => this.show(state),
      stopComparing: () => this.comparison.stop(),
      compare: (before, after) => this.comparison.start(before, after),
      sides: () => this.stage.comparedSides,
      goTo: (table, row) => this.navigation.goTo(this.view, table, row),
    });
    this.sharing = new Sharing(overview.gapscope, () => {
      this.address.write();
      const state = [location.search, location.hash].map((part) => part.slice(1)).filter(Boolean);
      return { opened: overview.opened ?? [], state: state.join("&"), address: location.href };
    });
    this.seen = this.view.bounds;
    this.verdict = new Verdict(beside.length > 0 ? trace.overview.name : null, trace, (rank) => this.together?.choose(rank));
    this.notice = new Notice(overview, this.traces, trace);
    this.applyTheme(storedTheme());
    this.loader = new Loader(source, this.look, () => this.dataCame(), (problem) => this.say(problem));
    this.explainer = new Explainer(source, (trace) => this.explained(trace), (problem) => this.say(problem));
    this.compare = new ComparePanel(this.traces, source, {
      start: (before, after) => void this.comparison.start(before, after),
      stop: () => this.comparison.stop(),
      step: (by) => this.stage.step(by),
      selection: () => this.view.selection,
    });
    this.stage = new Stage(this.view, this.traces, source, this.look, (trace, tracks) => this.loader.wanted(trace, tracks), (shown, all) => this.compare.instances(shown, all), (view) => this.watch(view), beside);
    this.comparison = new Comparison(this.traces, {
      root,
      stage: this.stage,
      panel: this.compare,
      verdict: this.verdict,
      came: () => this.dataCame(),
      changed: () => this.address.later(),
      ended: () => this.showFindings(),
      say: (problem) => this.say(problem),
    });
    this.together = Together.in(overview)
      ? new Together(this.shown, this.traces, source, this.stage, this.verdict, {
          choose: (name) => chooseFirst(name, () => this.address.write()),
          stopComparing: () => this.comparison.stop(),
          changed: () => this.showFindings(),
        })
      : null;
    const name = overview.together ?? this.traces.map(({ overview }) => overview.name).join("  |  ");
    this.topbar = new Topbar(name, rankChoice(this.shown, () => this.address.write()), source.file, {
      search: (text) => this.search.for(text),
      step: (forward) => this.search.step(forward),
      colour: (by) => this.colour(by),
      theme: () => this.applyTheme(this.look.theme === "dark" ? "light" : "dark", true),
      share: () => this.sharing.open(),
      help: () => this.help.showModal(),
    });
    this.search = new Search(this.look, {
      view: this.view,
      box: this.topbar,
      changed: () => {
        this.tables.show();
        this.results.renew();
        this.code.renew();
        this.stage.renew();
        this.address.later();
      },
      events: () => this.stage.timelines.reduce((sum, { found }) => sum + found, 0),
      go: (forward) => this.navigation.hit(this.look, forward),
    });
    this.legend = new Legend(trace, this.look);
    this.minimap = new Minimap(this.view, this.look);
    const inRange = new InRange(this.view, source);
    const narrowed = new Narrowed({ range: () => this.view.select(null), search: () => this.search.for("") });
    this.gaps = new GapsPanel(trace, (gap, cause) => this.navigation.goToGap(gap, cause));
    this.code = new CodePanel(this.view, this.look, (line) => this.search.pick(escaped(line)));
    this.kernels = kernelTable(trace, this.look, (row) => this.search.pick(`^${escaped(row.name)}$`));
    this.limits = new LimitsPanel(trace, this.look, (row) => this.search.pick(`^${escaped(row.name)}$`));
    this.labels = labelTable((row) => this.search.pick(escaped(row.path)));
    this.graph = new GraphPanel(this.view, source, this.look, (node) => this.search.pick(`^${escaped(node.name)}$`));
    this.dependencies = new DependenciesTab(this.view, source, this.look, {
      isShown: () => this.tabs.shown === "dependencies",
      show: () => this.tabs.show("dependencies"),
      go: (table, row) => void this.navigation.goTo(this.view, table, row),
    });
    this.sql = new SqlPanel(
      this.traces,
      source,
      (place) => void this.navigation.goToAnswer(place),
      () => this.address.later(),
      overview.keeps ?? false,
    );
    const notes = new Notes(trace.number, source);
    this.noted = new NotesPanel(this.view, notes, (note) => goToNote(this.view, note));
    notes.onChange(() => {
      this.view.notes = notes.all;
      this.view.changed("notes");
      if (notes.problem) this.say(notes.problem);
    });
    this.stage.main.noted = (note) => {
      this.tabs.show("notes");
      goToNote(this.view, note);
    };
    void notes.load();
    this.tabs = new Tabs(
      [
        { name: "gaps", title: "Gaps", element: this.gaps.element },
        ...(this.together ? [{ name: "ranks" as const, title: "Ranks", element: this.together.panel.element }] : []),
        { name: "code", title: "Code", element: this.code.element, opened: () => void this.code.open() },
        { name: "kernels", title: "Kernels", element: h("div", { class: "panel" }, this.kernels.element) },
        { name: "limits", title: "Limits", element: this.limits.element },
        { name: "labels", title: "Labels", element: h("div", { class: "panel" }, this.labels.element) },
        { name: "dependencies", title: "Dependencies", element: this.dependencies.element, opened: () => this.dependencies.open() },
        { name: "graph", title: "Data flow", element: this.graph.element, opened: () => void this.graph.open() },
        { name: "compare", title: "Compare", element: this.compare.element },
        { name: "sql", title: "SQL", element: this.sql.element, opened: () => this.sql.open() },
        { name: "notes", title: "Notes", element: this.noted.element },
        { name: "about", title: "Recording", element: this.about.element },
      ],
      () => this.address.later(),
      narrowed.element,
    );
    this.tables = new Tables(this.view, this.look, { gaps: this.gaps, kernels: this.kernels, labels: this.labels, narrowed, inRange, search: this.search }, () => this.coming());
    this.navigation = new Navigation(root, source, this.stage, this.gaps, () => this.comparison.stop(), (problem) => this.say(problem));
    this.results = new Results(this.view, this.look, this.stage.main.arrangement, this.topbar.input, {
      event: (event) => this.navigation.goToEvent(event),
      gap: (gap) => this.navigation.goToGap(gap),
      search: (text) => this.search.pick(text),
      track: (id) => {
        const track = trace.track(id);
        if (track) this.stage.main.goToTrack(track);
      },
      code: () => this.tabs.show("code"),
      want: (tracks) => this.loader.wanted(trace, tracks),
    });
    this.topbar.found.append(this.results.element);
    this.details = new DetailsPanel(this.view, source, this.look, {
      go: (view, table, row) => void this.navigation.goTo(view, table, row),
      search: (text) => this.search.pick(escaped(text)),
      graph: (view, table, row) => {
        if (view.trace === trace) this.dependencies.show(table, row);
      },
    });
    this.shortcuts = new Shortcuts({
      stage: this.stage,
      navigation: this.navigation,
      search: this.search,
      input: this.topbar.input,
      tabs: this.tabs,
      notes: this.noted,
      help: this.help,
      covered: () => this.help.open || this.sharing.element.open,
      say: (problem) => this.say(problem),
    });
    for (const view of this.stage.views) if (view !== this.view) this.watch(view);
    for (const one of this.traces) one.replaced = (track, before) => this.stage.views.forEach((view) => view.trace === one && view.replaced(track, before));
    fill(
      this.side,
      this.details.element,
      new SelectionPanel(this.view, source, this.look, inRange).element,
      this.legend.element,
      h(
        "div",
        { class: "hint" },
        h("p", {}, "Click work, a gap or a call to see all about it. Drag on the ruler to select a range."),
        h("p", {}, h("kbd", {}, "W"), h("kbd", {}, "A"), h("kbd", {}, "S"), h("kbd", {}, "D"), " zoom and move, ", h("kbd", {}, "N"), " costliest gaps, ", h("kbd", {}, "J"), " next gap in time, ", h("kbd", {}, "?"), " all keys"),
      ),
    );
    fill(
      root,
      this.topbar.element,
      this.notice.element,
      this.verdict.element,
      h("div", { class: "minimap-row" }, this.minimap.canvas),
      this.stage.element,
      splitter(root, this.tabs.element),
      this.tabs.element,
      this.side,
      this.status,
      this.help,
      this.sharing.element,
    );
  }

  async begin(): Promise<void> {
    const trace = this.shown.first;
    document.title = `${this.overview.together ?? trace.overview.name} · gapscope`;
    this.showFindings();
    this.topbar.colouring(this.look.colouring);
    this.recording();
    this.view.onChange((change) => {
      if (change === "range" || change === "selection" || change === "event") this.address.later();
      if (change === "event" || change === "selection") this.fillSide();
      if (change === "event") {
        this.search.tell();
        this.results.renew();
      }
      if (change === "selection") this.graph.forget();
    });
    document.addEventListener("keydown", (event) => this.shortcuts.key(event));
    window.addEventListener("hashchange", () => void this.address.read(true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme(storedTheme()));
    const { arrangement } = this.stage.main;
    const kept = new Kept(this.source, this.overview, trace.number);
    arrangement.read(kept.found);
    arrangement.onChange(() => {
      kept.keep(arrangement.written);
      this.address.later();
    });
    this.stage.main.draw();
    this.minimap.draw();
    requestAnimationFrame(() => requestAnimationFrame(() => this.mark("firstDraw")));
    // A file is opened with its own state, unless the address says another.
    if (this.overview.state && location.hash.length < 2) history.replaceState(null, "", `#${this.overview.state}`);
    // What the address says is shown from the first drawing on, before anybody can have gone elsewhere.
    const read = this.address.read(false);
    await Promise.all(this.traces.map((trace) => trace.loadStrings()));
    this.explain();
    this.stage.renew();
    await read;
    if (this.traces.length > 1 && !this.overview.together && !this.stage.comparing) {
      this.tabs.show("compare");
      void this.comparison.start({ trace: 0, what: "all" }, { trace: 1, what: "all" });
    }
    // There is nothing that would come.
    if (trace.tracks.length === 0 && !trace.overview.live) this.dataCame();
    if (!this.source.file) void this.follow();
  }

  private async follow(): Promise<void> {
    try {
      await this.loader.follow(this.traces, {
        resetting: (trace) => this.stage.views.forEach((view) => view.trace === trace && view.letGo()),
        grown: (trace) => this.grown(trace),
        appeared: () => {
          this.address.write();
          location.reload();
        },
      });
    } catch (error) {
      this.say(sentence(error));
      this.topbar.recording(false);
    }
  }

  /** A view of a comparison: what is picked in it is shown beside it. */
  private watch(view: View): void {
    this.details.follow(view);
    view.onChange((change) => change === "event" && this.fillSide());
  }

  private fillSide(): void {
    const picked = [this.view, ...this.stage.timelines.map((timeline) => timeline.view)].some((view) => view.event !== null);
    this.side.classList.toggle("filled", picked || this.view.selection !== null);
    this.legend.element.hidden = picked || this.view.selection !== null;
  }

  /** Asks what the analyses say, once the work in sight is there: both take all cores, and work is looked at first. */
  private explain(): void {
    if (this.loader.awaitsWork) return;
    for (const trace of this.overview.together ? [this.shown.first] : this.traces) {
      if (!this.explainer.has(trace)) void this.explainer.ask(trace);
    }
  }

  private explained(trace: Trace): void {
    this.compare.fillChoices();
    this.notice.show();
    if (trace === this.shown.first) {
      this.showFindings();
      void this.together?.ask();
    }
    this.view.changed("data");
  }

  private showFindings(): void {
    const trace = this.shown.first;
    const { findings, overview } = trace;
    const coming = this.coming();
    const there = findings && !isMissing(findings) ? findings : null;
    this.verdict.show(findings, overview, coming);
    this.about.show(overview, there, this.overview.file?.folded ?? null);
    this.showTables();
    this.legend.show();
    this.minimap.draw();
    this.notice.show();
  }

  private showTables(): void {
    this.tables.show();
    this.limits.show(this.shown.first.findings, this.coming());
  }

  /** What is said until the analyses have answered: how far it is. */
  private coming(): string {
    const { ready, all } = this.loader.workOf(this.shown.first);
    return ready < all ? `Loading: ${ready} of ${of(all, "track", "tracks")} of GPU work ${ready === 1 ? "is" : "are"} here…` : "Analysing the trace…";
  }

  private recording(): void {
    this.topbar.recording(this.traces.some((trace) => trace.overview.live));
  }

  /** A live trace has more than before. */
  private grown(trace: Trace): void {
    this.recording();
    if (this.overview.together && trace.tracks.length > 0 && trace !== this.shown.first && !this.shown.beside.includes(trace)) {
      // Its first rows came: it has a timeline of its own.
      this.address.write();
      return location.reload();
    }
    // Who looks at the end goes on looking at it.
    const [before, { bounds }] = [this.seen, this.view];
    this.seen = bounds;
    if (before.to_ns !== bounds.to_ns || before.from_ns !== bounds.from_ns) this.view.slide(followed(this.view.range, before, bounds));
    this.root.dataset.generation = String(this.shown.first.overview.generation);
    this.stage.renew();
    this.view.changed("data");
    this.graph.forget();
    this.dependencies.forget();
    if (trace === this.shown.first && !trace.findings) this.showFindings();
    if (trace === this.shown.first || this.explainer.has(trace)) void this.explainer.ask(trace);
  }

  private dataCame(): void {
    this.stage.renew();
    this.view.changed("data");
    this.explain();
    this.search.tell();
    this.results.renew();
    const trace = this.shown.first;
    if (!trace.findings) this.showFindings();
    if (this.stage.timelines.every((timeline) => timeline.complete)) {
      requestAnimationFrame(() => requestAnimationFrame(() => this.mark("fullDraw")));
      this.legend.show();
      // Their colours are those of what is drawn.
      if (this.kernels.all.length > 0) this.showTables();
    }
  }

  /** When something was first drawn, in milliseconds since 1970, for measurements from outside. */
  private mark(what: "firstDraw" | "fullDraw"): void {
    this.root.dataset[what] ??= (performance.timeOrigin + performance.now()).toFixed(1);
    this.root.dataset[`${what}Ms`] ??= performance.now().toFixed(1);
  }

  private say(problem: string): void {
    this.status.textContent = problem;
    this.status.hidden = problem === "";
  }

  /** Shows what an address says besides range, selection and event. */
  private show({ colouring, search, sql, panel, arranged }: ViewState): void {
    if (sql !== undefined) this.sql.show(sql);
    if (arranged) this.stage.main.arrangement.read(arranged);
    if (colouring && colouring !== this.look.colouring) this.colour(colouring);
    if (search !== undefined && search !== this.topbar.input.value) this.search.for(search);
    if (panel && panel !== this.tabs.shown) this.tabs.show(panel);
  }

  // ---- colours ----

  private colour(by: Colouring): void {
    this.look.colouring = by;
    this.topbar.colouring(by);
    this.legend.show();
    this.stage.renew();
    this.address.later();
  }

  private applyTheme(theme: Theme, keep = false): void {
    this.look.theme = theme;
    document.documentElement.dataset.theme = theme;
    if (keep) keepTheme(theme);
    if (this.stage) {
      this.stage.renew();
      this.minimap.draw();
      this.dependencies.renew();
      this.code.renew();
      this.showFindings();
    }
  }
}

/** From the earliest start to the latest end. */
function around(ranges: readonly Range[]): Range {
  return { from_ns: Math.min(...ranges.map(({ from_ns }) => from_ns)), to_ns: Math.max(...ranges.map(({ to_ns }) => to_ns)) };
}
