// The data of the page: JSON, and a block of columns. See crates/top/view/src/columns.rs.

import type { Devices } from "./gpus";

export interface ColumnPlace { kind: "u8" | "u32" | "d32"; at: number; len: number }
export type Numbers = Uint8Array | Uint32Array;
export type Outcome<T> = { Ok: T } | { Err: string };

export interface Doubt { kind: string; text: string; no_estimate: boolean; factor: number | null }
export interface Part { name: string; host_ms: number; device_ms: number }
export interface OpRow {
  name: string; count: number; host_ms: number; device_ms: number; critical_ms: number; slack_ms: number | null;
}
export interface KernelRow { name: string; count: number; device_ms: number }
export interface Predicted {
  input: string; name: string; device: string | null; host: string; host_slower_than?: { times: number; machine: string };
  kernels: string; process: string;
  step_ms: number; interval_ms: [number, number] | null; interval_level: number; doubts: Doubt[];
  replay?: Record<string, unknown>;
  batch: number | null; samples_per_s: number | null; active_ms?: number; utilisation?: number;
  idle_ms?: Record<string, number>; peak_mb: Record<string, number> | null;
  phases?: Part[]; annotations?: Part[]; modules?: ModuleTime[]; ops?: OpRow[]; kernels_by_name?: KernelRow[];
  steps: { source: string; count: number };
}
export interface Half {
  step_ms: number; interval_ms: [number, number]; active_ms: number; idle_ms: Record<string, number>;
  peak_mb: Record<string, number> | null; fits: boolean | null; samples_per_s: number | null;
}
export interface Remedy {
  name: string; options: string; gpus: number; fits: boolean; reason: string | null; step_ms: number | null;
  samples_per_s: number | null; peak_mb: number | null;
}
export interface Suggested {
  name: string; saves_ms: number; after: Half; effort: string; risk: string; what: string[]; why: string[];
}
export interface Explained {
  before: Half; suggestions: Suggested[]; together?: { names: string[]; saves_ms: number; after: Half };
  not_applicable: { name: string; reason: string }[]; to_fit?: Remedy[];
}
export interface Bound { place: string; share: number }
export interface Run { place: string; phase: string; names: string[]; ms: number }
export interface Level { resolution: number; count: ColumnPlace; longest: ColumnPlace }
export interface RowData {
  start: ColumnPlace; length: ColumnPlace; name: ColumnPlace; kind: ColumnPlace; phase: ColumnPlace; op: ColumnPlace;
  levels: Level[];
}
export interface LaneData { name: string; kind: "thread" | "stream"; rows: RowData[] }
export interface SideData {
  name: string; tick_ns: number; ticks: number; period: number | null; slices: number; without_time: number;
  lanes: LaneData[];
  waits: { start: ColumnPlace; length: ColumnPlace; causes: ColumnPlace[] } | null;
  path: { start: ColumnPlace; length: ColumnPlace; place: ColumnPlace; lane: ColumnPlace; name: ColumnPlace } | null;
}
export interface GraphData {
  tick_ns: number; name: ColumnPlace; parent: ColumnPlace; thread: ColumnPlace; phase: ColumnPlace;
  annotation: ColumnPlace; change: ColumnPlace; host: ColumnPlace; device: ColumnPlace; critical: ColumnPlace;
  takes: ColumnPlace; gives: ColumnPlace; part: ColumnPlace; module: ColumnPlace; edges: { from: ColumnPlace; to: ColumnPlace; tensor: ColumnPlace };
}
export interface ModuleData { name: string; class: string; parent: number | null }
export interface ModuleTime { name: string; class: string; host_ms: number; forward_ms: number; backward_ms: number; critical_ms: number }
export interface ChangesData {
  rule: string; counts: [number, number, number];
  change: ColumnPlace; name: ColumnPlace; op: ColumnPlace; within: ColumnPlace;
}
export interface RoofRow {
  op: string; family: string; count: number; time_us: number; bytes: number; flops: number; intensity: number;
  gb_s: number; tflop_s: number; share: number; bound: string; shapes?: number[][];
}
export interface Roof {
  answer: { device: string; times: string; device_ms: number; attainable_ms: number; kernels: RoofRow[] };
  memory_gb_s: number; l2_gb_s: number; peaks: [string, number][];
}
export interface MemoryData { at_us: ColumnPlace; kinds: string[]; kb: ColumnPlace[] }
export interface Recorded extends Half { input: string; name: string; device: string | null; doubts: Doubt[] }
export interface OpPair {
  name: string; nth: [number | null, number | null]; within: string[];
  host_ms: [number, number]; device_ms: [number, number]; critical_ms: [number, number];
}
export interface Difference {
  a: Recorded; b: Recorded; longer: number; why: string[]; ops: OpPair[]; annotations: OpPair[];
  kernels: { name: string; count: [number, number]; device_ms: [number, number] }[];
}
export interface Head {
  schema: number; title: string; texts: string[]; predicted: Predicted; measured_ms: number | null;
  explained: Outcome<Explained>; bound: Bound[]; runs: Run[]; causes: { key: string; name: string }[]; phases: string[];
  sides: SideData[]; graph: GraphData; modules: ModuleData[]; second: { title: string; graph: GraphData; modules: ModuleData[] } | null; changes: ChangesData[]; roofline: Outcome<Roof>; memory: MemoryData | null;
  difference: Difference | null;
}
export interface Changed {
  before: Half; after: Half; speedup: number; why: string[]; doubts: Doubt[];
  transforms: { name: string; why: string[]; removed: number; inserted: number; changed: number }[];
}
export interface After {
  texts: string[]; changed: Changed; bound: Bound[]; side: SideData; graph: GraphData; changes: ChangesData;
}

