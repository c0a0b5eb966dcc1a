// Tables that can be sorted and filtered.

import { h } from "./dom";
import { count } from "./format";

export interface ColumnOf<R> {
  title: string;
  /** Displayed text. */
  text: (row: R) => string;
  /** Sort key; a column of numbers is right-aligned. */
  number?: (row: R) => number;
  /** Full text, where a shorter one is displayed. */
  whole?: (row: R) => string;
  wide?: boolean;
}

/** Number of rows shown at first. */
const FIRST = 300;

/** A table with a filter over all rows. Of many rows, the first are shown, with a button for the others. */
export function table<R>(title: string, columns: ColumnOf<R>[], rows: R[], sorted = -1, chosen?: (row: R) => void): HTMLElement {
  let by = sorted;
  let down = true;
  let wanted = "";
  let all = false;
  const body = h("tbody");
  const told = h("p", { class: "quiet", role: "status" });
  const texts = rows.map((row) => columns.map((column) => (column.whole ?? column.text)(row)).join("\u0001").toLowerCase());
  const heads = columns.map((column, at) => {
    const button = h("button", { type: "button", click: () => {
      down = by === at ? !down : column.number !== undefined;
      by = at;
      draw();
    } }, column.title);
    return h("th", { scope: "col", class: column.number ? "number" : column.wide ? "wide" : null }, button);
  });
  const more = h("button", { type: "button", class: "plain", click: () => { all = true; draw(); } });
  const draw = (): void => {
    let at = rows.map((_, index) => index);
    if (wanted) at = at.filter((index) => texts[index]!.includes(wanted));
    const column = columns[by];
    if (column) {
      const { number, text } = column;
      at.sort((a, b) => number ? number(rows[a]!) - number(rows[b]!) : text(rows[a]!).localeCompare(text(rows[b]!)));
      if (down) at.reverse();
    }
    heads.forEach((head, index) => {
      if (index === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const shown = all ? at : at.slice(0, FIRST);
    body.replaceChildren(...shown.map((index) => {
      const row = rows[index]!;
      const cells = columns.map((column, place) => {
        const text = column.text(row);
        const whole = column.whole?.(row);
        const attributes = { class: column.number ? "number" : column.wide ? "wide" : null, title: whole && whole !== text ? whole : null };
        if (place > 0) return h("td", attributes, text);
        const inner = chosen ? h("button", { type: "button", class: "plain", click: () => chosen(row) }, text) : text;
        return h("th", { scope: "row", ...attributes }, inner);
      });
      return h("tr", {}, ...cells);
    }));
    told.textContent = `${count(shown.length)} of ${count(rows.length)} rows`;
    more.textContent = `Show all ${count(at.length)}`;
    more.hidden = shown.length === at.length;
  };
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${title}`, input: (event: Event) => {
    wanted = (event.target as HTMLInputElement).value.toLowerCase();
    draw();
  } });
  draw();
  return h("div", { class: "tabled" },
    h("div", { class: "tools" }, filter, told),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
      h("table", { class: "data" }, h("caption", { class: "hidden" }, title), h("thead", {}, h("tr", {}, ...heads)), body)),
    more);
}
