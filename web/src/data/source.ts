// Requests the page's data from the server of `gapscope view`, or from the saved page itself. `crates/view/PROTOCOL.md` describes the questions and
// the answers.

import type { Catalogue, Dependencies as DependenciesAnswer, Findings, Graph, Instances, Live, Missing, Neighbours, Note, NotesAnswer, Overview, RangeFindings, RanksAnswer, Row, SourceText, SqlAnswer, Strings, WorkComparison } from "../generated/protocol.ts";
import type { Range } from "../time/range.ts";
import { type Frame, readFrame } from "./frame.ts";

/** Where answers come from, by key: a path such as `t/0/strings`, in which the number is that of the trace. */
export interface Answers {
  /** True for a file, which has fewer answers than a server. */
  readonly file: boolean;
  /** The number of table rows in one answer. */
  readonly rowsInAnswer: number;
  /** Gets an answer. `signal` ends the wait, and with it the server's work. */
  bytes(key: string, query?: Record<string, string | number>, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Replaces the value of a key; a saved page cannot be changed. */
  put?(key: string, value: unknown): Promise<ArrayBuffer>;
}

/** An answer is not available; the message is a sentence for the reader. */
export class Unanswered extends Error {}

/**
 * The answer would be about another edition of the trace than the page has: when recording ends, rows and strings are
 * numbered anew.
 */
export class Outdated extends Unanswered {}

/** The server's status for an outdated edition. */
const CONFLICT = 409;

/** All questions that the page asks. */
export class DataSource {
  private readonly blocks = new Map<string, Promise<Row[]>>();
  /** The edition that the page has of each live trace. Answers of another edition are refused. */
  private readonly editions = new Map<number, number>();
  constructor(private readonly answers: Answers) {}

  /** Makes later questions about a trace ask for this edition only. */
  expect(trace: number, edition: number): void {
    this.editions.set(trace, edition);
  }

  /** Returns the key of an answer about a trace, and the query with the edition that is expected, if there is one. */
  private request(trace: number, key: string, query: Record<string, string | number> = {}): [string, Record<string, string | number>] {
    const edition = this.editions.get(trace);
    return [`t/${trace}/${key}`, edition === undefined ? query : { edition, ...query }];
  }

  get file(): boolean {
    return this.answers.file;
  }

