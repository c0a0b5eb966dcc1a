// Comparison of two inputs: the causes of the difference of their steps.

import type { Half, Head, OpPair } from "../data";
import { bar, h, section } from "../dom";
import { count, ms, percent, short, signed } from "../format";
import { table } from "../table";
import { variable } from "../theme";
import { doubts } from "./answer";

function half(head: Head, title: string, input: string, half: Half): HTMLElement {
  const parts = [{ name: "device active", value: half.active_ms, colour: variable("--active"), shown: `${ms(half.active_ms)} ms` }];
  head.causes.forEach((cause, at) => {
    const value = half.idle_ms[cause.key] ?? 0;
    if (value > 0) parts.push({ name: `idle: ${cause.name}`, value, colour: variable(`--cause-${at}`), shown: `${ms(value)} ms` });
  });
  return h("div", { class: "half" },
    h("h3", {}, title), h("p", { class: "quiet" }, input),
    h("p", { class: "first" }, h("span", { class: "step" }, ms(half.step_ms), h("small", {}, " ms")),
      h("span", { class: "interval" }, `90 % within ${ms(half.interval_ms[0])} to ${ms(half.interval_ms[1])} ms`)),
    bar(parts, `${title}: device active and idle`, "device"));
}

function pairs(title: string, rows: OpPair[]): HTMLElement {
  return table<OpPair>(title, [
    { title: "op", text: (row) => short(row.name), whole: (row) => [...row.within, row.name].join(" / "), wide: true },
    { title: "critical, first", text: (row) => ms(row.critical_ms[0]), number: (row) => row.critical_ms[0] },
    { title: "second", text: (row) => ms(row.critical_ms[1]), number: (row) => row.critical_ms[1] },
    { title: "difference", text: (row) => signed(row.critical_ms[1] - row.critical_ms[0]), number: (row) => Math.abs(row.critical_ms[1] - row.critical_ms[0]) },
    { title: "device, first", text: (row) => ms(row.device_ms[0]), number: (row) => row.device_ms[0] },
    { title: "second", text: (row) => ms(row.device_ms[1]), number: (row) => row.device_ms[1] },
    { title: "in", text: (row) => row.nth[0] === null ? "second" : row.nth[1] === null ? "first" : "both" },
  ], rows);
}

/** The view of the comparison. */
export function compare(head: Head): HTMLElement {
  const found = head.difference!;
  const { a, b } = found;
  const sentence = Math.abs(found.longer) < 0.0005
    ? "Both take the same time."
    : `The second takes ${percent(Math.abs(found.longer))} ${found.longer > 0 ? "longer" : "less"} than the first.`;
  return h("div", { class: "answers" },
    section(sentence,
      h("div", { class: "halves" }, half(head, `First: ${a.name}`, a.input, a), half(head, `Second: ${b.name}`, b.input, b)),
      doubts([...a.doubts, ...b.doubts])),
    section("Where the difference comes from", h("ul", {}, ...found.why.map((line) => h("li", {}, line)))),
    section("Ops, lined up", pairs("Ops of both", found.ops)),
    found.annotations.length > 0 ? section("Annotations", pairs("Annotations of both", found.annotations)) : null,
    section("Kernels", table("Kernels of both", [
      { title: "kernel", text: (row) => short(row.name), whole: (row) => row.name, wide: true },
      { title: "count, first", text: (row) => count(row.count[0]), number: (row) => row.count[0] },
      { title: "second", text: (row) => count(row.count[1]), number: (row) => row.count[1] },
      { title: "ms, first", text: (row) => ms(row.device_ms[0]), number: (row) => row.device_ms[0] },
      { title: "second", text: (row) => ms(row.device_ms[1]), number: (row) => row.device_ms[1] },
      { title: "difference", text: (row) => signed(row.device_ms[1] - row.device_ms[0]), number: (row) => Math.abs(row.device_ms[1] - row.device_ms[0]) },
    ], found.kernels)));
}
