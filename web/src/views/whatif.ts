// Changes to try, computed by the program that serves the page.

import { answered, type Changed, type Half } from "../data";
import { bar, h, section } from "../dom";
import { count, ms, percent, signed } from "../format";
import type { Page } from "../main";
import { post } from "../served";
import { variable } from "../theme";
import { doubts } from "./answer";

const FUSE = ["embedding-bags", "optimizer", "elementwise", "linear"];
const FLAGS: [string, string][] = [
  ["channels-last", "channels last"], ["prefetch-inputs", "copy the next batch ahead"], ["reorder", "copy inputs where they are first taken"],
  ["no-sync", "do not read numbers back"], ["cuda-graph", "CUDA graph"],
];
const NUMBERS: [string, string, string][] = [
  ["batch", "batch", "1"], ["recorded-batch", "batch recorded, where not known", "1"], ["batch-dim", "dimension of the batch", "1"], ["accumulate", "batches an update", "1"], ["streams", "streams", "1"], ["checkpoint", "checkpoint segments (0: each block)", "1"], ["host-speed", "host takes so many times as long", "any"],
];

/** Names of rules on the command line, where they differ from the rule's name. */
const RULES: Record<string, Record<string, unknown>> = {
  "fuse-embedding-bags": { fuse: ["embedding-bags"] }, "fuse-optimizer": { fuse: ["optimizer"] }, "fuse-elementwise": { fuse: ["elementwise"] },
  "fuse-linear": { fuse: ["linear"] }, operators: { operators: "steptime" }, "operators-fbgemm": { operators: "fbgemm" },
  tf32: { dtype: "tf32" }, bf16: { dtype: "bf16" },
};

export class WhatIf {
  readonly element: HTMLElement;
  private readonly result = h("div", { "aria-live": "polite" });

  constructor(private readonly page: Page) {
    this.element = page.served ? h("div", { class: "answers" }, this.form(), this.result) : this.told();
  }

  private told(): HTMLElement {
    const { input, kernels } = this.page.head.predicted;
    const device = kernels === "measured" ? "" : ` --device ${kernels}`;
    return section("Try changes",
      h("p", {}, "This page is a file: it asks nobody. Serve it to try any change on it:"),
      h("pre", {}, `steptime view ${input}${device}`),
      h("p", {}, "or ask on the command line:"), h("pre", {}, `steptime whatif ${input}${device} --batch 8192 --fuse embedding-bags --cuda-graph`),
      h("p", {}, "What each change alone would bring is under Answer; what it does to the ops is under Graph."));
  }

  private form(): HTMLElement {
    const number = ([name, label, step]: [string, string, string]): HTMLElement =>
      h("label", {}, label, h("input", { name, type: "number", min: 0, step, placeholder: name === "batch" ? String(this.page.head.predicted.batch ?? "") : null }));
    const box = (name: string, value: string, label: string): HTMLElement => h("label", { class: "box" }, h("input", { name, value, type: "checkbox" }), label);
    const choice = (name: string, label: string, all: string[]): HTMLElement =>
      h("label", {}, label, h("select", { name }, h("option", { value: "" }, "as it is"), ...all.map((one) => h("option", { value: one }, one))));
    const button = h("button", { type: "submit", class: "main" }, "Try it");
    return section("Try changes",
      h("form", { submit: (event: SubmitEvent) => { event.preventDefault(); void this.ask(this.plan(event.target as HTMLFormElement), button); } },
        h("fieldset", {}, h("legend", {}, "Sizes"), ...NUMBERS.map(number),
          h("label", {}, "a size of the model", h("input", { name: "set", placeholder: "tables[0].rows=1000000" }))),
        h("fieldset", {}, h("legend", {}, "Fuse"), ...FUSE.map((name) => box("fuse", name, name.replace("-", " ")))),
        h("fieldset", {}, h("legend", {}, "Run otherwise"), choice("operators", "operators of", ["steptime", "fbgemm"]), choice("dtype", "matrix products in", ["tf32", "bf16"]),
          ...FLAGS.map(([name, label]) => box(name, "true", label))),
        button));
  }

