// Layout and drawing of lanes.

import type { Numbers } from "../data";
import { short, time } from "../format";
import type { Side } from "../rows";
import { HEADER, ROW, RULER, type Place, type Scene } from "./scene";
import { across, begin, fitted, marked, path, slices, waits } from "./strokes";

/** Rows of steps, from top to bottom. */
export function layout(sides: Side[]): Place[] {
  const places: Place[] = [];
  let y = RULER + 4;
  const add = (place: Omit<Place, "y">, gap = 0): void => {
    places.push({ ...place, y });
    y += place.height + gap;
  };
  for (const side of sides) {
    add({ side, kind: "title", height: 24, title: side.name, first: true, lane: -1 });
    if (side.data.path) add({ side, kind: "path", height: ROW, title: "critical path", first: true, lane: -1, words: (tick) => onPath(side, tick) }, 2);
    if (side.data.waits) add({ side, kind: "waits", height: ROW, title: "device idle", first: true, lane: -1, words: (tick, causes) => waiting(side, tick, causes) }, 8);
    side.lanes.forEach((lane, at) => {
      lane.rows.forEach((row, depth) => add({ side, kind: "slices", height: ROW, title: lane.name, first: depth === 0, lane: at, row }));
      y += 8;
    });
    y += 10;
  }
  return places;
}

function found(start: Numbers, length: Numbers, tick: number): number {
  const at = begin(start, length, tick);
  return at < start.length && start[at]! <= tick ? at : -1;
}

const PLACES = ["host", "device", "launch", "return"];

function onPath(side: Side, tick: number): string {
  const path = side.data.path!;
  const [start, length] = [side.block.column(path.start), side.block.column(path.length)];
  const at = found(start, length, tick);
  if (at < 0) return "";
  const name = short(side.block.text(side.block.column(path.name)[at]!));
  return `critical path, ${PLACES[side.block.column(path.place)[at]!]}: ${name}\n${time(length[at]! * side.data.tick_ns)}`;
}

function waiting(side: Side, tick: number, causes: { name: string }[]): string {
  const waits = side.data.waits!;
  const [start, length] = [side.block.column(waits.start), side.block.column(waits.length)];
  const at = found(start, length, tick);
  if (at < 0) return "";
  const parts = waits.causes.flatMap((column, cause) => {
    const part = side.block.column(column)[at]!;
    return part > 0 ? [`${causes[cause]!.name} ${time(part * side.data.tick_ns)}`] : [];
  });
  return `device idle ${time(length[at]! * side.data.tick_ns)}\n${parts.join("\n")}`;
}

/** Draws the visible range. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, colours, places } = scene;
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  grid(context, scene);
  context.save();
  context.beginPath();
  context.rect(0, RULER, width, height - RULER);
  context.clip();
  for (const place of places) {
    const y = place.y - scene.top;
    if (y > height || y + place.height < RULER) continue;
    if (place.kind === "title") title(context, scene, place, y);
    else {
      context.save();
      context.beginPath();
      context.rect(HEADER, Math.max(y, RULER), width - HEADER, place.height);
      context.clip();
      if (place.kind === "slices") slices(context, scene, place, y);
      else if (place.kind === "waits") waits(context, scene, place, y);
      else path(context, scene, place, y);
      context.restore();
      if (place.first) label(context, scene, place, y);
    }
  }
  marked(context, scene);
  context.restore();
  ruler(context, scene);
}

function steps(scene: Scene): number[] {
  const rough = (scene.to - scene.from) / Math.max(2, (scene.width - HEADER) / 110);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((times) => times * power >= rough) ?? 10);
  const all: number[] = [];
  for (let at = Math.ceil(Math.max(scene.from, 0) / step); at * step <= scene.to; at++) all.push(at * step);
  return all;
}

function grid(context: CanvasRenderingContext2D, scene: Scene): void {
  context.fillStyle = scene.colours.line;
  for (const ms of steps(scene)) context.fillRect(Math.round(across(scene, ms)), RULER, 1, scene.height);
}

function ruler(context: CanvasRenderingContext2D, scene: Scene): void {
  context.fillStyle = scene.colours.ground;
  context.fillRect(0, 0, scene.width, RULER);
  context.fillStyle = scene.colours.quiet;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  for (const ms of steps(scene)) {
    const x = Math.round(across(scene, ms));
    if (x < scene.width - 50) context.fillText(time(Math.round(ms * 1e6)).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " "), x + 4, RULER / 2);
    context.fillRect(x, RULER - 8, 1, 8);
  }
  context.fillStyle = scene.colours.line;
  context.fillRect(0, RULER - 1, scene.width, 1);
}

function title(context: CanvasRenderingContext2D, scene: Scene, place: Place, y: number): void {
  context.fillStyle = scene.colours.text;
  context.font = "600 13px system-ui, sans-serif";
  context.fillText(place.title, 10, y + place.height / 2);
}

function label(context: CanvasRenderingContext2D, scene: Scene, place: Place, y: number): void {
  context.fillStyle = scene.colours.quiet;
  context.font = "12px system-ui, sans-serif";
  context.fillText(fitted(context, place.title, HEADER - 26), 18, y + place.height / 2 + 0.5);
}
