// Drawing of the contents of rows: slices, waits, the critical path.

import type { Numbers } from "../data";
import { short } from "../format";
import { groupOf } from "../rows";
import { HEADER, RULER, type Place, type Scene } from "./scene";

/** Horizontal position of a time. */
export function across(scene: Scene, ms: number): number {
  return HEADER + ((ms - scene.from) / (scene.to - scene.from)) * (scene.width - HEADER);
}

/** Index of the first interval that ends after a time. */
export function begin(start: Numbers, length: Numbers, tick: number): number {
  let low = 0;
  let high = start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle]! + length[middle]! > tick) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  const many = Math.floor((text.length * (width - context.measureText("\u2026").width)) / whole) - 1;
  return many > 1 ? `${text.slice(0, many)}\u2026` : "";
}

/** Draws rectangles, grouped by colour. Rectangles in the same pixel of a row are drawn once. */
class Brush {
  private readonly rects = new Map<string, number[]>();
  constructor(private readonly context: CanvasRenderingContext2D) {}

  rect(colour: string, x: number, y: number, width: number, height: number): void {
    let rects = this.rects.get(colour);
    if (!rects) this.rects.set(colour, rects = []);
    const last = rects.length - 4;
    if (last >= 0 && rects[last + 1] === y && x + width <= rects[last]! + Math.max(rects[last + 2]!, 1)) return;
    rects.push(x, y, width, height);
  }

  paint(): void {
    for (const [colour, rects] of this.rects) {
      this.context.fillStyle = colour;
      for (let i = 0; i < rects.length; i += 4) this.context.fillRect(rects[i]!, rects[i + 1]!, rects[i + 2]!, rects[i + 3]!);
    }
  }
}

export function slices(context: CanvasRenderingContext2D, scene: Scene, place: Place, y: number): void {
  const { row, side } = place;
  if (!row) return;
  const { colours } = scene;
  const pixel = (scene.to - scene.from) / (scene.width - HEADER) / side.tick;
  const [from, to] = [scene.from / side.tick, scene.to / side.tick];
  const level = row.level(pixel * 1.5);
  const [bright, dim] = [new Brush(context), new Brush(context)];
  const names: [string, number, number, string][] = [];
  const many = level ? level.first.length - 1 : row.size;
  const seen = row.after(from);
  for (let g = level ? groupOf(level.first, Math.min(seen, row.size - 1)) : seen; g < many; g++) {
    const first = level ? level.first[g]! : g;
    const next = level ? level.first[g + 1]! : g + 1;
    const start = row.start[first]!;
    if (start > to) break;
    const shown = level ? first + level.longest[g]! : g;
    const x = Math.max(across(scene, start * side.tick), HEADER - 2);
    const end = Math.min(across(scene, row.end(next - 1) * side.tick), scene.width + 2);
    const wide = Math.max(end - x, 0.7);
    const hit = row.matching(first, next);
    const colour = row.kind[shown]! === 1 ? colours.merged : colours.phases[row.phase[shown]!]!;
    // Neighbours are separated by a thin gap where there is room for it.
    (hit ? bright : dim).rect(scene.searching && hit ? colours.match : colour, x, y + 1, wide > 3 ? wide - 1 : wide, place.height - 2);
    if (next - first === 1 && wide > 34) names.push([short(side.block.text(row.name[shown]!)), x, wide, hit ? colours.ground : colours.text]);
  }
  context.globalAlpha = scene.searching ? 0.25 : 1;
  dim.paint();
  context.globalAlpha = 1;
  bright.paint();
  context.font = "11px system-ui, sans-serif";
  for (const [name, x, wide, colour] of names) {
    context.fillStyle = colour;
    context.fillText(fitted(context, name, wide - 8), x + 4, y + place.height / 2 + 0.5);
  }
}

export function waits(context: CanvasRenderingContext2D, scene: Scene, place: Place, y: number): void {
  const { side } = place;
  const data = side.data.waits!;
  const start = side.block.column(data.start);
  const causes = data.causes.map((column) => side.block.column(column));
  const brush = new Brush(context);
  const length = side.block.column(data.length);
  const [first, last] = [scene.from / side.tick, scene.to / side.tick];
  const pixel = (scene.to - scene.from) / (scene.width - HEADER) / side.tick;
  let reached = -1;
  for (let i = begin(start, length, first); i < start.length && start[i]! <= last; i++) {
    // Of waits within one pixel, only one is drawn.
    if (start[i]! + length[i]! < reached) continue;
    reached = start[i]! + pixel;
    let from = start[i]!;
    for (let cause = 0; cause < causes.length; cause++) {
      const part = causes[cause]![i]!;
      if (part === 0) continue;
      const x = across(scene, from * side.tick);
      from += part;
      brush.rect(scene.colours.causes[cause]!, x, y + 2, Math.max(across(scene, from * side.tick) - x, 0.5), place.height - 4);
    }
  }
  brush.paint();
}

export function path(context: CanvasRenderingContext2D, scene: Scene, place: Place, y: number): void {
  const { side } = place;
  const { start, end: until, where } = side.runs!;
  const colours = [scene.colours.path, scene.colours.text, scene.colours.quiet, scene.colours.quiet];
  const brush = new Brush(context);
  const [first, last] = [scene.from / side.tick, scene.to / side.tick];
  for (let i = 0; i < start.length && start[i]! <= last; i++) {
    if (until[i]! < first) continue;
    const x = across(scene, start[i]! * side.tick);
    const end = across(scene, until[i]! * side.tick);
    const on = where[i]!;
    // Host activity is drawn in the upper half, device activity in the lower half.
    brush.rect(colours[on]!, x, on === 1 ? y + 9 : y + 2, Math.max(end - x, 0.5), on === 2 || on === 3 ? 12 : 5);
  }
  brush.paint();
}

/** Draws the critical path below its lanes, and a frame around the selection. */
export function marked(context: CanvasRenderingContext2D, scene: Scene): void {
  for (const place of scene.places) {
    const { runs } = place.side;
    if (place.kind !== "slices" || !place.first || !runs) continue;
    const y = place.y - scene.top;
    if (y > scene.height || y + place.height < RULER) continue;
    const { side } = place;
    const { start, end: until, lane, where } = runs;
    const [first, last] = [scene.from / side.tick, scene.to / side.tick];
    const brush = new Brush(context);
    for (let i = 0; i < start.length && start[i]! <= last; i++) {
      if (lane[i] !== place.lane || where[i] === 2 || until[i]! < first) continue;
      const x = Math.max(HEADER, across(scene, start[i]! * side.tick));
      const end = Math.min(scene.width, across(scene, until[i]! * side.tick));
      brush.rect(scene.colours.path, x, y - 3, Math.max(end - x, 0.6), 3);
    }
    brush.paint();
  }
  const { selected } = scene;
  if (!selected) return;
  const { place, row, slice } = selected;
  const x = across(scene, row.start[slice]! * place.side.tick);
  const wide = Math.max(across(scene, row.end(slice) * place.side.tick) - x, 3);
  context.strokeStyle = scene.colours.text;
  context.lineWidth = 2;
  context.strokeRect(x - 1, place.y - scene.top, wide + 1, place.height);
}
