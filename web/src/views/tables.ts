// Ops and kernels as tables.

import type { KernelRow, ModuleTime, OpRow } from "../data";
import { h } from "../dom";
import { count, ms, percent, short } from "../format";
import type { Page } from "../main";
import { table } from "../table";

/** Top-level ops by name. */
export function ops(page: Page): HTMLElement {
  const rows = page.head.predicted.ops ?? [];
  return h("div", {},
    h("p", { class: "intro" }, "Ops that no other op is around, by name. Slack is how much later any part of them could be without a longer step. A name opens the timeline at it."),
    table<OpRow>("Ops", [
      { title: "op", text: (row) => short(row.name), whole: (row) => row.name, wide: true },
      { title: "count", text: (row) => count(row.count), number: (row) => row.count },
      { title: "critical, ms", text: (row) => ms(row.critical_ms), number: (row) => row.critical_ms },
      { title: "host, ms", text: (row) => ms(row.host_ms), number: (row) => row.host_ms },
      { title: "device, ms", text: (row) => ms(row.device_ms), number: (row) => row.device_ms },
      { title: "slack, ms", text: (row) => row.slack_ms === null ? "-" : ms(row.slack_ms), number: (row) => row.slack_ms ?? -1 },
    ], rows, 2, (row) => { page.go("timeline"); page.timeline.find(row.name); }),
    ...modules(page));
}

/** Modules of the model, each including its submodules. */
function modules(page: Page): HTMLElement[] {
  const rows = page.head.predicted.modules ?? [];
  if (rows.length === 0) return [];
  return [
    h("p", { class: "intro" }, "Modules of the model, each with those in it. A name opens the graph at it."),
    table<ModuleTime>("Modules", [
      { title: "module", text: (row) => row.name, whole: (row) => row.name, wide: true },
      { title: "class", text: (row) => row.class },
      { title: "critical, ms", text: (row) => ms(row.critical_ms), number: (row) => row.critical_ms },
      { title: "host, ms", text: (row) => ms(row.host_ms), number: (row) => row.host_ms },
      { title: "device, forward, ms", text: (row) => ms(row.forward_ms), number: (row) => row.forward_ms },
      { title: "device, backward, ms", text: (row) => ms(row.backward_ms), number: (row) => row.backward_ms },
    ], rows, 2, (row) => { page.go("graph"); page.graph.showModule(row.name); }),
  ];
}

/** Kernels, copies and memsets by name. */
export function kernels(page: Page): HTMLElement {
  const rows = page.head.predicted.kernels_by_name ?? [];
  const total = rows.reduce((sum, row) => sum + row.device_ms, 0) || 1;
  return h("div", {},
    h("p", { class: "intro" }, "Kernels, copies and memsets by name, the longest first. A name opens the timeline at it."),
    table<KernelRow>("Kernels", [
      { title: "kernel", text: (row) => short(row.name), whole: (row) => row.name, wide: true },
      { title: "count", text: (row) => count(row.count), number: (row) => row.count },
      { title: "together, ms", text: (row) => ms(row.device_ms), number: (row) => row.device_ms },
      { title: "each, \u00b5s", text: (row) => ((1000 * row.device_ms) / row.count).toFixed(2), number: (row) => row.device_ms / row.count },
      { title: "share", text: (row) => percent(row.device_ms / total), number: (row) => row.device_ms },
    ], rows, 2, (row) => { page.go("timeline"); page.timeline.find(row.name); }));
}
