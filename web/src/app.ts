// Puts the page together and connects its parts.

import { Address } from "./address.ts";
import { Analyses, coming } from "./analyses.ts";
import { Comparing } from "./comparing.ts";
import type { Overview } from "./data/overview.ts";
import type { DataSource } from "./data/source.ts";
import { Trace } from "./data/trace.ts";
import { fill, h } from "./dom.ts";
import type { Theme } from "./draw/palette.ts";
import { helpDialog } from "./help.ts";
import { InRange } from "./in-range.ts";
import { Keyboard } from "./keyboard.ts";
import type { Colouring, ViewState } from "./link.ts";
import { Loader } from "./loading.ts";
import { Look } from "./look.ts";
import { Minimap } from "./minimap.ts";
import { Navigation } from "./navigation.ts";
import { Notice } from "./notice.ts";
import { Panels } from "./panels/panels.ts";
import { Sidebar } from "./panels/sidebar.ts";
import { Verdict } from "./panels/verdict.ts";
import { chooseFirst, rankChoice, type Shown, shownOf } from "./ranks.ts";
import { Recording } from "./recording.ts";
import { Results } from "./results.ts";
import { escaped } from "./search.ts";
import { Search } from "./searching.ts";
import { Sharing } from "./sharing.ts";
import { splitter } from "./splitter.ts";
import { Stage } from "./stage.ts";
import { keepTheme, storedTheme } from "./theme.ts";
import { around } from "./time/range.ts";
import { Kept } from "./timeline/kept.ts";
import { Together } from "./together.ts";
import { Topbar } from "./topbar.ts";
import { View } from "./view.ts";

