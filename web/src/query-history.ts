// Queries that were asked before, the latest first: kept by the server, whatever its port, or else by the browser.

import type { DataSource } from "./data/source.ts";

const STORAGE_KEY = "gapscope.queries";
const MAX_QUERIES = 30;

export class QueryHistory {
  /** The latest first. */
  all: readonly string[] = [];

  constructor(
    private readonly source: DataSource,
    /** Whether the server keeps them. */
    private readonly served: boolean,
  ) {}

  async load(): Promise<void> {
    const before = this.served ? (await this.source.queries().catch(() => ({ queries: [] }))).queries : foundHere();
    // Something may have been asked meanwhile.
    this.all = [...this.all, ...before.filter((sql) => !this.all.includes(sql))].slice(0, MAX_QUERIES);
  }

  add(sql: string): void {
    this.all = [sql, ...this.all.filter((one) => one !== sql)].slice(0, MAX_QUERIES);
    // What cannot be kept is there while the page is open.
    if (this.served) void this.source.keepQuery(sql).catch(() => undefined);
    else keepHere(this.all);
  }
}

function keepHere(all: readonly string[]): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(all));
  } catch {
    // As above.
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
