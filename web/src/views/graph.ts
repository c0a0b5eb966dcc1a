// The graph of the step: ops as a tree, and a drawing of the selected part with its tensors.

import { ok, type After, type Block, type ChangesData, type GraphData, type ModuleData } from "../data";
import { h } from "../dom";
import { count, plural, short, signed, time } from "../format";
import type { Page } from "../main";
import { STEP } from "../groups";
import { Ops } from "../ops";
import { table } from "../table";
import { drawn, settle } from "./drawing";
import { Selection } from "./selection";

/** Number of inner nodes of the tree shown at first. */
const FIRST = 150;
const KINDS = ["removed", "put in", "changed"];

export class GraphView {
  readonly element: HTMLElement;
  private readonly tree = h("ul", { role: "tree", "aria-label": "Ops of the step" });
  private readonly picture = h("div", { class: "picture" });
  private readonly rule: HTMLSelectElement;
  private readonly told = h("div", { class: "changes" });
  private ops: Ops;
  private before: Ops;
  private after: Ops | null = null;
  private second: Ops | null = null;
  private readonly which: HTMLSelectElement;
  private readonly grouping: HTMLSelectElement;
  private changes: { data: ChangesData; block: Block }[];
  /** Effect of a rule on each op: 1 removed, 3 changed. */
  private marks: Uint8Array;
  private counts = new Map<number, number>();
  private selected = STEP;
  private stale = false;
  private items = new Map<number, HTMLElement>();
  private readonly selection: Selection;

  constructor(private readonly page: Page) {
    const option = (value: string, text: string): HTMLOptionElement => h("option", { value }, text);
    this.grouping = h("select", { change: () => this.group() }, option("phase", "part of the step"), option("module", "module of the model"));
    this.before = this.grouped(page.head.graph, page.block, page.head.modules);
    this.which = h("select", { change: () => this.mark() }, option("", page.head.title), option("second", `second: ${page.head.second?.title ?? ""}`));
    if (page.head.second) this.second = this.grouped(page.head.second.graph, page.block, page.head.second.modules);
    const modules = page.head.modules.length + (page.head.second?.modules.length ?? 0);
    this.ops = this.before;
    this.marks = new Uint8Array(this.ops.size);
    this.changes = page.head.changes.map((data) => ({ data, block: page.block }));
    this.rule = h("select", { "aria-label": "Show what a change does", change: () => this.mark() });
    this.element = h("div", { class: "graphed" },
      h("div", { class: "tools" },
        ...(this.second ? [h("label", {}, "Step ", this.which)] : []),
        ...(modules > 0 ? [h("label", {}, "Ops by ", this.grouping)] : []),
        h("label", {}, "Show what a change does ", this.rule)),
      this.told,
      h("div", { class: "split" },
        h("div", { class: "treed" },
          h("p", { class: "heads", "aria-hidden": "true" }, h("span", {}, "op"), h("span", {}, "host"), h("span", {}, "device"), h("span", {}, "critical")),
          this.tree),
        this.picture));
    this.selection = new Selection(page);
    this.options();
    this.tree.addEventListener("keydown", (event) => this.key(event));
  }

  /** Called when the view is opened. */
  shown(): void {
    if (this.tree.childElementCount === 0) this.rebuild();
    else if (this.stale) this.draw();
  }

  recolour(): void {
    if (this.tree.childElementCount > 0) this.draw();
  }

  private grouped(data: GraphData, block: Block, modules: ModuleData[]): Ops {
    return new Ops(data, block, this.page.head.phases, modules, this.grouping.value === "module");
  }

  /** The same ops in the selected grouping. */
  private again(ops: Ops): Ops {
    return this.grouped(ops.data, ops.block, ops.modules);
  }

  /** Regroups the ops by the selected grouping. */
  private group(): void {
    const changed = this.ops === this.after;
    this.before = this.again(this.before);
    if (this.after) this.after = this.again(this.after);
    if (this.second) this.second = this.again(this.second);
    this.selected = STEP;
    this.mark();
    if (changed) this.showAfter();
  }

