// Where the page's data comes from: the server of `gapscope view`, or the file that it is in.

import type {
  Comparison,
  Dependencies,
  Findings,
  Graph,
  Instances,
  Live,
  Missing,
  Overview,
  RangeFindings,
  Row,
  Source,
  Strings,
} from "./answers.ts";
import { type Frame, readFrame } from "./frame.ts";

/** Something that gives answers by their key. */
export interface Answers {
  /** True for a file, which has fewer answers than a server. */
  readonly file: boolean;
  /** Rows of a table that one answer has. */
  readonly rowsInAnswer: number;
  bytes(key: string, query?: Record<string, string | number>): Promise<ArrayBuffer>;
}

/** Why an answer is not there, in a sentence for the reader. */
export class Unanswered extends Error {}

/** What can be asked. */
export class DataSource {
  private readonly blocks = new Map<string, Promise<Row[]>>();
  constructor(private readonly answers: Answers) {}

  get file(): boolean {
    return this.answers.file;
  }

  private async json<T>(key: string, query?: Record<string, string | number>): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.answers.bytes(key, query))) as T;
  }

  private async frame(key: string, query?: Record<string, string | number>): Promise<Frame> {
    return readFrame(await this.answers.bytes(key, query));
  }

  overview(): Promise<Overview> {
    return this.json("overview");
  }
  strings(trace: number, after: number): Promise<Strings> {
    return this.json(`t/${trace}/strings`, { after });
  }
  track(trace: number, id: string, after: number): Promise<Frame> {
    return this.frame(`t/${trace}/track/${id}`, { after });
  }
  trackLabels(trace: number, id: string, after: number): Promise<Frame> {
    return this.frame(`t/${trace}/track/${id}/label`, { after });
  }
  counter(trace: number, id: string): Promise<Frame> {
    return this.frame(`t/${trace}/counter/${id}`);
  }
  findings(trace: number): Promise<Findings> {
    return this.json(`t/${trace}/findings`);
  }
  async row(trace: number, table: string, row: number): Promise<Row> {
    const each = this.answers.rowsInAnswer;
    if (each === 1) return this.json(`t/${trace}/rows/${table}/${row}`);
    const key = `t/${trace}/rows/${table}/${Math.floor(row / each)}`;
    let block = this.blocks.get(key);
    if (!block) this.blocks.set(key, (block = this.json<Row[]>(key)));
    const found = (await block)[row % each];
    if (!found) throw new Unanswered(`This file has no row ${row} of ${table}.`);
    return found;
  }
  dependencies(trace: number, table: string, row: number): Promise<Dependencies | Missing> {
    return this.json(`t/${trace}/dependencies/${table}/${row}`);
  }
  source(trace: number, kernel: number): Promise<Source | Missing> {
    return this.json(`t/${trace}/source/${kernel}`);
  }
  range(trace: number, from_ns: number, to_ns: number): Promise<RangeFindings> {
    return this.json(`t/${trace}/range`, { from: Math.floor(from_ns), to: Math.ceil(to_ns) });
  }
  instances(trace: number, label: string): Promise<Instances> {
    return this.json(`t/${trace}/instances`, { label });
  }
  graph(trace: number, range?: { from_ns: number; to_ns: number }): Promise<Graph | Missing> {
    return this.json(`t/${trace}/graph`, range ? { from: Math.floor(range.from_ns), to: Math.ceil(range.to_ns) } : {});
  }
  compare(sides: Record<string, string | number>): Promise<Comparison> {
    return this.json("compare", sides);
  }
  live(trace: number, generation: number): Promise<Live> {
    return this.json(`t/${trace}/live`, { generation });
  }
}

/** The server that this page came from. */
export class ServerAnswers implements Answers {
  readonly file = false;
  readonly rowsInAnswer = 1;

  async bytes(key: string, query: Record<string, string | number> = {}): Promise<ArrayBuffer> {
    const asked = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
    const path = key.split("/").map(encodeURIComponent).join("/");
    let answer: Response;
    try {
      answer = await fetch(`api/${path}${asked ? `?${asked}` : ""}`);
    } catch {
      throw new Unanswered("gapscope view does not answer any more: it was stopped. Start it again and open its new address.");
    }
    const bytes = await answer.arrayBuffer();
    if (answer.ok) return bytes;
    throw new Unanswered(complaint(bytes) ?? `gapscope view refused this with status ${answer.status}.`);
  }
}

function complaint(bytes: ArrayBuffer): string | undefined {
  try {
    return (JSON.parse(new TextDecoder().decode(bytes)) as { error?: string }).error;
  } catch {
    return undefined;
  }
}
