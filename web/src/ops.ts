// The ops of a step as a tree, and the tensors between its nodes.

import type { Block, GraphData, ModuleData, Numbers } from "./data";
import { Groups, STEP } from "./groups";

export interface Times { host: number; device: number; critical: number; ops: number }
export interface Edge { from: string; to: string; tensors: Map<string, number> }

export class Ops {
  readonly size: number;
  readonly name: Numbers;
  readonly annotation: Numbers;
  readonly change: Numbers;
  private readonly parent: Numbers;
  private readonly phase: Numbers;
  private readonly host: Numbers;
  private readonly device: Float64Array;
  private readonly critical: Float64Array;
  private readonly inside: Uint32Array;
  private readonly children: number[][];
  private readonly groups: Groups;
  /** Group of each top-level op; 0 for other ops. */
  private readonly groupOf: Int32Array;

  /** Groups ops by the modules that ran them, or by phase. */
  constructor(readonly data: GraphData, readonly block: Block, readonly phases: string[], readonly modules: ModuleData[], byModule: boolean) {
    this.name = block.column(data.name);
    this.size = this.name.length;
    this.annotation = block.column(data.annotation);
    this.change = block.column(data.change);
    this.parent = block.column(data.parent);
    this.phase = block.column(data.phase);
    this.host = block.column(data.host);
    this.device = Float64Array.from(block.column(data.device));
    this.critical = Float64Array.from(block.column(data.critical));
    this.inside = new Uint32Array(this.size).fill(1);
    this.children = Array.from({ length: this.size }, () => []);
    const outer: number[] = [];
    for (let op = 0; op < this.size; op++) {
      const parent = this.parent[op]! - 1;
      if (parent < 0) outer.push(op);
      else this.children[parent]!.push(op);
    }
    // A parent comes before its children.
    for (let op = this.size - 1; op >= 0; op--) {
      const parent = this.parent[op]! - 1;
      if (parent < 0) continue;
      this.device[parent]! += this.device[op]!;
      this.critical[parent]! += this.critical[op]!;
      this.inside[parent]! += this.inside[op]!;
    }
    this.groups = new Groups(phases, byModule ? modules : []);
    this.groupOf = new Int32Array(this.size);
    for (const op of outer.flatMap((root) => this.lifted(root))) {
      this.groupOf[op] = this.place(op);
      this.groups.put(op, this.groupOf[op]!, this.partOf(op));
    }
  }

  /** An op, or the contents of an annotation that covers several groups. */
  private lifted(op: number): number[] {
    if (!this.annotation[op]) return [op];
    const inner = this.children[op]!.flatMap((child) => this.lifted(child));
    const groups = new Set(inner.map((child) => this.place(child)));
    return groups.size > 1 ? inner : [op];
  }

  /** The first op in an annotation that is not an annotation; any other op itself. */
  private lead(op: number): number {
    let at = op;
    while (this.annotation[at] && this.children[at]!.length > 0) at = this.children[at]![0]!;
    return at;
  }

  /** The group that an op belongs to. */
  private place(op: number): number {
    const lead = this.lead(op);
    return this.groups.of(this.block.column(this.data.module)[lead]!, this.phase[lead]!);
  }

  /** The phase of a group or an op; an annotation has the phase of its first op. */
  partOf(node: number): number {
    return node < 0 ? this.groups.phase(node) : this.phase[this.lead(node)]!;
  }

  /** The table or layer of which an op is the first user, such as `tables[3]`. */
  sized(op: number): string {
    const part = op >= 0 ? this.block.column(this.data.part)[op]! : 0;
    return part > 0 ? this.block.text(part - 1) : "";
  }

  inner(node: number): number[] {
    if (node >= 0) return this.children[node]!;
    return node === STEP ? this.groups.outermost() : this.groups.inner(node);
  }

  title(node: number): string {
    if (node === STEP) return "step";
    if (node < 0) return this.groups.title(node);
    return this.block.text(this.name[node]!);
  }

  /** Times of a node with all its contents, in nanoseconds. */
  times(node: number): Times {
    if (node < 0) {
      return this.inner(node).map((inner) => this.work(inner)).reduce((sum, inner) => ({
        host: sum.host + inner.host, device: sum.device + inner.device, critical: sum.critical + inner.critical, ops: sum.ops + inner.ops,
      }), { host: 0, device: 0, critical: 0, ops: 0 });
    }
    const tick = this.data.tick_ns;
    return { host: this.host[node]! * tick, device: this.device[node]! * tick, critical: this.critical[node]! * tick, ops: this.inside[node]! };
  }