  /** Opens a module. */
  showModule(name: string): void {
    const at = this.page.head.modules.findIndex((module) => module.name === name);
    this.which.value = "";
    this.grouping.value = "module";
    this.group();
    this.select(-1 - at);
  }

  /** Path of an op of a side of the timeline; empty without its graph. */
  pathOf(op: number, side: string): string {
    return this.sideOf(op, side)?.pathOf(op) ?? "";
  }

  /** Module of an op of a side of the timeline; empty if unknown. */
  moduleOf(op: number, side: string): string {
    return this.sideOf(op, side)?.moduleOf(op) ?? "";
  }

  /** Whether an op of a side of the timeline is in an available graph. */
  has(op: number, side: string): boolean {
    return this.sideOf(op, side) !== null;
  }

  /** Shows an op in the graph of its side of the timeline. */
  showOp(op: number, side: string): void {
    const ops = this.sideOf(op, side);
    if (!ops) return;
    this.shown();
    if (ops !== this.ops) {
      this.which.value = side === "second" ? side : "";
      if (ops === this.after) this.rule.value = String(this.changes.length - 1);
      this.mark();
      if (ops === this.after) this.showAfter();
    }
    this.select(op);
  }

  private sideOf(op: number, side: string): Ops | null {
    const ops = side === "changed" ? this.after : side === "second" ? this.second : this.before;
    return ops && op < ops.size ? ops : null;
  }

  /** Adds the step after a tried change. */
  setAfter(after: After, block: Block): void {
    this.after = this.grouped(after.graph, block, this.page.head.modules);
    this.which.value = "";
    this.changes = [...this.page.head.changes.map((data) => ({ data, block: this.page.block })), { data: after.changes, block }];
    this.options();
    this.rule.value = String(this.changes.length - 1);
    this.mark();
  }

  showRule(name: string): void {
    this.which.value = "";
    const at = this.changes.findIndex((change) => change.data.rule === name);
    this.shown();
    this.rule.value = at < 0 ? "" : String(at);
    this.mark();
  }

  select(node: number): void {
    this.shown();
    const path = this.ops.around(node);
    for (const around of path.slice(0, -1)) this.expand(around, true, path);
    this.choose(node);
    this.items.get(node)?.scrollIntoView({ block: "center" });
  }

  private options(): void {
    const names = this.changes.map((change, at) => h("option", { value: String(at) }, at < this.page.head.changes.length ? change.data.rule : `tried: ${change.data.rule}`));
    this.rule.replaceChildren(h("option", { value: "" }, "none"), ...names);
  }

  private mark(): void {
    const second = this.which.value === "second" ? this.second : null;
    this.rule.disabled = second !== null;
    const chosen = this.rule.value === "" || second ? null : this.changes[Number(this.rule.value)]!;
    this.marks = new Uint8Array((second ?? this.before).size);
    this.told.replaceChildren();
    if (chosen) {
      const { data, block } = chosen;
      const [change, op] = [block.column(data.change), block.column(data.op)];
      for (let i = 0; i < change.length; i++) if (op[i]! > 0 && change[i] !== 1) this.marks[op[i]! - 1] = 1 + change[i]!;
      this.tellChanges(data, block);
    }
    this.ops = second ?? this.before;
    this.rebuild();
  }

