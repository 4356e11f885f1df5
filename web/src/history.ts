// Queries that were asked before, kept by the browser, the latest first.

const KEY = "gapscope.queries";
const MOST = 30;

export class History {
  /** The latest first. */
  all: readonly string[] = read();

  add(sql: string): void {
    this.all = [sql, ...this.all.filter((one) => one !== sql)].slice(0, MOST);
    try {
      localStorage.setItem(KEY, JSON.stringify(this.all));
    } catch {
      // It is kept while the page is open.
    }
  }
}

function read(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
