// Where the page's data comes from: the server of `gapscope view`, or the file that it is in. What can be asked, and the shapes of the answers, are
// those of `crates/view/PROTOCOL.md`.

import type { Range } from "../time/range.ts";
import type { Comparison, Instances } from "./comparison.ts";
import type { DependenciesAnswer } from "./dependencies.ts";
import type { Findings, RangeFindings } from "./findings.ts";
import { type Frame, readFrame } from "./frame.ts";
import type { Graph } from "./graph.ts";
import type { Missing } from "./missing.ts";
import type { Note, NotesAnswer } from "./notes.ts";
import type { Live, Overview } from "./overview.ts";
import type { RankFindings } from "./ranks.ts";
import type { Dependencies, Row, Source } from "./row.ts";
import type { Catalogue, SqlAnswer } from "./sql.ts";

export interface Strings {
  from: number;
  strings: string[];
}

/** Something that gives answers by their key. */
export interface Answers {
  /** True for a file, which has fewer answers than a server. */
  readonly file: boolean;
  /** Rows of a table that one answer has. */
  readonly rowsInAnswer: number;
  /** `signal` ends the wait, and with it what a server does for the answer. */
  bytes(key: string, query?: Record<string, string | number>, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Replaces what there is under a key; a file is not changed. */
  put?(key: string, value: unknown): Promise<ArrayBuffer>;
}

/** Why an answer is not there, in a sentence for the reader. */
export class Unanswered extends Error {}

/** The answer would be of another edition of the trace than the page has. */
export class Outdated extends Unanswered {}

/** The server's status for that. */
const CONFLICT = 409;

/** What can be asked. */
export class DataSource {
  private readonly blocks = new Map<string, Promise<Row[]>>();
  /** Of traces that are recorded: the edition that the page has. Answers of another are refused. */
  private readonly editions = new Map<number, number>();
  constructor(private readonly answers: Answers) {}

  /** Asks from now on for answers of this edition of a trace only. */
  expect(trace: number, edition: number): void {
    this.editions.set(trace, edition);
  }

  /** The key of something of a trace, and the query with the edition. */
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
  strings(trace: number, after: number, edition?: number): Promise<Strings> {
    return this.json(...this.request(trace, "strings", edition === undefined ? { after } : { after, edition }));
  }
  track(trace: number, id: string, after: number): Promise<Frame> {
    return this.frame(...this.request(trace, `track/${id}`, { after }));
  }
  /** What of a track is in a range: rows, or slices where they are too many. */
  trackPart(trace: number, id: string, { from_ns, to_ns }: Range): Promise<Frame> {
    return this.frame(...this.request(trace, `track/${id}`, { from: Math.floor(from_ns), to: Math.ceil(to_ns) }));
  }
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
    if (!found) throw new Unanswered(`This file has no row ${row} of ${table}.`);
    return found;
  }
  dependencies(trace: number, table: string, row: number): Promise<Dependencies | Missing> {
    return this.json(...this.request(trace, `dependencies/${table}/${row}`));
  }
  /** What depends on what in a part of a trace or of a capture. */
  allDependencies(trace: number, { from_ns, to_ns, first, around }: { from_ns?: number; to_ns?: number; first?: number; around?: string }): Promise<DependenciesAnswer | Missing> {
    return this.json(
      ...this.request(trace, "dependencies", {
        ...(from_ns === undefined || to_ns === undefined ? {} : { from: Math.floor(from_ns), to: Math.ceil(to_ns) }),
        ...(first === undefined ? {} : { first }),
        ...(around === undefined ? {} : { around }),
      }),
    );
  }
  source(trace: number, kernel: number): Promise<Source | Missing> {
    return this.json(...this.request(trace, `source/${kernel}`));
  }
  range(trace: number, from_ns: number, to_ns: number): Promise<RangeFindings> {
    return this.json(...this.request(trace, "range", { from: Math.floor(from_ns), to: Math.ceil(to_ns) }));
  }
  instances(trace: number, label: string): Promise<Instances> {
    return this.json(...this.request(trace, "instances", { label }));
  }
  graph(trace: number, range?: { from_ns: number; to_ns: number }): Promise<Graph | Missing> {
    return this.json(...this.request(trace, "graph", range ? { from: Math.floor(range.from_ns), to: Math.ceil(range.to_ns) } : {}));
  }
  notes(trace: number): Promise<NotesAnswer | Missing> {
    return this.json(...this.request(trace, "notes"));
  }
  /** Replaces all notes, unless they have been changed since `revision`. */
  async replaceNotes(trace: number, sent: { revision: string; notes: readonly Note[] }): Promise<NotesAnswer | Missing> {
    if (!this.answers.put) throw new Unanswered("This file is not changed.");
    return JSON.parse(new TextDecoder().decode(await this.answers.put(`t/${trace}/notes`, sent))) as NotesAnswer | Missing;
  }
  compare(sides: Record<string, string | number>): Promise<Comparison> {
    return this.json("compare", sides);
  }
  /** The ranks of the program, compared. */
  ranks(): Promise<RankFindings | Missing> {
    return this.json("ranks");
  }
  /** The rows that SQL has over all traces. */
  query(sql: string, signal?: AbortSignal): Promise<SqlAnswer> {
    return this.json("query", { sql }, signal);
  }
  /** Queries that were asked before, the latest first. */
  queries(): Promise<{ queries: string[] }> {
    return this.json("queries");
  }
  /** Keeps a query for the next time. */
  async keepQuery(sql: string): Promise<void> {
    await this.answers.put?.("queries", sql);
  }
  /** Keeps how the tracks of a trace are arranged. */
  async keepArrangement(trace: number, arranged: object): Promise<void> {
    await this.answers.put?.(`t/${trace}/arrangement`, arranged);
  }
  /** Tables and saved queries. */
  catalogue(): Promise<Catalogue> {
    return this.json("catalogue");
  }
  /** The only row of a table with these values, if there is one. */
  rowWith(trace: number, table: string, values: Record<string, string>): Promise<{ row: number } | Missing> {
    return this.json(...this.request(trace, `row/${table}`, values));
  }
  /** Waits until one of the traces has another generation than these, or a trace more is there. */
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
    if (answer.status === CONFLICT) throw new Outdated("The recording was completed meanwhile.");
    throw refused(answer, bytes);
  }

  async put(key: string, value: unknown): Promise<ArrayBuffer> {
    const { answer, bytes } = await this.ask(key, {}, { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
    if (answer.ok) return bytes;
    throw refused(answer, bytes);
  }

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
  return new Unanswered(complaint(bytes) ?? `gapscope view refused this with status ${answer.status}.`);
}

function complaint(bytes: ArrayBuffer): string | undefined {
  try {
    return (JSON.parse(new TextDecoder().decode(bytes)) as { error?: string }).error;
  } catch {
    return undefined;
  }
}
