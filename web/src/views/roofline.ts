// Kernels and the roofline of the device.

import { ok, reason, type Head, type Roof, type RoofRow } from "../data";
import { h, section, svg } from "../dom";
import { bytes, count, ms, percent, short } from "../format";
import { table } from "../table";
import { variable } from "../theme";

const WIDTH = 1000;
const HEIGHT = 460;
const LEFT = 64;
const BOTTOM = 48;
/** Shapes of marks, for readers who cannot distinguish the colours. */
const SHAPES = ["M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0", "M-.9-.9H.9V.9H-.9Z", "M0-1.1L1 .8H-1Z", "M0-1.2L1.2 0L0 1.2L-1.2 0Z", "M0 1.1L1-.8H-1Z", "M-1-.4H-.4V-1H.4V-.4H1V.4H.4V1H-.4V.4H-1Z", "M-1.1-.5H1.1V.5H-1.1Z", "M-.5-1.1H.5V1.1H-.5Z"];

/** Shape and colour of a family's mark: a different pair for each of 64 families. */
function sign(at: number): { shape: string; colour: string } {
  return { shape: SHAPES[(at + (at >> 3)) % 8]!, colour: variable(`--family-${at % 8}`) };
}

function plot(roof: Roof): SVGElement {
  const points = roof.answer.kernels.filter((row) => row.flops > 0 && row.tflop_s > 0);
  const top = Math.max(...roof.peaks.map(([, peak]) => peak), ...points.map((row) => row.tflop_s), 1) * 2;
  const low = Math.min(...points.map((row) => row.tflop_s), top / 1e4);
  const from = Math.min(0.05, ...points.map((row) => row.intensity));
  const to = Math.max(1000, ...points.map((row) => row.intensity)) * 2;
  const scale = (least: number, most: number, size: number) => (value: number): number =>
    (size * (Math.log10(value) - Math.log10(least))) / (Math.log10(most) - Math.log10(least));
  const [across, up] = [scale(from, to, WIDTH - LEFT - 16), scale(low, top, HEIGHT - BOTTOM - 16)];
  const x = (value: number): number => LEFT + across(value);
  const y = (value: number): number => HEIGHT - BOTTOM - up(value);
  const all = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "roof", "aria-label": `Roofline: ${points.length} groups of kernels on ${roof.answer.device}` });
  const words = (text: string, at: [number, number], more: Record<string, string> = {}): SVGElement =>
    svg("text", { x: at[0], y: at[1], ...more }, text);
  for (let power = Math.ceil(Math.log10(from)); power <= Math.log10(to); power++) {
    const place = x(10 ** power);
    all.append(svg("path", { d: `M${place} 16V${HEIGHT - BOTTOM}`, class: "grid" }), words(`${Number((10 ** power).toPrecision(1))}`, [place, HEIGHT - BOTTOM + 18], { "text-anchor": "middle" }));
  }
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(top); power++) {
    const place = y(10 ** power);
    all.append(svg("path", { d: `M${LEFT} ${place}H${WIDTH - 16}`, class: "grid" }), words(`${Number((10 ** power).toPrecision(1))}`, [LEFT - 8, place + 4], { "text-anchor": "end" }));
  }
  all.append(words("arithmetic intensity, flop/byte", [WIDTH / 2, HEIGHT - 8], { "text-anchor": "middle" }), words("TFLOP/s", [8, 12]));
  let below = Infinity;
  for (const [name, peak] of [...roof.peaks].sort((a, b) => a[1] - b[1])) {
    const ridge = (peak * 1000) / roof.memory_gb_s;
    const begin = Math.max((from * roof.memory_gb_s) / 1000, low);
    all.append(svg("path", { d: `M${x((begin * 1000) / roof.memory_gb_s)} ${y(begin)}L${x(ridge)} ${y(peak)}H${WIDTH - 16}`, class: "peak" }), words(`${name} ${peak.toFixed(0)}`, [WIDTH - 18, below - y(peak) < 18 ? y(peak) - 7 : y(peak) + 14], { "text-anchor": "end" }));
    below = y(peak);
  }
  const families = [...new Set(roof.answer.kernels.map((row) => row.family))];
  const longest = Math.max(...points.map((row) => row.time_us), 1);
  for (const row of points) {
    const { shape, colour } = sign(families.indexOf(row.family));
    const size = 3.5 + 9 * Math.sqrt(row.time_us / longest);
    all.append(svg("path", { d: shape, transform: `translate(${x(row.intensity)} ${y(row.tflop_s)}) scale(${size})`, fill: colour, class: "point" },
      svg("title", {}, `${row.op} (${row.family}): ${row.time_us.toFixed(1)} \u00b5s, ${percent(row.share)} of the roof, bound by ${row.bound}`)));
  }
  // The label is above the marks and along its roof.
  const begin = Math.max(from * 2, (low * 2 * 1000) / roof.memory_gb_s);
  const rate = (intensity: number): number => (intensity * roof.memory_gb_s) / 1000;
  const [left, right] = [{ x: x(begin), y: y(rate(begin)) }, { x: x(begin * 10), y: y(rate(begin * 10)) }];
  const turn = (Math.atan2(right.y - left.y, right.x - left.x) * 180) / Math.PI;
  all.append(words(`memory ${count(Math.round(roof.memory_gb_s))} GB/s`, [0, -7], { class: "halo", transform: `translate(${left.x} ${left.y}) rotate(${turn})` }));
  return all;
}

