// A sortable table for many rows, which are added as the reader scrolls.

import { fill, h } from "../dom.ts";
import type { Loadable } from "./loadable.ts";
import { tsv } from "./tsv.ts";

export interface Column<Row> {
  head: string;
  /** A description, shown as the heading's tooltip. */
  tooltip?: string;
  text: (row: Row) => string | Node;
  /** Returns the value to sort by; a column without this function cannot be sorted. `null` is unknown and comes last. */
  sort?: (row: Row) => number | string | null;
  /** Whether the column has numbers: they are aligned to the right, and the first click on the heading sorts them in descending order. */
  number?: boolean;
  /** Whether the column takes the remaining room. */
  wide?: boolean;
  /** Whether the text of the button that picks a row wraps instead of being cut, because names may differ only at their end. */
  whole?: boolean;
  /** Whether narrow panels leave the column out; its values then belong into the row's note, too. */
  spare?: boolean;
  /** Whether the column has the button that picks a row; without such a column the wide column has it, or else the last. A table has at most one column that is wide or leads. */
  leads?: boolean;
}

export interface TableOptions<Row> {
  name: string;
  columns: Column<Row>[];
  /** The column that is sorted first, in descending order; -1 for none. */
  sorted: number;
  /** Called with the row that the reader clicks; without this function rows cannot be picked. */
  pick?: (row: Row) => void;
  /** Returns a note that is shown below a row, across all columns. */
  note?: (row: Row) => Node | null;
  /** The sentence in place of the table, once it is known that there are no rows. */
  empty: string;
}

const ROWS_AT_ONCE = 100;

/** The texts of all tables, by their elements. */
const TABLES = new WeakMap<Element, () => string>();

/** Returns the tables of a panel that have rows and are shown as tab-separated text, an empty line between them; "" where there is none. */
export function copiedTables(panel: Element): string {
  const shown = [...panel.querySelectorAll(".table")].filter((element) => element.checkVisibility() && element.querySelector("tbody tr"));
  return shown.map((element) => TABLES.get(element)?.() ?? "").filter(Boolean).join("\n");
}

/** Shows rows in columns, sorted by the column whose heading the reader clicks. Only some rows are in the document; scrolling adds more. */
export class Table<Row> {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private sorted: number;
  private down = true;
  private shown = 0;
  private readonly body = h("tbody");
  private readonly heads: HTMLElement[];
  private readonly none: HTMLElement;
  /** Names the columns that are left out because their value is unknown for each row. */
  private readonly left_out = h("p", { class: "note left-out", hidden: true });
  /** For each column, whether it is left out because no row has a value in it. */
  private blank: boolean[] = [];
  private readonly table: HTMLTableElement;
  private emptyText: string;

