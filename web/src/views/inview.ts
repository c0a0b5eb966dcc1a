// Contents of the canvas as text and as a table.

import type { Head } from "../data";
import { h } from "../dom";
import { count, plural, short, time } from "../format";
import type { Place } from "./scene";

/** Legend of the colours. */
export function key(head: Head): HTMLElement {
  const one = (colour: string, name: string): HTMLElement => h("li", {}, h("span", { class: "swatch", style: `background:var(--${colour})` }), name);
  return h("ul", { class: "key", "aria-label": "Colours" },
    ...head.phases.map((name, at) => one(`phase-${at}`, name)), one("merged", "annotation"), one("path", "critical path"),
    ...head.causes.map((cause, at) => one(`cause-${at}`, `idle: ${cause.name}`)));
}

/** Names between two times (milliseconds), each with its count and total duration. */
export function inView(places: Place[], from: number, to: number): HTMLElement[] {
  const sums = new Map<string, { many: number; ticks: number; place: Place }>();
  for (const place of places) {
    if (!place.row) continue;
    const { row, side } = place;
    const last = to / side.tick;
    for (let i = row.after(from / side.tick); i < row.size && row.start[i]! < last; i++) {
      const key = `${side.name}\u0001${place.title}\u0001${row.name[i]!}`;
      const known = sums.get(key) ?? { many: 0, ticks: 0, place };
      known.many++;
      known.ticks += row.length[i]!;
      sums.set(key, known);
    }
  }
  const rows = [...sums].sort((a, b) => b[1].ticks * b[1].place.side.tick - a[1].ticks * a[1].place.side.tick);
  const body = rows.slice(0, 40).map(([key, sum]) => {
    const [step, lane, name] = key.split("\u0001");
    const { side } = sum.place;
    return h("tr", {}, h("th", { scope: "row" }, short(side.block.text(Number(name)))), h("td", {}, step!), h("td", {}, lane!),
      h("td", { class: "number" }, count(sum.many)), h("td", { class: "number" }, time(sum.ticks * side.data.tick_ns)));
  });
  const heads = ["name", "step", "lane", "slices", "together"].map((head) => h("th", { scope: "col" }, head));
  return [
    h("p", {}, `${plural(rows.length, "name")} between ${time(from * 1e6)} and ${time(to * 1e6)}, the longest forty below.`),
    h("table", { class: "data" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body)),
  ];
}
