// Device memory over the step, by kind.

import uPlot from "uplot";
import type { Block, Head } from "../data";
import { h, section } from "../dom";
import { bytes, count, ms } from "../format";
import { variable } from "../theme";

/** The view of device memory. The lowest curve is drawn last, over the sums above it. */
export function memory(head: Head, block: Block): HTMLElement {
  const data = head.memory;
  if (!data) return section("Memory over the step", h("p", { class: "quiet" }, "It is not known which tensors are the same: that takes an execution trace beside the times, and no CUDA graph that hides ops."));
  const at = block.column(data.at_us);
  const kinds = data.kb.map((place) => block.column(place));
  const xs = Array.from(at, (us) => us / 1000);
  let peak = 0;
  let most = 0;
  const totals = xs.map((_, i) => {
    const total = kinds.reduce((sum, kind) => sum + kind[i]!, 0);
    if (total > most) { most = total; peak = i; }
    return total;
  });
  xs.push(Math.max(head.predicted.step_ms, xs[xs.length - 1] ?? 0));
  // Kinds that are always allocated are at the bottom.
  const order = [0, 2, 1, 3, 4].filter((kind) => kind < kinds.length);
  let sum = new Float64Array(xs.length);
  const stacked = order.map((kind) => {
    const next = sum.slice();
    for (let i = 0; i < xs.length; i++) next[i]! += (kinds[kind]![Math.min(i, totals.length - 1)] ?? 0) / 1000;
    sum = next;
    return Array.from(next);
  });
  // If most memory is always allocated, an axis from zero would hide the changes: then it begins higher, with a note.
  const least = Math.min(...totals) / 1000;
  const begins = least > 0.8 * (most / 1000) ? Math.floor((least - 0.25 * (most / 1000 - least)) / 10) * 10 : 0;
  const place = h("div", { class: "curve", role: "img", "aria-label": `Device memory over the step: at most ${bytes(most * 1000)}, after ${ms(xs[peak] ?? 0)} ms` });
  const axis = { stroke: variable("--quiet"), grid: { stroke: variable("--line"), width: 1 }, ticks: { stroke: variable("--line") }, font: "12px system-ui" };
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const draw = (): void => {
    if (place.clientWidth === 0) return;
    place.replaceChildren();
    new uPlot({
      width: place.clientWidth, height: 380,
      cursor: { drag: { x: true, y: false } },
      legend: { live: false },
      scales: { x: { time: false }, y: { range: (_, __, top) => [begins, Math.max(top * 1.002, begins + 1)] } },
      axes: [
        { ...axis, label: "ms from the step's begin on the host", labelFont: "12px system-ui" },
        { ...axis, label: "MB", labelFont: "12px system-ui", size: 72 },
      ],
      series: [{ label: "ms" }, ...[...order].reverse().map((kind) => ({
        label: data.kinds[kind]!, stroke: variable(`--family-${kind}`), width: 1, fill: variable(`--family-${kind}`), paths: stepped, points: { show: false },
      }))],
    }, [xs, ...[...stacked].reverse()] as uPlot.AlignedData, place);
  };
  new ResizeObserver(draw).observe(place);
  const rows = order.map((kind) => h("tr", {}, h("th", { scope: "row" }, data.kinds[kind]!),
    h("td", { class: "number" }, bytes((kinds[kind]![peak] ?? 0) * 1000)), h("td", { class: "number" }, bytes(Math.max(...kinds[kind]!) * 1000))));
  return h("div", {}, section("Memory over the step",
    h("p", {}, `Tensors need at most ${bytes(most * 1000)} of device memory, first after ${ms(xs[peak] ?? 0)} ms. A piece is there from the op that makes it to the end of the last that takes it, as the host runs them; what the allocator keeps beyond that is not in it.${begins > 0 ? ` The axis begins at ${count(begins)} MB, not at zero: most of it is always there.` : ""}`),
    place,
    h("table", { class: "data" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "kind"), h("th", { scope: "col", class: "number" }, "at the peak"), h("th", { scope: "col", class: "number" }, "most of it"))), h("tbody", {}, ...rows))));
}