  private async json<T>(key: string, query?: Record<string, string | number>, signal?: AbortSignal): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.answers.bytes(key, query, signal))) as T;
  }

  private async frame(key: string, query?: Record<string, string | number>): Promise<Frame> {
    return readFrame(await this.answers.bytes(key, query));
  }

  overview(): Promise<Overview> {
    return this.json("overview");
  }
  /** The strings of a trace from index `after` on, which other answers refer to by index. */
  strings(trace: number, after: number, edition?: number): Promise<Strings> {
    return this.json(...this.request(trace, "strings", edition === undefined ? { after } : { after, edition }));
  }
  /** The rows of a track that came after generation `after` (a count of additions to a live trace); 0 for all. */
  track(trace: number, id: string, after: number): Promise<Frame> {
    return this.frame(...this.request(trace, `track/${id}`, { after }));
  }
  /** The part of a track in a range: rows, or slices where there are too many. */
  trackPart(trace: number, id: string, { from_ns, to_ns }: Range): Promise<Frame> {
    return this.frame(...this.request(trace, `track/${id}`, { from: Math.floor(from_ns), to: Math.ceil(to_ns) }));
  }
  /** The label paths of a track's rows, or of those in a part. */
  trackLabels(trace: number, id: string, part: Range | null): Promise<Frame> {
    return this.frame(...this.request(trace, `track/${id}/label`, part ? { from: part.from_ns, to: part.to_ns } : { after: 0 }));
  }
  counter(trace: number, id: string): Promise<Frame> {
    return this.frame(...this.request(trace, `counter/${id}`));
  }
  findings(trace: number): Promise<Findings> {
    return this.json(...this.request(trace, "findings"));
  }
  /** All samples of stacks. */
  code(trace: number): Promise<Frame> {
    return this.frame(...this.request(trace, "code"));
  }
  /** The samples in gaps. */
  idleCode(trace: number): Promise<Frame> {
    return this.frame(...this.request(trace, "code/idle"));
  }
  async row(trace: number, table: string, row: number): Promise<Row> {
    const each = this.answers.rowsInAnswer;
    if (each === 1) return this.json(...this.request(trace, `rows/${table}/${row}`));
    const key = `t/${trace}/rows/${table}/${Math.floor(row / each)}`;
    let block = this.blocks.get(key);
    if (!block) this.blocks.set(key, (block = this.json<Row[]>(key)));
    const found = (await block)[row % each];
    if (!found) throw new Unanswered(`This saved page has no row ${row} of ${table}.`);
    return found;
  }
  /** What the work of a row depends on, and what depends on it. */
  dependencies(trace: number, table: string, row: number): Promise<Neighbours | Missing> {
    return this.json(...this.request(trace, `dependencies/${table}/${row}`));
  }
  /**
   * The dependencies in a part of a trace or of a capture: in a range of time, from the node `first` on, or around a
   * row such as `dispatches.17`.
   */
  allDependencies(trace: number, { from_ns, to_ns, first, around }: { from_ns?: number; to_ns?: number; first?: number; around?: string }): Promise<DependenciesAnswer | Missing> {
    return this.json(
      ...this.request(trace, "dependencies", {
        ...(from_ns === undefined || to_ns === undefined ? {} : { from: Math.floor(from_ns), to: Math.ceil(to_ns) }),
        ...(first === undefined ? {} : { first }),
        ...(around === undefined ? {} : { around }),
      }),
    );
  }
  source(trace: number, kernel: number): Promise<SourceText | Missing> {
    return this.json(...this.request(trace, `source/${kernel}`));
  }
  range(trace: number, from_ns: number, to_ns: number): Promise<RangeFindings> {
    return this.json(...this.request(trace, "range", { from: Math.floor(from_ns), to: Math.ceil(to_ns) }));
  }
  /** The places where a label was set, at most 10,000. */
  instances(trace: number, label: string): Promise<Instances> {
    return this.json(...this.request(trace, "instances", { label }));
  }
  /** The folded dependency graph of a range, or of the whole trace. */
  graph(trace: number, range?: { from_ns: number; to_ns: number }): Promise<Graph | Missing> {
    return this.json(...this.request(trace, "graph", range ? { from: Math.floor(range.from_ns), to: Math.ceil(range.to_ns) } : {}));
  }
  notes(trace: number): Promise<NotesAnswer | Missing> {
    return this.json(...this.request(trace, "notes"));
  }
  /** Replaces all notes, unless they have been changed since `revision`. */
  async replaceNotes(trace: number, sent: { revision: string; notes: readonly Note[] }): Promise<NotesAnswer | Missing> {
    if (!this.answers.put) throw new Unanswered("A saved page cannot be changed.");
    return JSON.parse(new TextDecoder().decode(await this.answers.put(`t/${trace}/notes`, sent))) as NotesAnswer | Missing;
  }
  compare(sides: Record<string, string | number>): Promise<WorkComparison> {
    return this.json("compare", sides);
  }
  /** The ranks of the program, compared. */
  ranks(): Promise<RanksAnswer | Missing> {
    return this.json("ranks");
  }
  /** The rows of an SQL query over all traces. */
  query(sql: string, signal?: AbortSignal): Promise<SqlAnswer> {
    return this.json("query", { sql }, signal);
  }
  /** The queries that were run before, latest first. */
  queries(): Promise<{ queries: string[] }> {
    return this.json("queries");
  }
  /** Keeps a query for the next time. */
  async keepQuery(sql: string): Promise<void> {
    await this.answers.put?.("queries", sql);
  }
  /** Keeps the arrangement of a trace's tracks. */
  async keepArrangement(trace: number, arranged: object): Promise<void> {
    await this.answers.put?.(`t/${trace}/arrangement`, arranged);
  }
  /** The tables and the saved queries. */
  catalogue(): Promise<Catalogue> {
    return this.json("catalogue");
  }
  /** The only row of a table with these values, if there is one. */
  rowWith(trace: number, table: string, values: Record<string, string>): Promise<{ row: number } | Missing> {
    return this.json(...this.request(trace, `row/${table}`, values));
  }
  /** Waits until one of the traces has another generation than these, or there are more traces. */
  live(generations: readonly number[]): Promise<Live> {
    return this.json("live", { generations: generations.join(".") });
  }
}

/** The server that this page came from. */
export class ServerAnswers implements Answers {
  readonly file = false;
  readonly rowsInAnswer = 1;

  async bytes(key: string, query: Record<string, string | number> = {}, signal?: AbortSignal): Promise<ArrayBuffer> {
    const { answer, bytes } = await this.ask(key, query, signal && { signal });
    if (answer.ok) return bytes;
    if (answer.status === CONFLICT) throw new Outdated("Recording has ended meanwhile.");
    throw refused(answer, bytes);
  }

  async put(key: string, value: unknown): Promise<ArrayBuffer> {
    const { answer, bytes } = await this.ask(key, {}, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
    if (answer.ok) return bytes;
    throw refused(answer, bytes);
  }

  /** Sends a request. It throws only where no answer comes at all. */
  private async ask(key: string, query: Record<string, string | number>, how?: RequestInit): Promise<{ answer: Response; bytes: ArrayBuffer }> {
    const asked = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
    const path = key.split("/").map(encodeURIComponent).join("/");
    try {
      const answer = await fetch(`api/${path}${asked ? `?${asked}` : ""}`, how);
      return { answer, bytes: await answer.arrayBuffer() };
    } catch {
      throw new Unanswered("gapscope view does not answer any more: it was stopped. Start it again and open its new address.");
    }
  }
}

function refused(answer: Response, bytes: ArrayBuffer): Unanswered {
  return new Unanswered(problemIn(bytes) ?? `gapscope view refused this with status ${answer.status}.`);
}

/** Returns the sentence in a refusal; undefined where it is not JSON with an `error`. */
function problemIn(bytes: ArrayBuffer): string | undefined {
  try {
    return (JSON.parse(new TextDecoder().decode(bytes)) as { error?: string }).error;
  } catch {
    return undefined;
  }
}
