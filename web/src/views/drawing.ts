// A part of the step as boxes and tensors, laid out by dagre.

import { graphlib, layout } from "@dagrejs/dagre";
import { h, svg } from "../dom";
import { count, plural, short, time } from "../format";
import { STEP } from "../groups";
import { Ops } from "../ops";

/** Number of boxes above which there is only one box per name. */
const MOST = 90;
const WIDTH = 232;
const HEIGHT = 44;
/** Width of a letter of a tensor's label, in pixels. */
const LETTER = 7;

interface Box { key: string; title: string; nodes: number[]; mark: string; detail: string; part: number }

function boxes(ops: Ops, nodes: number[], mark: (node: number) => string): { all: Box[]; byName: boolean } {
  const byName = nodes.length > MOST;
  const all = new Map<string, Box>();
  for (const node of nodes) {
    const key = byName ? ops.title(node) : String(node);
    const known = all.get(key);
    if (known) known.nodes.push(node);
    else all.set(key, { key, title: ops.title(node), nodes: [node], mark: "", detail: "", part: ops.partOf(node) });
  }
  for (const box of all.values()) {
    const device = box.nodes.reduce((sum, node) => sum + ops.times(node).device, 0);
    const host = box.nodes.reduce((sum, node) => sum + ops.times(node).host, 0);
    box.mark = box.nodes.map((node) => node < 0 ? "" : mark(node)).find((text) => text !== "") ?? "";
    box.detail = `${box.nodes.length > 1 ? `\u00d7${count(box.nodes.length)}, ` : ""}host ${time(host)}, device ${time(device)}`;
  }
  return { all: [...all.values()], byName };
}

function cut(text: string, letters: number): string {
  return text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text;
}