  constructor(private readonly options: TableOptions<Row>) {
    this.sorted = options.sorted;
    this.heads = options.columns.map((column, number) =>
      h(
        "th",
        { scope: "col", class: classes(column), title: column.tooltip, "aria-sort": "none" },
        column.sort ? h("button", { type: "button", onclick: () => this.sortBy(number) }, column.head) : column.head,
      ),
    );
    this.emptyText = options.empty;
    this.none = h("p", { class: "empty" });
    this.table = h("table", { "aria-label": options.name }, h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.element = h("div", { class: "table", onscroll: () => this.more(), tabindex: "-1" }, this.table, this.left_out, this.none);
    TABLES.set(this.element, () => this.copied);
    this.take({ state: "loading", message: "" });
  }

  get all(): readonly Row[] {
    return this.rows;
  }

  /** Returns the headings and all rows, those that are not in the document included, as tab-separated text. */
  get copied(): string {
    const columns = this.options.columns.filter((_, number) => !this.blank[number]);
    const texts = this.rows.map((row) => columns.map(({ text }) => textOf(text(row))));
    return tsv([columns.map(({ head }) => head), ...texts]);
  }

  /** Sets the sentence in place of a table without rows. */
  set empty(sentence: string) {
    this.emptyText = sentence;
  }

  /** Shows rows, or why there are none yet; `none` replaces the sentence for an empty table. */
  take(rows: Loadable<readonly Row[]>, none: string | null = null): void {
    this.show(rows.state === "loaded" ? rows.value : []);
    if (none !== null) fill(this.none, none);
    if (rows.state === "loaded") return;
    this.none.className = rows.state === "missing" ? "problem" : "working";
    fill(this.none, rows.message);
  }

  /** Shows other rows; the scroll position stays, and the focus stays on its row. */
  show(rows: readonly Row[]): void {
    const { scrollTop } = this.element;
    const focused = this.focused();
    const { shown } = this;
    this.none.className = "empty";
    fill(this.none, this.emptyText);
    this.rows = [...rows];
    this.leaveOut();
    this.sort();
    while (this.shown < Math.min(shown, this.rows.length)) this.add();
    this.element.scrollTop = scrollTop;
    if (focused) this.focus(focused);
  }

  /** Leaves out the columns in which no row has a value, and says which of them are unknown. */
  private leaveOut(): void {
    const { columns } = this.options;
    const valueless = ({ text }: Column<Row>, absent: readonly string[]): boolean =>
      this.rows.length > 0 &&
      this.rows.every((row) => {
        const value = text(row);
        return typeof value === "string" && absent.includes(value);
      });
    this.blank = columns.map((column) => !column.wide && !column.leads && valueless(column, ["unknown", "–", ""]));
    this.heads.forEach((head, number) => (head.hidden = this.blank[number]));
    const unknown = columns.filter((column, number) => this.blank[number] && !valueless(column, ["–", ""])).map(({ head }) => head);
    this.left_out.hidden = unknown.length === 0;
    this.left_out.textContent = `Unknown for ${this.rows.length === 1 ? "this row" : "all rows"}: ${unknown.join(", ")}.`;
  }

  /** Returns the text of the focused row and of its button. */
  private focused(): { row: string; button: string } | null {
    const button = document.activeElement;
    const row = this.body.contains(button) ? button?.closest("tr") : null;
    return row ? { row: row.textContent ?? "", button: button?.textContent ?? "" } : null;
  }

  /** Focuses the row with the same text or the same button, since its figures may have changed; without one, the table. */
  private focus({ row, button }: { row: string; button: string }): void {
    const rows = [...this.body.rows];
    const same = rows.find(({ textContent }) => textContent === row) ?? rows.find((one) => one.querySelector("button")?.textContent === button);
    (same?.querySelector("button") ?? this.element).focus({ preventScroll: true });
  }

  private sortBy(number: number): void {
    this.down = this.sorted === number ? !this.down : (this.options.columns[number].number ?? false);
    this.sorted = number;
    this.sort();
  }

  private sort(): void {
    const { columns } = this.options;
    const by = columns[this.sorted]?.sort;
    if (by) this.rows = sorted(this.rows, by, this.down);
    this.heads.forEach((head, number) =>
      head.setAttribute("aria-sort", number !== this.sorted ? "none" : this.down ? "descending" : "ascending"),
    );
    this.none.hidden = this.rows.length > 0;
    this.table.hidden = this.rows.length === 0;
    this.element.dataset.rows = String(this.rows.length);
    this.shown = 0;
    fill(this.body);
    this.element.scrollTop = 0;
    this.add();
  }

  private more(): void {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    if (scrollTop + clientHeight > scrollHeight - 400) this.add();
  }

  private add(): void {
    const { columns, pick } = this.options;
    const leading = Math.max(columns.findIndex(({ leads }) => leads), columns.findIndex(({ wide }) => wide));
    const until = Math.min(this.rows.length, this.shown + ROWS_AT_ONCE);
    for (; this.shown < until; this.shown += 1) {
      const row = this.rows[this.shown];
      const cells = columns.map((column, number) => {
        const text = column.text(row);
        const first = number === (leading + columns.length) % columns.length;
        const inner = pick && first ? h("button", { type: "button", class: column.whole ? "pick" : "pick clip", title: typeof text === "string" ? text : null }, text) : text;
        return h("td", { class: classes(column), hidden: this.blank[number], title: column.wide && typeof text === "string" ? text : null }, inner);
      });
      const note = this.options.note?.(row);
      const picks = pick ? { class: note ? "picks noted" : "picks", onclick: () => pick(row) } : {};
      this.body.append(h("tr", picks, cells));
      if (note) this.body.append(h("tr", { ...picks, class: pick ? "picks note-row" : "note-row" }, h("td", { colspan: columns.length }, note)));
    }
  }
}

function textOf(content: string | Node): string {
  return typeof content === "string" ? content : (content.textContent ?? "");
}

function classes<Row>(column: Column<Row>): string {
  return [column.number ? "number" : "", column.wide ? "wide" : "", column.spare ? "spare" : ""].filter(Boolean).join(" ");
}

/** Sorts rows stably; unknown values come last in either direction. */
export function sorted<Row>(rows: readonly Row[], by: (row: Row) => number | string | null, down: boolean): Row[] {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return x < y ? -sign : x > y ? sign : 0;
  });
}