function legend(roof: Roof): HTMLElement {
  const families = [...new Set(roof.answer.kernels.map((row) => row.family))];
  return h("ul", { class: "families" }, ...families.map((name, at) => h("li", {},
    svg("svg", { viewBox: "-1.6 -1.6 3.2 3.2", width: 14, height: 14, "aria-hidden": "true" }, svg("path", { d: sign(at).shape, fill: sign(at).colour })), name)));
}

/** The view of the roofline. */
export function roofline(head: Head): HTMLElement {
  const roof = ok(head.roofline);
  if (!roof) return section("Roofline", h("p", { class: "quiet" }, `Not known: ${reason(head.roofline)}`));
  const { answer } = roof;
  const silent = answer.kernels.filter((row) => row.flops === 0);
  const silentMs = silent.reduce((sum, row) => sum + row.time_us, 0) / 1000;
  return h("div", {}, section("How far kernels are from what the device could do",
    h("p", {}, `${ms(answer.device_ms)} ms of device time (${answer.times}); at the rates of ${answer.device} it would be ${ms(answer.attainable_ms)} ms, ${percent(answer.attainable_ms / answer.device_ms)}. A larger mark takes more time. ${silent.length > 0 ? `${count(silent.length)} kinds of kernels that compute nothing (${ms(silentMs)} ms) are in the table alone.` : ""}`),
    legend(roof), plot(roof),
    table<RoofRow>("Kernels under the roof", [
      { title: "op", text: (row) => short(row.op) || "(outside of ops)", whole: (row) => row.op, wide: true },
      { title: "family", text: (row) => row.family },
      { title: "count", text: (row) => count(row.count), number: (row) => row.count },
      { title: "time, \u00b5s", text: (row) => row.time_us.toFixed(1), number: (row) => row.time_us },
      { title: "bytes", text: (row) => bytes(row.bytes), number: (row) => row.bytes },
      { title: "flop/byte", text: (row) => row.intensity.toFixed(1), number: (row) => row.intensity },
      { title: "GB/s", text: (row) => count(Math.round(row.gb_s)), number: (row) => row.gb_s },
      { title: "TFLOP/s", text: (row) => row.tflop_s.toFixed(2), number: (row) => row.tflop_s },
      { title: "of the roof", text: (row) => percent(row.share), number: (row) => row.share },
      { title: "bound by", text: (row) => row.bound },
      { title: "shapes", text: (row) => (row.shapes ?? []).map((shape) => shape.length > 0 ? shape.join("\u00d7") : "1").join(", "), wide: true },
    ], answer.kernels, 3)));
}
