// A FAKE of the browser's document, as far as panels need it to be built and read. The tests in `browser/` use real browsers.

class FakeElement {
  readonly attributes = new Map<string, string>();
  readonly dataset: Record<string, string> = {};
  readonly style: Record<string, string> = {};
  readonly listeners = new Map<string, (event: unknown) => void>();
  children: (FakeElement | string)[] = [];
  hidden = false;
  scrollTop = 0;
  value = "";
  readonly classList = { toggle: (): void => undefined };

  constructor(readonly tag: string) {}

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
    if (name === "hidden") this.hidden = true;
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }
  getAttribute(name: string): string | null {
    return this.attributes.get(name) ?? null;
  }
  addEventListener(name: string, listener: (event: unknown) => void): void {
    this.listeners.set(name, listener);
  }
  append(...children: (FakeElement | string)[]): void {
    this.children.push(...children);
  }
  replaceChildren(): void {
    this.children = [];
  }
  hasChildNodes(): boolean {
    return this.children.length > 0;
  }
  get firstChild(): FakeElement | string | null {
    return this.children[0] ?? null;
  }
  get lastChild(): FakeElement | string | null {
    return this.children[this.children.length - 1] ?? null;
  }
  contains(other: unknown): boolean {
    return other === this || this.children.some((child) => typeof child !== "string" && child.contains(other));
  }
  get className(): string {
    return this.attributes.get("class") ?? "";
  }
  set className(name: string) {
    this.attributes.set("class", name);
  }
  /** The text that would be visible. */
  get innerText(): string {
    if (this.hidden) return "";
    return this.children.map((child) => (typeof child === "string" ? child : child.innerText)).join("");
  }
  set textContent(text: string) {
    this.children = [text];
  }
  /** Returns all descendants with a tag. */
  all(tag: string): FakeElement[] {
    const inside = this.children.flatMap((child) => (typeof child === "string" ? [] : child.all(tag)));
    return this.tag === tag ? [this, ...inside] : inside;
  }
  click(): void {
    this.listeners.get("click")?.({});
  }
}

export function fakeDocument(): void {
  Object.assign(globalThis, { document: { createElement: (tag: string) => new FakeElement(tag) } });
}

/** Casts an element to the fake that it is. */
export function fake(element: HTMLElement): FakeElement {
  return element as unknown as FakeElement;
}
