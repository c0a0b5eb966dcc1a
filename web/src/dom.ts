// Elements, made from text only: text of a recording never becomes markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: never) => void) | null | undefined>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
}

export function h<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

export function svg(name: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(element, attributes, children);
  return element;
}

/** A section with a heading. */
export function section(title: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), ...children);
}

/** A part of a bar: a share with a colour and a name. */
export interface BarPart { name: string; value: number; colour: string; shown: string }

/** A bar of parts, with a table of the same names and values as its legend. */
export function bar(parts: BarPart[], label: string, what: string): HTMLElement {
  const total = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  const drawn = h("div", { class: "bar", role: "img", "aria-label": label });
  const rows = h("tbody");
  for (const part of parts) {
    const share = part.value / total;
    drawn.append(h("span", {
      style: `flex:${Math.max(part.value, 0)} 1 0;background:${part.colour}`, title: `${part.name}: ${part.shown}`,
    }));
    rows.append(h("tr", {},
      h("th", { scope: "row" }, h("span", { class: "swatch", style: `background:${part.colour}` }), part.name),
      h("td", {}, part.shown), h("td", {}, `${(100 * share).toFixed(1)} %`)));
  }
  const head = h("thead", { class: "quiet" }, h("tr", {}, h("th", { scope: "col" }, what), h("th", { scope: "col" }, "time"), h("th", { scope: "col" }, "share")));
  return h("div", { class: "barred" }, drawn, h("table", { class: "legend" }, head, rows));
}
