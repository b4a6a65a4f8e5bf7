// Elements. Text of captures gets into the page as text nodes only: nothing here parses HTML.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((e: Event) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  set(e, attributes);
  append(e, children);
  return e;
}

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const e = document.createElementNS(svgSpace, tag);
  set(e, attributes);
  append(e, children);
  return e;
}

function set(e: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, String(value));
  }
}

function append(e: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    e.append(typeof child === "number" ? String(child) : child);
  }
}

export function clear(e: Element, ...children: Child[]): void {
  e.replaceChildren();
  append(e, children);
}
