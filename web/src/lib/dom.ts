/** Elements, made from data. Text is always text: nothing here takes markup. */

export type Child = Node | string | number | null | undefined | false | Child[];

/** Attributes; `on*` are listeners, `style` is an object of properties. False and null leave an attribute out. */
export interface Attributes {
  [name: string]: string | number | boolean | null | undefined | EventListener | Record<string, string>;
}

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (typeof value === "object") {
      for (const [property, text] of Object.entries(value)) {
        (element as HTMLElement | SVGElement).style.setProperty(property, text);
      }
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
}

function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(typeof child === "number" ? String(child) : child);
  }
}

/** An HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

let last = 0;

/** An id that no other element of the page has. */
export function unique(stem: string): string {
  last += 1;
  return `${stem}-${last}`;
}

/** Calls `draw` with the width of an element, now and whenever it changes. Printing scales the last drawing. */
export function onWidth(element: HTMLElement, draw: (width: number) => void): void {
  let drawn = 0;
  new ResizeObserver((entries) => {
    const width = Math.round(entries[0]?.contentRect.width ?? 0);
    if (width > 0 && width !== drawn) {
      drawn = width;
      draw(width);
    }
  }).observe(element);
}
