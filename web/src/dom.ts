// Makes HTML and SVG elements in such a way that text from a trace stays text.

/** What an element may contain; null, undefined and false are left out. */
type Child = Node | string | number | null | undefined | false;
/** A value of an attribute, or a listener. */
type Attribute = string | number | boolean | null | undefined | EventListener | ((event: never) => void);

/** Makes an HTML element. Functions become listeners of the event that follows `on`; `true` sets an attribute, `false` leaves it out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  return furnish(document.createElement(tag), attributes, children);
}

/** Sets attributes and listeners of an element and appends its children. */
function furnish<E extends Element>(element: E, attributes: Record<string, Attribute>, children: (Child | Child[])[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else setAttribute(element, name, value);
  }
  append(element, children);
  return element;
}

/** Sets an attribute: empty for `true`, removed for `false`, null and undefined. */
export function setAttribute(element: Element, name: string, value: string | number | boolean | null | undefined): void {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Appends children; numbers and strings become text. */
function append(element: Element, children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Replaces the children of an element. */
export function fill(element: Element, ...children: (Child | Child[])[]): void {
  element.replaceChildren();
  append(element, children);
}

/**
 * Runs `renew`, which replaces the contents of an element, and moves the focus to the new element with the tag and
 * text of the focused one; of several to the one at the same place.
 */
export function keepFocus(inside: Element, renew: () => void): void {
  const focused = document.activeElement as HTMLElement;
  if (focused === inside || !inside.contains(focused)) return renew();
  const alike = (): HTMLElement[] => [...inside.querySelectorAll<HTMLElement>(focused.tagName)].filter(({ textContent }) => textContent === focused.textContent);
  const at = alike().indexOf(focused);
  renew();
  if (focused.isConnected) return;
  const found = alike();
  (found[at] ?? found[0])?.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

/** Makes an SVG element as `h` makes HTML elements. */
export function svg(tag: string, attributes: Record<string, Attribute> = {}, ...children: (Child | Child[])[]): SVGElement {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}
