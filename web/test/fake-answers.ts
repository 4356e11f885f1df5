// A FAKE of the server's answers with a made-up trace whose numbers are known. The tests in `browser/` ask the real server.

import type { Answers } from "../src/data/source.ts";
import { Unanswered } from "../src/data/source.ts";
import type { Manifest, TraceOverview, TrackOverview } from "../src/generated/protocol.ts";

const ENCODER = new TextEncoder();

export type Event = { start: number; duration: number; name: number; row: number; label?: number };

/** Encodes a frame as the server does. */
export function frame(header: Record<string, unknown>, columns: Record<string, Float64Array | Uint32Array | Uint8Array>): ArrayBuffer {
  const types = { Float64Array: "f64", Uint32Array: "u32", Uint8Array: "u8" } as Record<string, string>;
  let at = 0;
  const list = Object.entries(columns).map(([name, values]) => {
    const offset = at;
    at = Math.ceil((at + values.byteLength) / 8) * 8;
    return { name, type: types[values.constructor.name], offset };
  });
  const rows = Object.values(columns)[0].length;
  return container({ rows, columns: list, ...header }, at, (bytes, from) =>
    Object.values(columns).forEach((values, number) =>
      bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), from + list[number].offset),
    ),
  );
}

function container(header: unknown, size: number, write: (bytes: Uint8Array, from: number) => void): ArrayBuffer {
  let text = JSON.stringify(header);
  while ((8 + ENCODER.encode(text).length) % 8 !== 0) text += " ";
  const head = ENCODER.encode(text);
  const bytes = new Uint8Array(8 + head.length + size);
  bytes.set(ENCODER.encode("GSC1"));
  new DataView(bytes.buffer).setUint32(4, head.length, true);
  bytes.set(head, 8);
  write(bytes, 8 + head.length);
  return bytes.buffer;
}

/** Encodes the container of a saved page, as `gapscope report --html` does before it compresses it. */
export function packed(answers: Map<string, ArrayBuffer>): ArrayBuffer {
  let at = 0;
  const places: Record<string, [number, number]> = {};
  for (const [key, value] of answers) {
    places[key] = [at, value.byteLength];
    at = Math.ceil((at + value.byteLength) / 8) * 8;
  }
  return container({ answers: places }, at, (bytes, from) => {
    for (const [key, value] of answers) bytes.set(new Uint8Array(value), from + places[key][0]);
  });
}

export function trackFrame(lanes: Event[][], tables: string[], generation = 1): ArrayBuffer {
  const all = lanes.flat();
  let at = 0;
  const bounds = [0, ...lanes.map((lane) => (at += lane.length))];
  return frame(
    { lanes: bounds, tables, generation },
    {
      start: Float64Array.from(all, (event) => event.start),
      duration: Uint32Array.from(all, (event) => event.duration),
      name: Uint8Array.from(all, (event) => event.name),
      row: Uint32Array.from(all, (event) => event.row),
    },
  );
}

export function json(value: unknown): ArrayBuffer {
  return ENCODER.encode(JSON.stringify(value)).buffer;
}

/** Answers from a map by key, and ignores the query. */
export class FakeAnswers implements Answers {
  readonly file = false;
  readonly rowsInAnswer = 1;
  readonly asked: string[] = [];
  constructor(readonly answers: Map<string, ArrayBuffer>) {}
  async bytes(key: string, query: Record<string, string | number> = {}): Promise<ArrayBuffer> {
    this.asked.push(`${key}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`);
    const found = this.answers.get(key);
    if (!found) throw new Unanswered(`nothing is known of ${key}`);
    return found;
  }
}

export function trackOverview(id: string, kind: TrackOverview["kind"] = "work", busy: string | null = null): TrackOverview {
  return { id, group: "g0", kind, name: id, rows: 3, untimed: 0, queue: 1, process: null, thread: null, only_call: null, counter: null, busy };
}

export function traceOverview(tracks: TrackOverview[], more: Partial<TraceOverview> = {}): TraceOverview {
  return {
    name: "made",
    generation: 1,
    edition: 1,
    live: false,
    complete: true,
    origin_ns: "0",
    start_unix_ns: null,
    duration_ns: 100,
    extent: [0, 100],
    sampling_mode: "dispatch",
    clock_error_ns: null,
    manifest: {} as Manifest,
    tables: [],
    losses: [],
    remarks: [],
    unread: [],
    causes: [],
    calls: [],
    transfer_names: [0, 0],
    code: null,
    groups: [{ id: "g0", kind: "gpu", name: "GPU" }],
    tracks,
    ...more,
  };
}

export const LANES = [
  [
    { start: 0, duration: 10, name: 0, row: 0 },
    { start: 10, duration: 5, name: 1, row: 1 | (1 << 30) },
  ],
  [{ start: 4, duration: 20, name: 1, row: 2 }],
];

/** Holds back questions until a test answers them. */
export class HeldAnswers implements Answers {
  readonly file = false;
  readonly rowsInAnswer = 1;
  private readonly held: { key: string; query: Record<string, string | number>; give: (answer: ArrayBuffer) => void; fail: (error: Error) => void }[] = [];
  private asked: () => void = () => undefined;

  bytes(key: string, query: Record<string, string | number> = {}): Promise<ArrayBuffer> {
    return new Promise((give, fail) => {
      this.held.push({ key, query, give, fail });
      this.asked();
    });
  }

  /** The keys of the questions that wait. */
  get waiting(): string[] {
    return this.held.map(({ key }) => key);
  }

  /** Waits for a question with this key, and answers it. */
  async answer(key: string, answer: ArrayBuffer | Error | ((query: Record<string, string | number>) => ArrayBuffer)): Promise<Record<string, string | number>> {
    let at = this.held.findIndex((one) => one.key === key);
    while (at < 0) {
      await new Promise<void>((asked) => (this.asked = asked));
      at = this.held.findIndex((one) => one.key === key);
    }
    const [{ query, give, fail }] = this.held.splice(at, 1);
    if (answer instanceof Error) fail(answer);
    else give(typeof answer === "function" ? answer(query) : answer);
    return query;
  }
}
