// The SQL panel: an editor, the saved and earlier queries, the tables, and the answer.

import { isMissing } from "../data/missing.ts";
import type { DataSource } from "../data/source.ts";
import { type Cell, type TraceClock, momentColumn, order, placeOf, type Reading, readings, shown, tableOf, identifyingValues, written } from "../data/sql.ts";
import type { Trace } from "../data/trace.ts";
import { fill, h, keepFocus } from "../dom.ts";
import { errorMessage } from "../error-message.ts";
import type { Catalogue, Missing, SqlAnswer } from "../generated/protocol.ts";
import { LatestRequest } from "../latest-request.ts";
import { QueryHistory } from "../query-history.ts";
import { plural } from "../time/format.ts";
import { type Column, Table } from "./table.ts";

const IN_FILE = "A saved page has no SQL. Open the trace with `gapscope view`, or use `gapscope query`.";
const UNKNOWN_TRACE = "This row may be from any of the traces. Add the column `trace` to the query.";
/** The most characters of a query's name in the list, and of a cell without a tooltip. */
const MAX_NAME_LENGTH = 60;

/** The place in a trace that a row of an answer leads to. */
export interface SqlPlace {
  trace: Trace;
  start_ns: number;
  duration_ns: number;
  /** The table of the row and the values that identify it there, where they are known. */
  row: { table: string; values: Record<string, string> } | null;
}

/** The panel. `open` is called when it is shown, and `show` with the query of an address. */
export class SqlPanel {
  readonly element = h("div", { class: "panel sql-panel" });
  private readonly saved = h("div");
  private readonly earlier = h("div");
  private readonly tables = h("div");
  private readonly editor = h("textarea", {
    class: "sql",
    rows: 2,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    "aria-label": "SQL",
    placeholder: "select kernel_name, start_ns, duration_ns from dispatches order by duration_ns desc limit 20",
    oninput: () => this.changed(),
    onkeydown: (event: Event) => this.key(event as KeyboardEvent),
  });
  private readonly runs = h("button", { type: "button", class: "primary", title: "Ctrl + Enter", onclick: () => void this.run() }, "Run");
  private readonly stops = h("button", { type: "button", hidden: true, title: "Escape", onclick: () => this.stop("The query was stopped.") }, "Stop");
  private readonly status = h("p", { class: "sql-status", role: "status" });
  private readonly warned = h("div", { class: "sql-warned", role: "alert", hidden: true });
  private readonly copies = h("span", { class: "sql-copies", hidden: true });
  private readonly result = h("div", { class: "sql-result" });
  private readonly history: QueryHistory;
  private readonly requests = new LatestRequest();
  /** Ends the running query; null while none runs. */
  private running: AbortController | null = null;
  /** The tables and saved queries; null until they have loaded. */
  private catalogue: Catalogue | null = null;
  private opened = false;
  /** Whether the editor has a query from an address that has not run yet. */
  private due = false;

  constructor(
    private readonly traces: readonly Trace[],
    private readonly source: DataSource,
    private readonly go: (place: SqlPlace) => void,
    /** Called when the text in the editor has changed, or was run. */
    private readonly changed: () => void,
    /** Whether the server keeps the queries. */
    served: boolean,
  ) {
    this.history = new QueryHistory(source, served);
    if (source.file) {
      fill(this.element, h("p", { class: "empty" }, IN_FILE));
      return;
    }
    fill(
      this.element,
      h(
        "div",
        { class: "split" },
        h("nav", { class: "sql-list", "aria-label": "Queries and tables", tabindex: "0" }, this.saved, this.earlier, this.tables),
        h("div", { class: "sql-asked" }, this.editor, h("div", { class: "panel-head" }, this.runs, this.stops, this.status, this.copies), this.warned, this.result),
      ),
    );
  }

  get sql(): string {
    return this.editor.value.trim();
  }

  /** Shows the query of an address, and runs it once the panel is visible. */
  show(sql: string): void {
    if (sql === this.sql) return;
    this.stop("");
    this.editor.value = sql;
    this.due = sql !== "";
    if (this.opened && this.element.isConnected) this.ask();
  }

