// Measures texts on a canvas, and cuts them to the room that they have.

const ELLIPSIS = "…";
/** The least number of letters of a cut name. */
const MIN_LETTERS = 4;

/** Measures texts in the font of one context, and remembers their widths. */
export class Texts {
  private readonly widths = new Map<string, number>();
  private average = 6;

  constructor(private readonly context: CanvasRenderingContext2D) {}

  /** Forgets all widths; to be called after the font has changed. */
  reset(): void {
    this.widths.clear();
    this.average = this.context.measureText("abcdefghijklmnopqrstuvwxyz_0123456789").width / 37;
  }

  width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  /** Returns the text if it fits in `room` pixels, otherwise its start; nothing where that would be too short. */
  cut(text: string, room: number): string {
    const short = text.length > 300 ? text.slice(0, 300) : text;
    if (this.width(short) <= room) return short;
    for (let fits = Math.floor((room - this.average) / this.average); fits >= MIN_LETTERS; fits -= 1) {
      const text = short.slice(0, fits) + ELLIPSIS;
      if (this.width(text) <= room) return text;
    }
    return "";
  }
}