/** Draws the contents of a node; for an op without contents, the ops with which it exchanges tensors. */
export function drawn(ops: Ops, selected: number, mark: (node: number) => string, choose: (node: number) => void): HTMLElement {
  const inner = ops.inner(selected);
  const nodes = inner.length > 0 ? inner : selected >= 0 ? ops.neighbours(selected) : [];
  const { all, byName } = boxes(ops, nodes, mark);
  const known = new Map(all.flatMap((box) => box.nodes.map((node) => [node, box.key] as const)));
  const { edges, entering, leaving } = ops.edges(nodes, (node) => known.get(node)!);
  const told: string[] = [];
  if (!ops.hasTensors) told.push("Which tensors ops share is not known: that takes an execution trace. Boxes are in the order in which they run.");
  if (byName) told.push(`${plural(nodes.length, "op")}: those of one name are one box. Open one in the tree to see it alone.`);
  if (entering + leaving > 0) told.push(`${plural(entering, "tensor")} come from outside, ${count(leaving)} go there.`);
  const head = h("div", { class: "about" }, h("h2", {}, short(ops.title(selected))), ...about(ops, selected), ...told.map((text) => h("p", { class: "quiet" }, text)));
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 46, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  // Boxes without tensors are placed below the others, in rows.
  const tied = new Set(ops.hasTensors ? edges.flatMap((edge) => [edge.from, edge.to]) : all.map((box) => box.key));
  for (const box of all) if (tied.has(box.key)) graph.setNode(box.key, { width: WIDTH, height: HEIGHT });
  const circle = new Set(edges.map((edge) => `${edge.from}\u0001${edge.to}`));
  for (const edge of edges) if (!circle.has(`${edge.to}\u0001${edge.from}`) || edge.from < edge.to) graph.setEdge(edge.from, edge.to);
  if (!ops.hasTensors) all.slice(1).forEach((box, at) => graph.setEdge(all[at]!.key, box.key));
  layout(graph);
  const laid = graph.graph() as { width?: number; height?: number };
  const tensors = new Map(edges.map((edge) => [`${edge.from}\u0001${edge.to}`, edge.tensors]));
  const label = (v: string, w: string): string => {
    const all = tensors.get(`${v}\u0001${w}`);
    const many = all ? [...all.values()].reduce((sum, one) => sum + one, 0) : 0;
    return !all ? "" : cut(many === 1 ? [...all.keys()][0]! : plural(many, "tensor"), 30);
  };
  // Edges and their labels may extend beyond the area of the boxes.
  const turns = graph.edges().flatMap(({ v, w }) => {
    const points = (graph.edge(v, w) as { points: { x: number }[] }).points.map(({ x }) => x);
    const [middle, half] = [points[points.length >> 1]!, (label(v, w).length * LETTER) / 2];
    return [...points, middle - half, middle + half];
  });
  const left = Math.min(0, ...turns.map((x) => x - 12));
  const loose = all.filter((box) => !tied.has(box.key));
  const [right, below] = tied.size > 0 ? [Math.max(laid.width ?? 0, ...turns.map((x) => x + 12)), laid.height ?? 0] : [0, 0];
  const across = Math.max(2, Math.min(loose.length, Math.floor(right / (WIDTH + 18))));
  const at = new Map(loose.map((box, index) => [box.key, { x: 12 + WIDTH / 2 + (index % across) * (WIDTH + 18), y: below + 30 + Math.floor(index / across) * (HEIGHT + 18) }]));
  const width = Math.max(right, loose.length > 0 ? Math.min(across, loose.length) * (WIDTH + 18) + 12 : 0);
  const height = below + (loose.length > 0 ? Math.ceil(loose.length / across) * (HEIGHT + 18) + 12 : 0);
  const picture = svg("svg", { width: width - left, height, viewBox: `${left} 0 ${width - left} ${height}`, role: "group", "aria-label": `${plural(all.length, "box")} and ${plural(edges.length, "edge")} of ${ops.title(selected)}` });
  for (const { v, w } of graph.edges()) {
    const points = (graph.edge(v, w) as { points: { x: number; y: number }[] }).points;
    const [first, ...rest] = points;
    const middle = points[points.length >> 1]!;
    const all = tensors.get(`${v}\u0001${w}`);
    const text = label(v, w);
    picture.append(svg("path", { class: all ? "edge" : "edge order", d: `M${first!.x} ${first!.y}${rest.map((point) => `L${point.x} ${point.y}`).join("")}` }));
    if (text) picture.append(svg("text", { x: middle.x, y: middle.y, class: "tensor", "text-anchor": "middle" }, text, svg("title", {}, [...all!].map(([name, times]) => times > 1 ? `${times} \u00d7 ${name}` : name).join("\n"))));
  }
  for (const box of all) picture.append(boxed(ops, box, at.get(box.key) ?? graph.node(box.key) as { x: number; y: number }, selected, choose));
  return h("div", {}, head, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ops and tensors" }, picture));
}

function boxed(ops: Ops, box: Box, { x, y }: { x: number; y: number }, selected: number, choose: (node: number) => void): SVGElement {
  const one = box.nodes.length === 1;
  const pick = (): void => { if (one) choose(box.nodes[0]!); };
  return svg("g", {
    class: `box ${box.mark ? `mark-${box.mark.replace(" ", "-")}` : ""} ${box.nodes[0] === selected ? "self" : ""}`, transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`,
    role: one ? "button" : "img", tabindex: one ? 0 : null, click: pick,
    keydown: (event: KeyboardEvent) => { if (event.key === "Enter") pick(); },
  },
  svg("rect", { width: WIDTH, height: HEIGHT, rx: 6 }), svg("rect", { width: 5, height: HEIGHT, rx: 2, style: `fill:var(--phase-${box.part})`, class: "part" }),
  svg("text", { x: 14, y: 18 }, cut(short(ops.title(box.nodes[0]!)), 31)), svg("text", { x: 14, y: 34, class: "detail" }, cut(box.mark ? `${box.mark}, ${box.detail}` : box.detail, 38)),
  svg("title", {}, [box.title, box.mark, box.detail].filter((text) => text !== "").join("\n")));
}

/** Shrinks a drawing that is too wide, as long as it stays readable, and scrolls to its beginning. */
export function settle(picture: HTMLElement): void {
  const scroll = picture.querySelector<HTMLElement>(".scroll");
  const drawing = scroll?.querySelector("svg");
  if (!scroll || !drawing) return;
  const [width, height] = [Number(drawing.getAttribute("width")), Number(drawing.getAttribute("height"))];
  const scale = Math.min(1, Math.max(0.75, scroll.clientWidth / Math.max(1, width)));
  drawing.setAttribute("width", String(width * scale));
  drawing.setAttribute("height", String(height * scale));
  const first = scroll.querySelector(".box")?.getBoundingClientRect();
  if (first) scroll.scrollLeft += first.left + first.width / 2 - scroll.getBoundingClientRect().left - scroll.clientWidth / 2;
}

function about(ops: Ops, node: number): HTMLElement[] {
  const times = ops.times(node);
  const facts: [string, string][] = [["ops", count(times.ops)], ["host", time(times.host)], ["device", time(times.device)], ["on the critical path", time(times.critical)]];
  if (node >= 0) {
    const { takes, gives } = ops.arguments(node);
    if (takes) facts.push(["takes", takes]);
    if (gives) facts.push(["gives", gives]);
  }
  if (node === STEP) facts.shift();
  return [h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))];
}