  /** Loads the catalogue when the panel is opened, and runs a query that is due. */
  open(): void {
    if (this.source.file) return;
    if (!this.opened) void this.load();
    this.opened = true;
    this.ask();
  }

  /** Runs the query of an address that has not run yet. */
  private ask(): void {
    if (!this.due) return;
    this.due = false;
    void this.run();
  }

  /** Loads the catalogue and the earlier queries; after a failure the next opening tries again. */
  private async load(): Promise<void> {
    fill(this.saved, h("p", { class: "working" }, "Loading tables and queries…"));
    const [catalogue] = await Promise.all([this.source.catalogue().catch((error: unknown): Missing => ({ missing: errorMessage(error) })), this.history.load()]);
    this.fillEarlier();
    if (isMissing(catalogue)) {
      this.opened = false;
      this.element.dataset.catalogue = "missing";
      return fill(this.saved, h("p", { class: "problem" }, catalogue.missing));
    }
    this.catalogue = catalogue;
    this.fillCatalogue(catalogue);
    this.element.dataset.catalogue = "there";
  }

  private fillEarlier(): void {
    const { all } = this.history;
    keepFocus(this.earlier, () =>
      fill(
        this.earlier,
        all.length > 0 ? h("h2", { class: "part" }, "Earlier") : null,
        all.length > 0 ? h("ul", { class: "earlier" }, all.map((sql) => this.query(sql.replace(/\s+/g, " ").slice(0, MAX_NAME_LENGTH), "", sql))) : null,
      ),
    );
  }

  /** Makes the entry of a query, which runs it. */
  private query(name: string, meaning: string, sql: string): HTMLElement {
    return h("li", {}, h("button", { type: "button", class: "query", title: sql, onclick: () => this.choose(sql) }, h("b", {}, name), meaning ? h("span", { class: "note" }, meaning) : null));
  }

  private fillCatalogue({ saved, tables }: Catalogue): void {
    fill(this.saved, h("h2", { class: "part" }, "Saved queries"), h("ul", {}, saved.map(({ name, meaning, sql }) => this.query(name, meaning, sql))));
    fill(
      this.tables,
      h("h2", { class: "part" }, "Tables"),
      tables.map(({ name, meaning, columns }) =>
        h(
          "details",
          {},
          h("summary", { title: meaning }, name),
          h("p", { class: "note" }, meaning),
          h("ul", {}, columns.map((column) => h("li", {}, h("button", { type: "button", class: "query", title: `${column.type}. ${column.meaning}`, onclick: () => this.insert(column.name) }, column.name)))),
        ),
      ),
    );
  }

  /** Puts a query into the editor and runs it. */
  private choose(sql: string): void {
    this.editor.value = sql;
    void this.run();
  }

  private insert(text: string): void {
    const { selectionStart, selectionEnd } = this.editor;
    this.editor.setRangeText(text, selectionStart, selectionEnd, "end");
    this.editor.focus();
    this.changed();
  }

