// Rows of slices and their levels of detail, for drawing and searching a timeline.

import type { Block, LaneData, Numbers, RowData, SideData } from "./data";

/** A level: groups of neighbours. Group g holds slices first[g] up to first[g + 1]. */
interface Groups { resolution: number; first: Uint32Array; longest: Numbers }

/** A row, read when it is first drawn. */
export class Row {
  readonly start: Numbers;
  readonly length: Numbers;
  readonly name: Numbers;
  readonly kind: Numbers;
  readonly phase: Numbers;
  private readonly levels: (Groups | null)[];
  /** Number of slices before each slice that match the search. */
  private matches: Uint32Array | null = null;

  constructor(private readonly block: Block, private readonly data: RowData) {
    this.start = block.column(data.start);
    this.length = block.column(data.length);
    this.name = block.column(data.name);
    this.kind = block.column(data.kind);
    this.phase = block.column(data.phase);
    this.levels = data.levels.map(() => null);
  }

  get size(): number {
    return this.start.length;
  }

  /** The op of a slice plus 1. */
  op(at: number): number {
    return this.block.column(this.data.op)[at]!;
  }

  end(at: number): number {
    return this.start[at]! + this.length[at]!;
  }

  /** The coarsest level on which no group of several slices is longer than `ticks`; `null` for the slices themselves. */
  level(ticks: number): Groups | null {
    let chosen = -1;
    this.data.levels.forEach((level, at) => { if (level.resolution <= ticks) chosen = at; });
    if (chosen < 0) return null;
    let groups = this.levels[chosen];
    if (!groups) {
      const level = this.data.levels[chosen]!;
      const count = this.block.column(level.count);
      const first = new Uint32Array(count.length + 1);
      for (let i = 0; i < count.length; i++) first[i + 1] = first[i]! + count[i]!;
      groups = { resolution: level.resolution, first, longest: this.block.column(level.longest) };
      this.levels[chosen] = groups;
    }
    return groups;
  }

  /** The first slice that ends after a time. */
  after(tick: number): number {
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end(middle) > tick) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  search(names: Set<number> | null): number {
    if (!names) {
      this.matches = null;
      return 0;
    }
    const before = new Uint32Array(this.size + 1);
    let sum = 0;
    for (let i = 0; i < this.size; i++) {
      if (names.has(this.name[i]!)) sum++;
      before[i + 1] = sum;
    }
    this.matches = before;
    return sum;
  }

  /** Whether any slice of a range matches; all match without a search. */
  matching(from: number, to: number): boolean {
    return this.matches === null || this.matches[to]! > this.matches[from]!;
  }
}

/** The group that contains a slice. */
export function groupOf(first: Uint32Array, slice: number): number {
  let low = 0;
  let high = first.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (first[middle + 1]! > slice) high = middle;
    else low = middle + 1;
  }
  return low;
}

export interface Lane { name: string; kind: "thread" | "stream"; rows: Row[] }

/** The critical path, with consecutive stretches in one place merged. */
export interface Runs { start: number[]; end: number[]; lane: number[]; where: number[] }

function runs(data: NonNullable<SideData["path"]>, block: Block): Runs {
  const [start, length] = [block.column(data.start), block.column(data.length)];
  const [lane, where] = [block.column(data.lane), block.column(data.place)];
  const all: Runs = { start: [], end: [], lane: [], where: [] };
  for (let i = 0; i < start.length; i++) {
    const last = all.start.length - 1;
    const end = start[i]! + length[i]!;
    if (last >= 0 && all.lane[last] === lane[i] && all.where[last] === where[i] && start[i]! <= all.end[last]! + 1) all.end[last] = end;
    else {
      all.start.push(start[i]!);
      all.end.push(end);
      all.lane.push(lane[i]!);
      all.where.push(where[i]!);
    }
  }
  return all;
}

/** The timeline of a step. */
export class Side {
  readonly name: string;
  readonly lanes: Lane[];
  readonly runs: Runs | null;
  constructor(readonly data: SideData, readonly block: Block) {
    this.name = data.name;
    this.runs = data.path && runs(data.path, block);
    this.lanes = data.lanes.map((lane: LaneData) => ({
      name: lane.name, kind: lane.kind, rows: lane.rows.map((row) => new Row(block, row)),
    }));
  }

  /** Duration of a tick in milliseconds. */
  get tick(): number {
    return this.data.tick_ns / 1e6;
  }

  get ms(): number {
    return this.data.ticks * this.tick;
  }

  /** Numbers of slices by kind: ops and annotations, calls, device activities. */
  counts(): [number, number, number] {
    const counts: [number, number, number] = [0, 0, 0];
    for (const lane of this.lanes) for (const row of lane.rows) {
      for (let i = 0; i < row.size; i++) counts[row.kind[i]! < 2 ? 0 : row.kind[i]! === 2 ? 1 : 2]++;
    }
    return counts;
  }
}
