// Ops selected in the graph, and changes of only these ops.

import { h } from "../dom";
import { plural, short } from "../format";
import type { Page } from "../main";
import type { Ops } from "../ops";

const FUSIONS: [string, string][] = [["elementwise", "Fuse elementwise"], ["linear", "Fuse linear with ReLU"], ["embedding-bags", "Fuse embedding bags"]];
const SIZES: Record<string, string[]> = { tables: ["rows", "columns", "lookups"], layers: ["width"] };

export class Selection {
  /** Selected ops by their names in a plan, each with its text. */
  private readonly chosen = new Map<string, string>();

  constructor(private readonly page: Page) {}

  /** Controls for an op and the selected ops; null on a page that is not served. */
  tools(ops: Ops, node: number): HTMLElement | null {
    if (!this.page.served || (node < 0 && !ops.moduleAt(node) && this.chosen.size === 0)) return null;
    const box = h("fieldset", { class: "selection" }, h("legend", {}, "Change the selected ops"));
    const fill = (): void => box.replaceChildren(box.firstElementChild!, ...this.chips(fill), ...this.actions(ops, node, fill));
    fill();
    return box;
  }

  private chips(fill: () => void): HTMLElement[] {
    if (this.chosen.size === 0) return [];
    const chip = ([key, words]: [string, string]): HTMLElement => h("li", {}, h("button", { type: "button", "aria-label": `Let go of ${words}`, click: () => { this.chosen.delete(key); fill(); } }, words, " \u00d7"));
    return [h("ul", {}, ...[...this.chosen].map(chip))];
  }

  private actions(ops: Ops, node: number, fill: () => void): HTMLElement[] {
    const module = ops.moduleAt(node);
    const name = node >= 0 ? ops.title(node) : "";
    let alike = 0;
    for (let op = 0; op < ops.size; op++) if (node >= 0 && ops.name[op] === ops.name[node]) alike++;
    const whole = h("input", { type: "checkbox" });
    const own = (): [string, string] => module ? [`module:${module}`, module] : whole.checked ? [name, `all ${short(name)}`] : [`ops[${node}]`, `${short(name)} (${node})`];
    const wanted = (): string[] => [...new Set([...this.chosen.keys(), ...(node >= 0 || module ? [own()[0]] : [])])];
    const button = (text: string, act: () => void): HTMLElement => h("button", { type: "button", click: act }, text);
    const all = [
      button("Leave them out", () => this.page.tryPlan({ remove: wanted() })),
      button("On a stream of their own", () => this.page.tryPlan({ "on-stream": wanted() })),
      ...FUSIONS.map(([what, words]) => button(words, () => this.page.tryPlan({ fuse: [what], among: wanted() }))),
    ];
    if (node < 0 && !module) return [h("div", { class: "tools" }, ...all)];
    all.push(button("Keep it selected", () => { const [key, words] = own(); this.chosen.set(key, words); fill(); }));
    if (alike > 1) all.unshift(h("label", { class: "box" }, whole, `all ${plural(alike, "op")} of this name`));
    const lines = [h("div", { class: "tools" }, ...all)];
    const part = ops.sized(node);
    const sizes = SIZES[part.split("[")[0]!];
    if (sizes) {
      const size = h("select", { "aria-label": `Which size of ${part}` }, ...sizes.map((one) => h("option", { value: one }, one)));
      const value = h("input", { type: "number", min: 1, step: 1, "aria-label": `What it becomes` });
      lines.push(h("div", { class: "tools" }, `${part}.`, size, " = ", value, button("Resize", () => { if (value.value) this.page.tryPlan({ set: [`${part}.${size.value}=${value.value}`] }); else value.focus(); })));
    }
    return lines;
  }
}