  /** Runs with Control and Enter, and with Escape stops the query or leaves the editor. */
  private key(event: KeyboardEvent): void {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.run();
    }
    if (event.key === "Escape") {
      event.preventDefault();
      if (this.running) this.stop("The query was stopped.");
      else this.runs.focus();
    }
  }

  /** Stops the running query; the server kills a query that nobody waits for. */
  private stop(text: string): void {
    this.requests.begin();
    this.running?.abort();
    this.busy(null);
    this.showStatus(text);
  }

  private busy(running: AbortController | null): void {
    this.running = running;
    this.stops.hidden = running === null;
    this.element.dataset.running = String(running !== null);
  }

  private showStatus(text: string, problem = false): void {
    this.status.classList.toggle("problem", problem);
    this.status.textContent = text;
  }

  /** Runs the query in the editor, after stopping another, and keeps it among the earlier ones. */
  private async run(): Promise<void> {
    const { sql } = this;
    if (sql === "") return this.showStatus("Write a query, or choose one.");
    this.due = false;
    this.stop("");
    const isLatest = this.requests.begin();
    this.busy(new AbortController());
    this.showStatus("Running…");
    this.warned.hidden = true;
    this.history.add(sql);
    this.fillEarlier();
    this.changed();
    try {
      const answer = await this.source.query(sql, this.running?.signal);
      if (!isLatest()) return;
      this.busy(null);
      this.answered(answer, sql);
    } catch (error) {
      if (!isLatest()) return;
      this.busy(null);
      this.copies.hidden = true;
      fill(this.result);
      this.element.dataset.rows = "";
      this.showStatus(errorMessage(error), true);
    }
  }

  /** Shows an answer as a table, whose rows lead to the timeline where a column is a moment. */
  private answered(answer: SqlAnswer, sql: string): void {
    const { rows, more, took_ms, missing } = answer;
    const clockOf = (row: Cell[]): TraceClock | null => this.traceOf(answer, row)?.overview ?? null;
    const read = readings(answer, this.catalogue, clockOf);
    const leads = momentColumn(answer, read);
    const table = new Table<Cell[]>({
      name: "Answer",
      sorted: -1,
      empty: "The query has no rows.",
      ...(leads === null ? {} : { pick: (row: Cell[]) => this.pick(answer, read, row, sql) }),
      columns: answer.columns.map((column, at) => this.column(column.name, at, read[at], at === leads, clockOf)),
    });
    table.show(rows);
    this.showStatus(`${more ? "the first " : ""}${plural(rows.length, "row", "rows")}${more ? ", there are more" : ""}, ${(took_ms / 1000).toFixed(2)} s`);
    this.element.dataset.rows = String(rows.length);
    this.warned.hidden = missing.length === 0;
    fill(this.warned, missing.map((text) => h("p", {}, text)));
    this.copies.hidden = rows.length === 0;
    fill(this.copies, this.copy("Copy CSV", () => written(answer, table.all, ",")), this.copy("Copy TSV", () => written(answer, table.all, "\t")));
    fill(this.result, table.element);
  }

  /** Makes a column of the answer; `leads` is true of the one whose values lead to the timeline. */
  private column(name: string, at: number, reading: Reading, leads: boolean, clockOf: (row: Cell[]) => TraceClock | null): Column<Cell[]> {
    return {
      head: name,
      ...(reading === "moment" || reading === "from-start" ? { tooltip: "From the start of the trace, as everywhere on the page." } : {}),
      text: (row) => {
        const cell = row[at];
        if (cell === null) return h("span", { class: "null" }, "NULL");
        const text = shown(cell, reading, clockOf(row));
        return leads || reading === "name" ? text : h("span", { class: "cell", title: text === cell && cell.length < MAX_NAME_LENGTH ? null : cell }, text);
      },
      sort: (row) => order(row[at], reading),
      number: reading !== "text",
      leads,
    };
  }

  private copy(name: string, text: () => string): HTMLElement {
    const button = h(
      "button",
      {
        type: "button",
        onclick: () =>
          void navigator.clipboard.writeText(text()).then(
            () => (button.textContent = "Copied"),
            () => this.showStatus("The browser does not allow copying.", true),
          ),
        onblur: () => (button.textContent = name),
      },
      name,
    );
    return button;
  }

  /** Returns the trace that a row is from: the one that it names, or the only one. */
  private traceOf({ columns, traces }: SqlAnswer, row: Cell[]): Trace | null {
    if (this.traces.length === 1) return this.traces[0];
    const at = columns.findIndex(({ name }) => name === "trace");
    return (at < 0 ? null : this.traces[traces.indexOf(row[at] ?? "")]) ?? null;
  }

  /** Goes to the place of a row, or says why it has none. */
  private pick(answer: SqlAnswer, read: readonly Reading[], row: Cell[], sql: string): void {
    const trace = this.traceOf(answer, row);
    if (!trace) return this.showStatus(UNKNOWN_TRACE, true);
    const { origin_ns } = trace.overview;
    const place = placeOf(answer, read, row, origin_ns);
    if (!place) return this.showStatus("This row has no time.", true);
    const table = tableOf(sql, this.catalogue?.tables.map(({ name }) => name) ?? []);
    this.go({ trace, ...place, row: table === null ? null : { table, values: identifyingValues(answer, row, origin_ns) } });
  }
}
