// The page: the answer first, then one view per tab.

import "./style.css";
import { devices, load, type Block, type Data, type Head } from "./data";
import { h } from "./dom";
import { GpuChooser } from "./gpus";
import { onTheme } from "./theme";
import { answer, headline } from "./views/answer";
import { compare } from "./views/compare";
import { GraphView } from "./views/graph";
import { memory } from "./views/memory";
import { roofline } from "./views/roofline";
import { kernels, ops } from "./views/tables";
import { Timeline } from "./views/timeline";
import { WhatIf } from "./views/whatif";

/** State shared by the views. */
export interface Page {
  readonly head: Head;
  readonly block: Block;
  readonly served: boolean;
  /** The GPU selected on the page; `null` is the recorded one. */
  readonly device: string | null;
  /** Aborted when another GPU is shown. */
  readonly signal: AbortSignal;
  readonly timeline: Timeline;
  readonly graph: GraphView;
  /** Opens a view. */
  go: (name: string) => void;
  /** Tries a change, by its rule's name. */
  tryRule: (rule: string) => void;
  /** Tries changes, with the names of the command line. */
  tryPlan: (plan: Record<string, unknown>) => void;
}

/** Shared state of one GPU. The two views that read many columns are made on first use. */
class Shared implements Page {
  readonly served = document.documentElement.dataset.mode === "served";
  go: (name: string) => void = () => {};
  tryRule: (rule: string) => void = () => {};
  tryPlan: (plan: Record<string, unknown>) => void = () => {};
  private lanes: Timeline | null = null;
  private tree: GraphView | null = null;
  readonly head: Head;
  readonly block: Block;
  private readonly shown = new AbortController();
  readonly signal = this.shown.signal;
  constructor(data: Data, readonly device: string | null) {
    ({ head: this.head, block: this.block } = data);
  }

  get timeline(): Timeline {
    return this.lanes ??= new Timeline(this);
  }

  get graph(): GraphView {
    return this.tree ??= new GraphView(this);
  }

  /** Ends this page, which another one replaces. */
  end(): void {
    this.shown.abort();
  }

  recolour(): void {
    this.lanes?.recolour();
    this.tree?.recolour();
  }
}

interface View { name: string; title: string; make: () => HTMLElement; shown?: () => void }

function say(words: string): void {
  document.getElementById("app")?.replaceChildren(h("p", { class: "loading", role: "alert" }, words));
}

function views(page: Page): View[] {
  const whatIf = new WhatIf(page);
  page.tryRule = (rule) => whatIf.tryRule(rule);
  page.tryPlan = (plan) => whatIf.tryPlan(plan);
  const all: View[] = [
    { name: "answer", title: "Answer", make: () => answer(page) },
    { name: "timeline", title: "Timeline", make: () => page.timeline.element, shown: () => page.timeline.resize() },
    { name: "graph", title: "Graph", make: () => page.graph.element, shown: () => page.graph.shown() },
    { name: "whatif", title: "What if", make: () => whatIf.element },
    { name: "roofline", title: "Roofline", make: () => roofline(page.head) },
    { name: "ops", title: "Ops", make: () => ops(page) },
    { name: "kernels", title: "Kernels", make: () => kernels(page) },
    { name: "memory", title: "Memory", make: () => memory(page.head, page.block) },
  ];
  if (page.head.difference) all.push({ name: "compare", title: "Comparison", make: () => compare(page.head) });
  return all;
}

/** The elements of the page that depend on the GPU. */
interface Places { top: HTMLElement; nav: HTMLElement; main: HTMLElement }

function show(page: Shared, { top, nav, main }: Places): void {
  const all = views(page);
  const panels = new Map<string, HTMLElement>();
  const tabs = all.map((view) => h("button", {
    type: "button", role: "tab", id: `tab-${view.name}`, "aria-controls": `view-${view.name}`, click: () => page.go(view.name),
  }, view.title));
  for (const view of all) {
    const panel = h("div", { role: "tabpanel", id: `view-${view.name}`, "aria-labelledby": `tab-${view.name}`, hidden: true, class: `view ${view.name}` });
    panels.set(view.name, panel);
  }
  page.go = (name) => {
    const at = Math.max(0, all.findIndex((view) => view.name === name));
    all.forEach((view, index) => {
      const panel = panels.get(view.name)!;
      const chosen = index === at;
      tabs[index]!.setAttribute("aria-selected", String(chosen));
      tabs[index]!.tabIndex = chosen ? 0 : -1;
      panel.hidden = !chosen;
      if (!chosen) return;
      if (panel.childElementCount === 0) panel.append(view.make());
      view.shown?.();
    });
    if (location.hash !== `#${all[at]!.name}`) history.replaceState(null, "", `#${all[at]!.name}`);
  };
  const list = h("div", { role: "tablist", "aria-label": "Views", class: "tabs", keydown: (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = (tabs.findIndex((tab) => tab.tabIndex === 0) + step + tabs.length) % tabs.length;
    page.go(all[at]!.name);
    tabs[at]!.focus();
    event.preventDefault();
  } }, ...tabs);
  top.replaceChildren(headline(page.head));
  nav.replaceChildren(list);
  main.replaceChildren(...panels.values());
  addEventListener("hashchange", () => page.go(location.hash.slice(1)), { signal: page.signal });
  page.go(location.hash.slice(1));
  onTheme(() => {
    for (const view of all) if (!["timeline", "graph", "whatif"].includes(view.name)) panels.get(view.name)!.replaceChildren();
    page.recolour();
    page.go(location.hash.slice(1));
  }, page.signal);
  requestAnimationFrame(() => setTimeout(() => {
    performance.mark("interactive");
    document.documentElement.dataset.ready = "true";
  }));
}

async function begin(): Promise<void> {
  if (!("DecompressionStream" in window)) {
    say("This browser cannot unpack the page's data: it lacks DecompressionStream. Chrome and Edge have it since version 80, Safari since 16.4, Firefox since 113: open the page with one of these.");
    return;
  }
  try {
    const [data, known] = await Promise.all([load(), devices()]);
    const places = { top: h("div"), nav: h("nav", { "aria-label": "Views" }), main: h("main") };
    let page: Shared | null = null;
    const turn = (data: Data, device: string | null): void => {
      page?.end();
      page = new Shared(data, device);
      show(page, places);
    };
    const chooser = known && new GpuChooser(known, turn);
    document.getElementById("app")!.replaceChildren(h("header", {}, places.top, chooser?.element, places.nav), places.main);
    turn(data, known?.all[known.chosen] ?? null);
  } catch (error) {
    say(`The page's data cannot be read: ${error instanceof Error ? error.message : String(error)}. Make the page again.`);
  }
}

void begin();
