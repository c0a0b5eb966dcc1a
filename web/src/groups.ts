// Groups of ops: phases of the step, or modules of the model, with phases for ops that no module ran.

import type { ModuleData } from "./data";

/** The step itself; -1 and below are its groups. */
export const STEP = -0x7fffffff;

interface Group { title: string; phase: number; around: number; first: number; roots: number[]; inner: number[] }

export class Groups {
  private readonly all: Group[] = [];

  /** Modules come first, each after the modules that contain it, then the phases. */
  constructor(phases: string[], private readonly modules: ModuleData[]) {
    const group = (title: string, phase: number, around: number): void => { this.all.push({ title, phase, around, first: Infinity, roots: [], inner: [] }); };
    for (const { name, class: kind, parent } of modules) {
      const own = parent === null ? name : name.slice(modules[parent]!.name.length + 1);
      group(own === kind ? own : `${own} (${kind})`, -1, parent === null ? STEP : -1 - parent);
    }
    phases.forEach((phase, at) => group(phase, at, STEP));
  }

  private at(node: number): Group {
    return this.all[-1 - node]!;
  }

  /** The group of a module (counted from 1), or that of the phase if no module ran the op. */
  of(module: number, phase: number): number {
    return module > 0 && this.modules.length > 0 ? -module : -1 - this.modules.length - phase;
  }

  /** Adds an op to a group; a module has the colour of the phase of its first op. Ops are added in order. */
  put(op: number, node: number, phase: number): void {
    this.at(node).roots.push(op);
    for (const around of this.to(node)) {
      const group = this.at(around);
      if (group.phase < 0) group.phase = phase;
      if (group.first === Infinity && group.around !== STEP) this.at(group.around).inner.push(around);
      group.first = Math.min(group.first, op);
    }
  }

  /** Outermost groups that have ops. */
  outermost(): number[] {
    return this.all.flatMap((group, at) => group.around === STEP && group.first < Infinity ? [-1 - at] : []);
  }

  /** The ops and groups in a group, by start. */
  inner(node: number): number[] {
    const begin = (one: number): number => one < 0 ? this.at(one).first : one;
    return [...this.at(node).roots, ...this.at(node).inner].sort((a, b) => begin(a) - begin(b));
  }

  /** Top-level ops of a group and of the groups in it. */
  roots(node: number): number[] {
    const { roots, inner } = this.at(node);
    return [...roots, ...inner.flatMap((group) => this.roots(group))].sort((a, b) => a - b);
  }

  /** The groups that contain a group, the outermost first, and the group itself. */
  to(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at !== STEP; at = this.at(at).around) path.unshift(at);
    return path;
  }

  title(node: number): string {
    return this.at(node).title;
  }

  phase(node: number): number {
    return this.at(node).phase;
  }

  /** The path of a group that is a module. */
  module(node: number): string {
    return this.modules[-1 - node]?.name ?? "";
  }
}