  private tellChanges(data: ChangesData, block: Block): void {
    const [change, name, within] = [block.column(data.change), block.column(data.name), block.column(data.within)];
    const sums = new Map<string, number>();
    for (let i = 0; i < change.length; i++) {
      const key = `${change[i]}\u0001${name[i]}\u0001${within[i]}`;
      sums.set(key, (sums.get(key) ?? 0) + 1);
    }
    const rows = [...sums].map(([key, many]) => {
      const [kind, title, around] = key.split("\u0001").map(Number);
      return { kind: KINDS[kind!]!, name: block.text(title!), within: around! > 0 ? block.text(around! - 1) : "", many };
    });
    const [removed, inserted, changed] = data.counts;
    this.told.append(h("details", { open: true },
      h("summary", {}, `${data.rule}: ${plural(removed, "op")} removed, ${count(inserted)} put in, ${count(changed)} changed`),
      table("Ops before and after", [
        { title: "op", text: (row) => short(row.name), whole: (row) => row.name, wide: true },
        { title: "what", text: (row) => row.kind },
        { title: "how many", text: (row) => count(row.many), number: (row) => row.many },
        { title: "within", text: (row) => short(row.within), whole: (row) => row.within, wide: true },
      ], rows, 2)));
    if (this.after && block !== this.page.block) {
      const button = (text: string, pressed: boolean, click: () => void): HTMLElement => h("button", { type: "button", "aria-pressed": String(pressed), click }, text);
      this.told.append(h("div", { class: "choices", role: "group", "aria-label": "Which step" }, button("Before", true, () => this.mark()), button("After", false, () => this.showAfter())));
    }
  }

  private showAfter(): void {
    this.ops = this.after!;
    this.marks = Uint8Array.from(this.ops.change, (kind) => kind === 1 ? 3 : kind === 2 ? 2 : 0);
    this.told.querySelectorAll(".choices button").forEach((button, at) => button.setAttribute("aria-pressed", String(at === 1)));
    this.rebuild();
  }

  private rebuild(): void {
    // Nodes that contain changed ops show the number of these ops.
    this.counts.clear();
    for (let op = 0; op < this.ops.size; op++) {
      if (!this.marks[op]) continue;
      for (const node of this.ops.around(op)) if (node !== op && node !== STEP) this.counts.set(node, (this.counts.get(node) ?? 0) + 1);
    }
    this.items.clear();
    this.tree.replaceChildren(this.item(STEP, 1));
    this.expand(STEP, true);
    this.choose(this.selected < this.ops.size && this.ops === this.before ? this.selected : STEP);
  }

  private badge(node: number): HTMLElement | null {
    const kind = node < 0 ? 0 : this.marks[node]!;
    if (kind > 0) return h("span", { class: `badge kind-${kind}` }, KINDS[kind - 1]!);
    const many = this.counts.get(node) ?? 0;
    return many > 0 ? h("span", { class: "badge" }, `${count(many)} in it`) : null;
  }

  private item(node: number, level: number): HTMLElement {
    const times = this.ops.times(node);
    const inner = this.ops.inner(node).length;
    const part = node === STEP ? null : h("span", { class: "swatch", style: `background:var(--phase-${this.ops.partOf(node)})` });
    const line = h("div", { class: "line", style: `--level:${level}`, click: () => { this.choose(node); if (inner > 0) this.expand(node, !this.open(node)); } },
      h("span", { class: "label", title: this.ops.title(node) }, h("span", { class: "twist", "aria-hidden": "true" }, inner > 0 ? "\u25b8" : ""), part, short(this.ops.title(node)), this.badge(node)),
      h("span", {}, time(times.host)), h("span", {}, time(times.device)), h("span", {}, time(times.critical)));
    const item = h("li", { role: "treeitem", "aria-level": level, tabindex: -1, "aria-selected": "false", "aria-expanded": inner > 0 ? "false" : null }, line);
    item.dataset.node = String(node);
    this.items.set(node, item);
    return item;
  }

  private open(node: number): boolean {
    return this.items.get(node)?.getAttribute("aria-expanded") === "true";
  }