  /** The changes of a form, with the names of the command line. */
  private plan(form: HTMLFormElement): Record<string, unknown> {
    const fields = new FormData(form);
    const plan: Record<string, unknown> = {};
    for (const [name] of NUMBERS) {
      const text = String(fields.get(name) ?? "").trim();
      if (text) plan[name] = Number(text);
    }
    for (const name of ["operators", "dtype", "set"]) if (fields.get(name)) plan[name] = String(fields.get(name)).trim();
    for (const [name] of FLAGS) if (fields.get(name)) plan[name] = true;
    if (fields.getAll("fuse").length > 0) plan.fuse = fields.getAll("fuse");
    return plan;
  }

  /** Tries a single rule. */
  tryRule(rule: string): void {
    this.tryPlan(RULES[rule] ?? { [rule]: true });
  }

  /** Tries a plan, with the names of the command line. */
  tryPlan(plan: Record<string, unknown>): void {
    this.page.go("whatif");
    void this.ask(plan, null);
  }

  private async ask(plan: Record<string, unknown>, button: HTMLButtonElement | null): Promise<void> {
    if (button) button.disabled = true;
    this.result.replaceChildren(h("p", { class: "quiet" }, "Simulating ..."));
    try {
      const reply = await post("whatif", { ...plan, device: this.page.device });
      const { after, block } = answered(await reply.arrayBuffer());
      this.page.timeline.add(after.side, block);
      this.page.graph.setAfter(after, block);
      this.result.replaceChildren(this.show(after.changed));
    } catch (error) {
      this.result.replaceChildren(h("p", { class: "doubts", role: "alert" }, (error as Error).message));
    } finally {
      if (button) button.disabled = false;
    }
  }

  private half(title: string, half: Half): HTMLElement {
    const parts = [{ name: "device active", value: half.active_ms, colour: variable("--active"), shown: `${ms(half.active_ms)} ms` }];
    this.page.head.causes.forEach((cause, at) => {
      const value = half.idle_ms[cause.key] ?? 0;
      if (value > 0) parts.push({ name: `idle: ${cause.name}`, value, colour: variable(`--cause-${at}`), shown: `${ms(value)} ms` });
    });
    const memory = half.peak_mb?.total;
    return h("div", { class: "half" }, h("h3", {}, title),
      h("p", { class: "first" }, h("span", { class: "step" }, ms(half.step_ms), h("small", {}, " ms")),
        h("span", { class: "interval" }, `90 % within ${ms(half.interval_ms[0])} to ${ms(half.interval_ms[1])} ms${memory === undefined ? "" : `; ${count(Math.round(memory))} MB`}`),
        half.samples_per_s === null ? null : h("span", { class: "interval" }, `${count(Math.round(half.samples_per_s))} samples/s`)),
      bar(parts, `${title}: device active and idle`, "device"));
  }

  private show(changed: Changed): HTMLElement {
    const saved = changed.before.step_ms - changed.after.step_ms;
    return h("div", { class: "answers" }, section(`${signed(-saved)} ms: ${changed.speedup.toFixed(2)} times as fast (${percent(Math.abs(saved) / changed.before.step_ms)} ${saved >= 0 ? "less" : "more"})`,
      h("div", { class: "halves" }, this.half("Before", changed.before), this.half("After", changed.after)), doubts(changed.doubts)),
    section("Why", h("ul", {}, ...changed.why.map((line) => h("li", {}, line)))),
    section("What was done", h("ul", {}, ...changed.transforms.flatMap((rule) => rule.why.map((line) => h("li", {}, h("strong", {}, `${rule.name}: `), line)))),
      h("p", {}, h("button", { type: "button", click: () => this.page.go("graph") }, "Before and after in the graph"), " ", h("button", { type: "button", click: () => this.page.go("timeline") }, "In the timeline"))));
  }
}