  /** Times of a node; host time of an annotation is the sum over its contents, since an annotation also lasts during waits. */
  private work(node: number): Times {
    if (node < 0 || !this.annotation[node]) return this.times(node);
    const host = this.children[node]!.reduce((sum, child) => sum + this.work(child).host, 0);
    return { ...this.times(node), host };
  }

  /** The nodes that contain a group or an op, from the step downwards. */
  around(op: number): number[] {
    if (op < 0) return op === STEP ? [STEP] : [STEP, ...this.groups.to(op)];
    const path: number[] = [];
    for (let at = op; at >= 0; at = this.parent[at]! - 1) path.unshift(at);
    const begin = path.findIndex((node) => this.groupOf[node]! < 0);
    const shown = path.slice(Math.max(begin, 0));
    return [STEP, ...this.groups.to(this.place(shown[0] ?? op)), ...shown];
  }

  /** Whether an op is a node, or in it. */
  holds(node: number, op: number): boolean {
    if (node === STEP) return true;
    for (let at = op; at >= 0; at = this.parent[at]! - 1) {
      if (at === node) return true;
      if (node < 0 && this.groupOf[at]! < 0) return this.groups.to(this.groupOf[at]!).includes(node);
    }
    return false;
  }

  /** The path of a group that is a module. */
  moduleAt(node: number): string {
    return node < 0 ? this.groups.module(node) : "";
  }

  /** The module that ran an op, or whose backward pass the op belongs to. */
  moduleOf(op: number): string {
    return this.modules[this.block.column(this.data.module)[op]! - 1]?.name ?? "";
  }

  /** Names of the nodes from the outermost one to an op. */
  pathOf(op: number): string {
    const names: string[] = [];
    for (let at = op; at >= 0; at = this.parent[at]! - 1) names.unshift(this.title(at));
    return names.join(" / ");
  }

  arguments(op: number): { takes: string; gives: string } {
    const text = (column: Numbers): string => column[op]! > 0 ? this.block.text(column[op]! - 1) : "";
    return { takes: text(this.block.column(this.data.takes)), gives: text(this.block.column(this.data.gives)) };
  }

  get hasTensors(): boolean {
    return this.data.edges.from.len > 0;
  }

  /** For each op, the node among `nodes` that contains it, or -1. */
  owners(nodes: Set<number>): Int32Array {
    const owner = new Int32Array(this.size).fill(-1);
    for (let op = 0; op < this.size; op++) {
      if (nodes.has(op)) owner[op] = op;
      else if (this.parent[op]! > 0) owner[op] = owner[this.parent[op]! - 1]!;
    }
    return owner;
  }

  /** Tensors between nodes, by node key; tensors from and to other ops are counted. */
  edges(nodes: number[], key: (node: number) => string): { edges: Edge[]; entering: number; leaving: number } {
    const { from, to, tensor } = this.data.edges;
    const [froms, tos, tensors] = [this.block.column(from), this.block.column(to), this.block.column(tensor)];
    // A group represents its contents.
    const members = new Map<number, number>();
    for (const node of nodes) if (node < 0) for (const op of this.groups.roots(node)) members.set(op, node); else members.set(node, node);
    const owner = this.owners(new Set(members.keys()));
    const edges = new Map<string, Edge>();
    let [entering, leaving] = [0, 0];
    for (let i = 0; i < froms.length; i++) {
      const [a, b] = [owner[froms[i]!]!, owner[tos[i]!]!];
      if (a < 0 && b < 0) continue;
      if (a < 0) entering++;
      else if (b < 0) leaving++;
      else {
        const [one, other] = [key(members.get(a)!), key(members.get(b)!)];
        if (one === other) continue;
        const name = `${one}\u0001${other}`;
        let edge = edges.get(name);
        if (!edge) edges.set(name, edge = { from: one, to: other, tensors: new Map() });
        const text = this.block.text(tensors[i]!);
        edge.tensors.set(text, (edge.tensors.get(text) ?? 0) + 1);
      }
    }
    return { edges: [...edges.values()], entering, leaving };
  }

  /** The ops whose tensors an op uses, and the ops that use its tensors. */
  neighbours(op: number): number[] {
    const [froms, tos] = [this.block.column(this.data.edges.from), this.block.column(this.data.edges.to)];
    const all = new Set<number>([op]);
    for (let i = 0; i < froms.length; i++) {
      if (froms[i] === op) all.add(tos[i]!);
      if (tos[i] === op) all.add(froms[i]!);
    }
    return [...all];
  }
}
