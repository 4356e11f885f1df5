// The answers inside a page that `gapscope report --html` made.

import { readHeader } from "./frame.ts";
import { type Answers, Unanswered } from "./source.ts";

export const ELEMENT = "gapscope-data";

export class FileAnswers implements Answers {
  readonly file = true;
  readonly rowsInAnswer = 256;

  private constructor(
    private readonly buffer: ArrayBuffer,
    private readonly answers: Record<string, [offset: number, length: number]>,
    private readonly at: number,
  ) {}

  /** Opens what is in the element: gzip in base64. */
  static async open(text: string): Promise<FileAnswers> {
    const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return FileAnswers.fromBuffer(await new Response(unpacked).arrayBuffer());
  }

  static fromBuffer(buffer: ArrayBuffer): FileAnswers {
    const { header, at } = readHeader<{ answers: Record<string, [number, number]> }>(buffer);
    return new FileAnswers(buffer, header.answers, at);
  }

  async bytes(asked: string, query: Record<string, string | number> = {}): Promise<ArrayBuffer> {
    // Of a comparison it matters of what; other answers are whole.
    const key = asked === "compare" ? `${asked}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}` : asked;
    const place = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    if (!place) throw new Unanswered("This file does not have that: open the trace with `gapscope view`.");
    return this.buffer.slice(this.at + place[0], this.at + place[0] + place[1]);
  }
}