  private expand(node: number, open: boolean, wanted: number[] = []): void {
    const item = this.items.get(node);
    if (!item || !item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(open));
    let list = item.querySelector<HTMLElement>(":scope > ul");
    if (!list) {
      const inner = this.ops.inner(node);
      const level = Number(item.getAttribute("aria-level")) + 1;
      list = h("ul", { role: "group" });
      item.append(list);
      const fill = (from: number, to: number): void => {
        list!.append(...inner.slice(from, to).map((child) => this.item(child, level)));
        if (to < inner.length) {
          const rest = h("li", { role: "treeitem", "aria-level": level, tabindex: -1, class: "rest", click: () => { rest.remove(); fill(to, inner.length); } }, `${count(inner.length - to)} more: show all`);
          list!.append(rest);
        }
      };
      const needed = Math.max(...wanted.map((op) => inner.indexOf(op))) + 1;
      fill(0, Math.max(FIRST, needed));
    }
    list.hidden = !open;
  }

  private choose(node: number): void {
    for (const item of this.tree.querySelectorAll('[aria-selected="true"]')) { item.setAttribute("aria-selected", "false"); (item as HTMLElement).tabIndex = -1; }
    this.selected = node;
    const item = this.items.get(node);
    item?.setAttribute("aria-selected", "true");
    if (item) item.tabIndex = 0;
    this.draw();
  }

  private draw(): void {
    const tools = this.ops === this.before ? this.selection.tools(this.ops, this.selected) : null;
    this.picture.replaceChildren(this.touching(), ...(tools ? [tools] : []), drawn(this.ops, this.selected, (node) => this.marks[node] ? KINDS[this.marks[node]! - 1]! : "", (node) => {
      if (node >= 0) this.select(node);
      else { this.expand(node, true); this.choose(node); }
    }));
    settle(this.picture);
    // A drawing made while the view is hidden has no size yet.
    this.stale = this.picture.clientWidth === 0;
  }

  /** The changes that affect the selection: to be shown, and to be tried on a served page. */
  private touching(): HTMLElement {
    const saves = new Map((ok(this.page.head.explained)?.suggestions ?? []).map((found) => [found.name, found.saves_ms]));
    const rules = this.ops !== this.before ? [] : this.page.head.changes.filter((data) => {
      const op = this.page.block.column(data.op);
      for (let i = 0; i < op.length; i++) if (op[i]! > 0 && this.ops.holds(this.selected, op[i]! - 1)) return true;
      return false;
    });
    if (rules.length === 0) return h("p", { class: "quiet" }, this.page.head.changes.length > 0 && this.ops === this.before ? "No change that is known touches it." : "");
    const chips = rules.map(({ rule }) => h("li", {},
      h("button", { type: "button", click: () => this.page.served ? this.page.tryRule(rule) : this.showRule(rule) }, rule, h("span", { class: "quiet" }, ` ${signed(-(saves.get(rule) ?? 0))} ms`))));
    return h("div", { class: "touching" }, h("p", { class: "quiet" }, this.page.served ? "Changes that touch it, to try:" : "Changes that touch it, to see:"), h("ul", {}, ...chips));
  }

  private key(event: KeyboardEvent): void {
    const item = (event.target as HTMLElement).closest<HTMLElement>('[role="treeitem"]');
    if (!item) return;
    const shown = [...this.tree.querySelectorAll<HTMLElement>('[role="treeitem"]')].filter((one) => one.offsetParent !== null);
    const at = shown.indexOf(item);
    const node = Number(item.dataset.node);
    const to = (next: HTMLElement | undefined | null): void => { if (next) { next.tabIndex = 0; next.focus(); if (next.dataset.node) this.choose(Number(next.dataset.node)); } };
    const actions: Record<string, () => void> = {
      ArrowDown: () => to(shown[at + 1]), ArrowUp: () => to(shown[at - 1]), Home: () => to(shown[0]), End: () => to(shown[shown.length - 1]),
      ArrowRight: () => this.open(node) ? to(shown[at + 1]) : this.expand(node, true),
      ArrowLeft: () => this.open(node) ? this.expand(node, false) : to(item.parentElement?.closest<HTMLElement>('[role="treeitem"]')),
      Enter: () => item.dataset.node ? this.expand(node, !this.open(node)) : item.click(), " ": () => item.dataset.node ? this.choose(node) : item.click(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }
}