/** Columns, read once each. */
export class Block {
  private readonly read = new Map<number, Numbers>();
  constructor(private readonly bytes: ArrayBuffer, readonly texts: string[], private readonly from = 0) {}

  column(place: ColumnPlace): Numbers {
    let numbers = this.read.get(place.at);
    if (!numbers) {
      const at = this.from + place.at;
      if (place.kind === "u8") numbers = new Uint8Array(this.bytes, at, place.len);
      else {
        numbers = new Uint32Array(this.bytes, at, place.len);
        if (place.kind === "d32") {
          numbers = numbers.slice();
          let sum = 0;
          for (let i = 0; i < numbers.length; i++) numbers[i] = sum = (sum + numbers[i]!) >>> 0;
        }
      }
      this.read.set(place.at, numbers);
    }
    return numbers;
  }

  text(number: number): string {
    return this.texts[number] ?? "";
  }
}

async function unpacked(text: string): Promise<ArrayBuffer> {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function json(text: string): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await unpacked(text)));
}

/** Returns the text of an element and removes it from the page. */
function taken(id: string): string {
  const element = document.getElementById(id);
  element?.remove();
  return element?.textContent ?? "";
}

/** All data of a step that the page shows. */
export interface Data { head: Head; block: Block }

/** Unpacks the data of a page: its head and its block. */
export async function read([packedHead = "", packedBlock = ""]: string[]): Promise<Data> {
  const [head, bytes] = await Promise.all([json(packedHead) as Promise<Head>, unpacked(packedBlock)]);
  return { head, block: new Block(bytes, head.texts) };
}

/** Reads the data that the page contains. */
export function load(): Promise<Data> {
  return read([taken("head"), taken("block")]);
}

/** Reads the GPUs that can be selected on the page; null for a page from a file. */
export async function devices(): Promise<Devices | null> {
  const text = taken("devices");
  return text ? (await json(text)) as Devices : null;
}

/** Reads the answer to a change: a length, JSON, a block. */
export function answered(bytes: ArrayBuffer): { after: After; block: Block } {
  const length = new DataView(bytes).getUint32(0, true);
  const after = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as After;
  return { after, block: new Block(bytes, after.texts, 4 + length) };
}

export function ok<T>(outcome: Outcome<T>): T | null {
  return "Ok" in outcome ? outcome.Ok : null;
}
export function reason<T>(outcome: Outcome<T>): string {
  return "Err" in outcome ? outcome.Err : "";
}
