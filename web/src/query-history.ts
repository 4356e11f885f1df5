// The SQL queries that the reader ran before, latest first: kept by the server, or else by the browser.

import type { DataSource } from "./data/source.ts";

const STORAGE_KEY = "gapscope.queries";
const MAX_QUERIES = 30;

/** The list; `load` fetches the earlier queries. */
export class QueryHistory {
  all: readonly string[] = [];

  constructor(
    private readonly source: DataSource,
    /** Whether the server keeps the queries. */
    private readonly served: boolean,
  ) {}

  /** Adds the kept queries after those of this page. */
  async load(): Promise<void> {
    const before = this.served ? (await this.source.queries().catch(() => ({ queries: [] }))).queries : foundHere();
    // A query may have been added while the history was loading.
    this.all = [...this.all, ...before.filter((sql) => !this.all.includes(sql))].slice(0, MAX_QUERIES);
  }

  /** Puts a query at the head of the list, and keeps it for the next time. */
  add(sql: string): void {
    this.all = [sql, ...this.all.filter((one) => one !== sql)].slice(0, MAX_QUERIES);
    // A query that cannot be kept stays in the list until the page is closed.
    if (this.served) void this.source.keepQuery(sql).catch(() => undefined);
    else keepHere(this.all);
  }
}

function keepHere(all: readonly string[]): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(all));
  } catch {
    // Without storage the list lasts until the page is closed.
  }
}

function foundHere(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