export class App {
  private readonly traces: Trace[];
  private readonly shown: Shown;
  private readonly look: Look;
  private readonly view: View;
  private readonly loader: Loader;
  private readonly stage: Stage;
  private readonly topbar: Topbar;
  private readonly minimap: Minimap;
  private readonly panels: Panels;
  private readonly sidebar: Sidebar;
  /** Of a program with ranks. */
  private readonly together: Together | null;
  private readonly status = h("p", { class: "status", role: "status", hidden: true });
  private readonly navigation: Navigation;
  private readonly address: Address;
  private readonly search: Search;
  private readonly results: Results;
  private readonly comparing: Comparing;
  private readonly analyses: Analyses;
  private readonly recording: Recording;
  private readonly keyboard: Keyboard;
  /** The traces have their strings. */
  private named = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly source: DataSource,
    private readonly overview: Overview,
  ) {
    this.traces = overview.traces.map((trace, number) => new Trace(number, trace, source, overview.page_rows ?? null));
    this.look = new Look(this.traces);
    this.shown = shownOf(overview, this.traces, location.search);
    const { first: trace, beside } = this.shown;
    const folded = overview.file?.folded ?? null;
    const say = (problem: string): void => this.say(problem);
    const addressChanged = (): void => this.address.later();
    const writeAddress = (): void => this.address.write();
    const stopComparing = (): void => this.comparing.stop();
    // Of all ranks, so that the end of the longest can be reached.
    this.view = new View(trace, () => around([trace, ...beside].map((one) => one.whole)));
    this.address = new Address(this.view, {
      state: () => ({ search: this.topbar.input.value, sql: this.panels.sql.sql, colouring: this.look.colouring, panel: this.panels.tabs.shown, arranged: this.stage.main.arrangement.written, ...this.panels.filters }),
      show: (state) => this.show(state),
      stopComparing,
      compare: (before, after, instance) => this.comparing.start(before, after, instance),
      sides: () => this.stage.comparedSides,
      goTo: (table, row, stays) => this.navigation.goTo(this.view, table, row, stays),
    });
    const sharing = new Sharing(overview.gapscope, () => {
      this.address.write();
      const state = [location.search, location.hash].map((part) => part.slice(1)).filter(Boolean);
      return { opened: overview.opened ?? [], state: state.join("&"), address: location.href };
    });
    const help = helpDialog();
    const verdict = new Verdict(beside.length > 0 ? trace.overview.name : null, trace, (rank) => this.together?.choose(rank));
    this.setTheme(storedTheme());
    this.loader = new Loader(source, this.look, () => this.dataCame(), say, () => this.shown.first.findings !== null);
    this.stage = new Stage(this.view, this.traces, source, this.look, (tracks, view) => this.loader.wanted(tracks, view), (shown, all) => this.panels.compare.instances(shown, all), (view) => this.follow(view), beside);
    this.together = Together.in(overview)
      ? new Together(this.shown, this.traces, source, this.stage, verdict, {
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
    this.search = new Search(this.look, {
      view: this.view,
      box: this.topbar,
      changed: () => this.searched(),
      events: () => this.stage.timelines.reduce((sum, { found }) => sum + found, 0),
      go: (forward) => this.navigation.hit(this.look, forward),
    });
    this.minimap = new Minimap(this.view, this.look);
    const inRange = new InRange(this.view, source);
    this.panels = new Panels(
      { view: this.view, traces: this.traces, source, look: this.look, search: this.search, inRange, ranks: this.together?.panel ?? null, keeps: overview.keeps ?? false, folded },
      {
        goToRow: (table, row) => void this.navigation.goTo(this.view, table, row),
        goToGap: (gap, cause) => this.navigation.goToGap(gap, cause),
        goToAnswer: (place) => void this.navigation.goToAnswer(place),
        compare: {
          start: (before, after) => void this.comparing.start(before, after),
          stop: stopComparing,
          step: (by) => {
            this.stage.step(by);
            addressChanged();
          },
          selection: () => {
            const { selection, trace } = this.stage.timelines.find(({ view }) => view.selection !== null)?.view ?? this.view;
            return selection && { trace: trace.number, range: selection };
          },
        },
        coming: () => coming(this.loader, trace),
        changed: addressChanged,
        say,
      },
    );
    this.stage.main.noted = (note) => this.panels.showNote(note);
    this.navigation = new Navigation(root, source, this.stage, this.panels.gaps, stopComparing, say);
    this.results = new Results(this.view, this.look, this.stage.main.arrangement, this.topbar.input, {
      event: (event) => this.navigation.goToEvent(event),
      gap: (gap) => this.navigation.goToGap(gap),
      search: (text) => this.search.pick(text),
      track: (id) => {
        const track = trace.track(id);
        if (track) this.stage.main.goToTrack(track);
      },
      code: () => this.panels.tabs.show("code"),
      want: (tracks) => this.loader.wanted(tracks, this.view),
    });
    this.topbar.found.append(this.results.element);
    this.sidebar = new Sidebar(this.view, source, this.look, inRange, () => this.stage.timelines.map(({ view }) => view), {
      go: (view, table, row) => void this.navigation.goTo(view, table, row),
      search: (text) => this.search.pick(escaped(text)),
      graph: (view, table, row) => {
        if (view.trace === trace) this.panels.dependencies.show(table, row);
      },
    });
    for (const view of this.stage.views) if (view !== this.view) this.follow(view);
    for (const one of this.traces) one.replaced = (track, before) => this.stage.views.forEach((view) => view.trace === one && view.replaced(track, before));
    this.comparing = new Comparing(root, this.traces, this.stage, this.panels.compare, verdict, {
      came: () => this.dataCame(),
      changed: addressChanged,
      ended: () => this.analyses.show(),
      say,
    });
    const notice = new Notice(this.traces, trace, folded);
    const analysed = overview.together ? [trace] : this.traces;
    this.analyses = new Analyses(this.view, analysed, this.loader, source, { verdict, panels: this.panels, sidebar: this.sidebar, minimap: this.minimap, notice, together: this.together }, () => this.stage.views, say);
    this.recording = new Recording(
      { root, overview, traces: this.traces, shown: this.shown, view: this.view, stage: this.stage, topbar: this.topbar },
      {
        grown: (grown) => {
          this.panels.grown();
          this.analyses.grown(grown);
        },
        leaving: writeAddress,
        say,
      },
    );
    this.keyboard = new Keyboard(
      { stage: this.stage, navigation: this.navigation, search: this.search, input: this.topbar.input, help, sharing: sharing.element },
      { note: () => this.panels.beginNote(), calm: () => this.say("") },
    );
    const { tabs } = this.panels;
    fill(
      root,
      this.topbar.element,
      notice.element,
      verdict.element,
      h("div", { class: "minimap-row" }, this.minimap.canvas),
      this.stage.element,
      splitter(root, tabs.element),
      tabs.element,
      this.sidebar.element,
      this.status,
      help,
      sharing.element,
    );
  }

  async begin(): Promise<void> {
    const trace = this.shown.first;
    document.title = `${this.overview.together ?? trace.overview.name} · gapscope`;
    this.analyses.show();
    this.topbar.colouring(this.look.colouring);
    this.recording.show();
    this.view.onChange((change) => {
      if (change === "range" || change === "selection" || change === "event") this.address.later();
      if (change === "selection") this.panels.compare.selected();
      if (change !== "event" && change !== "data" && change !== "notes") return;
      this.search.tell();
      this.results.renew();
    });
    this.keyboard.listen();
    window.addEventListener("hashchange", () => void this.address.read(true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme(storedTheme()));
    const { arrangement } = this.stage.main;
    new Kept(this.source, this.overview, trace.number).follow(arrangement);
    arrangement.onChange(() => this.address.later());
    this.stage.main.draw();
    this.minimap.draw();
    requestAnimationFrame(() => requestAnimationFrame(() => this.mark("firstDraw")));
    // A file is opened with its own state, unless the address says another.
    if (this.overview.state && location.hash.length < 2) history.replaceState(null, "", `#${this.overview.state}`);
    // What the address says is shown from the first drawing on, before anybody can have gone elsewhere.
    const read = this.address.read(false);
    await Promise.all(this.traces.map((trace) => trace.loadStrings()));
    this.named = true;
    this.settle();
    this.stage.renew();
    this.changed();
    this.analyses.ask();
    await read;
    if (this.traces.length > 1 && !this.overview.together && !this.stage.comparing) {
      this.panels.tabs.show("compare");
      void this.comparing.start({ trace: 0, what: "all" }, { trace: 1, what: "all" });
    }
    // There is nothing that would come.
    if (trace.tracks.length === 0 && !trace.overview.live) this.dataCame();
    if (!this.source.file) void this.recording.follow(this.loader);
  }

  /** Shows what is picked in a view beside the main one. */
  private follow(view: View): void {
    this.sidebar.follow(view);
    view.onChange((change) => {
      if (change === "event") this.analyses.picked(view);
      if (change === "selection") this.panels.compare.selected();
    });
  }

  private dataCame(): void {
    this.stage.renew();
    this.changed();
    this.analyses.ask();
    if (!this.shown.first.findings) this.analyses.show();
    this.settle();
    if (!this.complete) return;
    requestAnimationFrame(() => requestAnimationFrame(() => this.mark("fullDraw")));
    // Their colours are those of what is drawn.
    this.sidebar.legend.show();
    this.panels.recolour();
  }

  /** Tells all views that there is more of their traces: those of other ranks and of a comparison too. */
  private changed(): void {
    for (const view of this.stage.views) view.changed("data");
  }

  /** Whether all work in sight is there. */
  private get complete(): boolean {
    return this.stage.timelines.every((timeline) => timeline.complete);
  }

  /** Colours that were seen stay, once all work in sight is there with its names. */
  private settle(): void {
    if (this.named && this.complete) this.look.settle();
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

  /** The search finds something else. */
  private searched(): void {
    this.panels.searched();
    this.results.renew();
    this.stage.renew();
    this.address.later();
  }

  /** Shows what an address says besides range, selection and event. */
  private show({ colouring, search, sql, panel, arranged, ...filters }: ViewState): void {
    this.panels.filters = filters;
    if (sql !== undefined) this.panels.sql.show(sql);
    if (arranged) this.stage.main.arrangement.read(arranged);
    if (colouring && colouring !== this.look.colouring) this.colour(colouring);
    if (search !== undefined && search !== this.topbar.input.value) this.search.for(search);
    if (panel && panel !== this.panels.tabs.shown) this.panels.tabs.show(panel);
  }

  private colour(by: Colouring): void {
    this.look.colouring = by;
    this.topbar.colouring(by);
    this.sidebar.legend.show();
    this.stage.renew();
    this.address.later();
  }

  private changeTheme(): void {
    const theme = this.look.theme === "dark" ? "light" : "dark";
    keepTheme(theme);
    this.applyTheme(theme);
  }

  private applyTheme(theme: Theme): void {
    this.setTheme(theme);
    this.stage.renew();
    this.minimap.draw();
    this.panels.themed();
    this.analyses.show();
    this.sidebar.recolour();
    this.results.renew();
  }

  private setTheme(theme: Theme): void {
    this.look.theme = theme;
    document.documentElement.dataset.theme = theme;
  }
}
