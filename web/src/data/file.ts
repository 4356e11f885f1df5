// The answers inside a saved page, which `gapscope report --html` makes: a container with a header, which names the
// place of each answer, and the answers behind it.

import { readHeader } from "./frame.ts";
import { type Answers, Unanswered } from "./source.ts";

/** The id of the page's element that holds the container. */
export const ELEMENT = "gapscope-data";

/** Finds answers in a saved page; it refuses what the page does not have, with `Unanswered`. */
export class FileAnswers implements Answers {
  readonly file = true;
  readonly rowsInAnswer = 256;

  private constructor(
    private readonly buffer: ArrayBuffer,
    /** The place of each answer by key, from the end of the header. */
    private readonly answers: Record<string, [offset: number, length: number]>,
    /** The offset of the first byte after the header. */
    private readonly at: number,
  ) {}

  /** Decodes the text of the element, which is gzip in base64. */
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
    // A page may have several comparisons, told apart by their sides; other answers have no parameters here.
    const key = asked === "compare" ? `${asked}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}` : asked;
    const place = Object.hasOwn(this.answers, key) ? this.answers[key] : undefined;
    if (!place) throw new Unanswered("This saved page does not have that: open the trace with `gapscope view`.");
    return this.buffer.slice(this.at + place[0], this.at + place[0] + place[1]);
  }
}
