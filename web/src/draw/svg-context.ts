// Writes what is painted on a canvas as SVG: a stand-in for the canvas's context that knows the operations that the timeline uses. Every
// property is an attribute, and nothing is a style, so that any content policy shows the picture.

type Attributes = Record<string, string | number>;

/** The state that `save` keeps and `restore` brings back. */
interface Painted {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  dash: readonly number[];
  /** The place of the origin. */
  x: number;
  y: number;
  /** The number of the elements that are closed by `restore`. */
  clips: number;
}

const FONT_PARTS = /^(?:(bold|\d{3}|normal)\s+)?([\d.]+)px\s+(.*)$/;

/** The stand-in. `measure` is a real context, by which texts are measured. */
export class SvgContext {
  private readonly parts: string[] = [];
  private readonly kept: Painted[] = [];
  private now: Painted = { fillStyle: "#000000", strokeStyle: "#000000", lineWidth: 1, globalAlpha: 1, font: "10px sans-serif", dash: [], x: 0, y: 0, clips: 0 };
  private path: string[] = [];
  private clipped = 0;
  textBaseline = "alphabetic";

  constructor(private readonly measure: Pick<CanvasRenderingContext2D, "font" | "measureText">) {}

  /** Returns a picture of this size in pixels. */
  picture(width: number, height: number): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">\n${this.parts.join("\n")}\n</svg>\n`;
  }

  get fillStyle(): string {
    return this.now.fillStyle;
  }
  set fillStyle(colour: string) {
    this.now.fillStyle = colour;
  }
  get strokeStyle(): string {
    return this.now.strokeStyle;
  }
  set strokeStyle(colour: string) {
    this.now.strokeStyle = colour;
  }
  get lineWidth(): number {
    return this.now.lineWidth;
  }
  set lineWidth(pixels: number) {
    this.now.lineWidth = pixels;
  }
  get globalAlpha(): number {
    return this.now.globalAlpha;
  }
  set globalAlpha(part: number) {
    this.now.globalAlpha = part;
  }
  get font(): string {
    return this.now.font;
  }
  set font(font: string) {
    this.now.font = font;
    this.measure.font = font;
  }

  measureText(text: string): TextMetrics {
    this.measure.font = this.now.font;
    return this.measure.measureText(text);
  }

  save(): void {
    this.kept.push({ ...this.now });
    this.now.clips = 0;
  }

  restore(): void {
    this.parts.push("</g>".repeat(this.now.clips));
    this.now = this.kept.pop() ?? this.now;
    this.measure.font = this.now.font;
  }

  translate(x: number, y: number): void {
    this.now.x += x;
    this.now.y += y;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    this.add("rect", { ...this.place(x, y), width: rounded(width), height: rounded(height), ...this.filled });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.add("rect", { ...this.place(x, y), width: rounded(Math.max(0, width)), height: rounded(Math.max(0, height)), fill: "none", ...this.stroked });
  }

  fillText(text: string, x: number, y: number): void {
    const [, weight, size, family] = FONT_PARTS.exec(this.now.font) ?? [];
    // The middle of a text is about a third of its size above its foot.
    const down = this.textBaseline === "middle" ? Number(size ?? 10) * 0.35 : 0;
    this.add("text", { ...this.place(x, y + down), "font-size": size ?? 10, "font-family": family ?? "sans-serif", ...(weight ? { "font-weight": weight } : {}), ...this.filled }, text);
  }

  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push(`M${this.point(x, y)}`);
  }
  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${this.point(x, y)}`);
  }
  bezierCurveTo(...[x1, y1, x2, y2, x, y]: [number, number, number, number, number, number]): void {
    this.path.push(`C${this.point(x1, y1)} ${this.point(x2, y2)} ${this.point(x, y)}`);
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${this.point(x, y)}h${rounded(width)}v${rounded(height)}h${rounded(-width)}z`);
  }
  roundRect(x: number, y: number, width: number, height: number, radius: number): void {
    const r = Math.min(radius, width / 2, height / 2);
    const arc = (dx: number, dy: number): string => `a${rounded(r)} ${rounded(r)} 0 0 1 ${rounded(dx)} ${rounded(dy)}`;
    this.path.push(`M${this.point(x + r, y)}h${rounded(width - 2 * r)}${arc(r, r)}v${rounded(height - 2 * r)}${arc(-r, r)}h${rounded(2 * r - width)}${arc(-r, -r)}v${rounded(2 * r - height)}${arc(r, -r)}z`);
  }
  fill(): void {
    this.add("path", { d: this.path.join(""), ...this.filled });
  }
  stroke(): void {
    this.add("path", { d: this.path.join(""), fill: "none", ...this.stroked, ...(this.now.dash.length > 0 ? { "stroke-dasharray": this.now.dash.join(" ") } : {}) });
  }
  /** Cuts off what is painted outside of the path, until `restore`. */
  clip(): void {
    this.clipped += 1;
    this.now.clips += 1;
    this.parts.push(`<clipPath id="clip${this.clipped}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#clip${this.clipped})">`);
  }
  setLineDash(dash: readonly number[]): void {
    this.now.dash = dash;
  }

  private get filled(): Attributes {
    return { ...colour("fill", this.now.fillStyle, this.now.globalAlpha) };
  }
  private get stroked(): Attributes {
    return { ...colour("stroke", this.now.strokeStyle, this.now.globalAlpha), "stroke-width": this.now.lineWidth };
  }
  private place(x: number, y: number): Attributes {
    return { x: rounded(x + this.now.x), y: rounded(y + this.now.y) };
  }
  private point(x: number, y: number): string {
    return `${rounded(x + this.now.x)} ${rounded(y + this.now.y)}`;
  }
  private add(name: string, attributes: Attributes, text?: string): void {
    const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
    this.parts.push(`<${name}${written.join("")}${text === undefined ? "/>" : `>${escaped(text)}</${name}>`}`);
  }
}

/** Returns the attributes of a colour `#rrggbb` or `rgba(…)`: many programs know opacity only as an attribute of its own. */
function colour(name: "fill" | "stroke", text: string, alpha: number): Attributes {
  const [, r, g, b, a] = /^rgba?\((\d+),\s*(\d+),\s*(\d+)(?:,\s*([\d.]+))?\)$/.exec(text) ?? [];
  const opacity = alpha * (a === undefined ? 1 : Number(a));
  return { [name]: r === undefined ? text : `rgb(${r}, ${g}, ${b})`, ...(opacity < 1 ? { [`${name}-opacity`]: rounded(opacity) } : {}) };
}

/** Rounds to hundredths, which keeps the file small. */
function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function escaped(text: string): string {
  // XML has no place for most control characters.
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
