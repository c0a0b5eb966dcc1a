// The answer: the step time, its causes, and suggestions to shorten it.

import { ok, reason, type Doubt, type Head, type Predicted, type Suggested } from "../data";
import { bar, h, section } from "../dom";
import { count, ms, percent, plural, signed } from "../format";
import type { Page } from "../main";
import { variable } from "../theme";

/** Samples per second, and the batch size. */
function rate(predicted: Predicted): string | null {
  if (!predicted.samples_per_s || !predicted.batch) return null;
  return `${count(Math.round(predicted.samples_per_s))} samples/s at batch ${count(predicted.batch)}`;
}

/** Source of the host's times, and the assumed slowness of the host. */
function host(predicted: Predicted): string {
  const than = predicted.host_slower_than;
  return than ? `${predicted.host} x ${than.times}` : predicted.host;
}

/** The first lines: step, interval, samples per second, host, doubts. */
export function headline(head: Head): HTMLElement {
  const { predicted } = head;
  const unknown = predicted.doubts.some((doubt) => doubt.no_estimate);
  const where = predicted.device ? `on ${predicted.device}` : "";
  const number = unknown
    ? h("span", { class: "step" }, "no estimate")
    : h("span", { class: "step" }, ms(predicted.step_ms), h("small", {}, " ms a step"));
  const interval = predicted.interval_ms && !unknown
    ? h("span", { class: "interval" }, `${percent(predicted.interval_level).replace(".0", "")} within ${ms(predicted.interval_ms[0])} to ${ms(predicted.interval_ms[1])} ms`)
    : null;
  const measured = head.measured_ms !== null && head.predicted.kernels === "measured"
    ? h("span", { class: "interval" }, `measured ${ms(head.measured_ms)} ms without the profiler`)
    : null;
  return h("div", { class: "headline" },
    h("h1", {}, h("span", { class: "title" }, head.title), h("span", { class: "quiet" }, ` ${where}`)),
    h("p", { class: "first" }, number, interval, unknown ? null : said(rate(predicted)), said(`host ${host(predicted)}`), measured),
    doubts(predicted.doubts));
}

function said(text: string | null): HTMLElement | null {
  return text === null ? null : h("span", { class: "interval" }, text);
}

export function doubts(all: Doubt[]): HTMLElement | null {
  if (all.length === 0) return null;
  return h("ul", { class: "doubts", "aria-label": "What speaks against it" }, ...all.map((doubt) => h("li", {}, doubt.text)));
}

function idle(head: Head): HTMLElement {
  const { predicted } = head;
  const parts = [{ name: "device active", value: predicted.active_ms ?? 0, colour: variable("--active"), shown: `${ms(predicted.active_ms ?? 0)} ms` }];
  head.causes.forEach((cause, at) => {
    const value = predicted.idle_ms?.[cause.key] ?? 0;
    if (value > 0) parts.push({ name: `idle: ${cause.name}`, value, colour: variable(`--cause-${at}`), shown: `${ms(value)} ms` });
  });
  const share = percent(predicted.utilisation ?? 0);
  return section("Is the device busy?",
    h("p", {}, `It works ${share} of the step${head.bound[0] ? `; the step waits most for the ${head.bound[0].place}` : ""}.`),
    bar(parts, `Device active ${share}, idle by cause`, "device"));
}

function blame(head: Head): HTMLElement {
  const colours: Record<string, string> = { host: variable("--phase-1"), device: variable("--active"), launch: variable("--cause-6"), return: variable("--cause-4") };
  const total = head.runs.reduce((sum, run) => sum + run.ms, 0) || 1;
  const parts = head.bound.map((bound) => ({
    name: bound.place, value: bound.share, colour: colours[bound.place] ?? variable("--quiet"), shown: `${ms(bound.share * head.predicted.step_ms)} ms`,
  }));
  const runs = head.runs.map((run) => h("li", {},
    h("span", { class: "length", style: `width:${Math.max(1, (100 * run.ms) / total)}%;background:${colours[run.place] ?? "gray"}` }),
    h("span", {}, h("strong", {}, `${ms(run.ms)} ms`), ` ${run.place}, ${run.phase}: `, h("span", { class: "names" }, run.names.join(", ")))));
  return section("What makes it as long as it is",
    h("p", {}, "The critical path: the chain of host time and device work, each waiting for the one before. Only what is on it makes the step shorter."),
    bar(parts, "The critical path by place", "place"),
    h("h3", {}, "In order"), h("ol", { class: "runs" }, ...runs));
}

function suggestion(page: Page, found: Suggested, most: number): HTMLElement {
  const { after } = found;
  const helps = found.saves_ms > 0;
  const width = most > 0 ? Math.max(0, (100 * found.saves_ms) / most) : 0;
  return h("tr", {},
    h("th", { scope: "row" }, h("details", {},
      h("summary", {}, found.name),
      h("ul", {}, ...found.what.map((line) => h("li", {}, line)), ...found.why.map((line) => h("li", { class: "quiet" }, line))),
      h("p", {}, `Effort: ${found.effort}. Risk: ${found.risk}.`),
      h("button", { type: "button", class: "plain", click: () => { page.graph.showRule(found.name); page.go("graph"); } }, "Show what it changes"))),
    h("td", { class: "number" }, h("span", { class: helps ? "helps" : "quiet" }, signed(found.saves_ms))),
    h("td", { class: "gain", "aria-hidden": "true" }, h("span", { style: `width:${width}%` })),
    h("td", { class: "number" }, ms(after.step_ms)),
    h("td", { class: "number" }, `${ms(after.interval_ms[0])} to ${ms(after.interval_ms[1])}`));
}

function ranked(page: Page): HTMLElement {
  const explained = ok(page.head.explained);
  const title = "What would make it shorter";
  if (!explained) return section(title, h("p", { class: "quiet" }, `Nothing can be said of changes: ${reason(page.head.explained)}`));
  const most = Math.max(0, ...explained.suggestions.map((found) => found.saves_ms), explained.together?.saves_ms ?? 0);
  const heads = ["change", "saves, ms", "", "then, ms", "90 % within, ms"];
  const rows = explained.suggestions.map((found) => suggestion(page, found, most));
  const { together } = explained;
  if (together) {
    rows.unshift(h("tr", { class: "together" },
      h("th", { scope: "row" }, `together: ${together.names.join(" + ")}`),
      h("td", { class: "number" }, h("span", { class: "helps" }, signed(together.saves_ms))),
      h("td", { class: "gain", "aria-hidden": "true" }, h("span", { style: `width:${(100 * together.saves_ms) / (most || 1)}%` })),
      h("td", { class: "number" }, ms(together.after.step_ms)),
      h("td", { class: "number" }, `${ms(together.after.interval_ms[0])} to ${ms(together.after.interval_ms[1])}`)));
  }
  const not = explained.not_applicable.map((rule) => h("li", {}, h("strong", {}, rule.name), ` ${rule.reason}`));
  return section(title,
    h("p", {}, "Each change is tried alone, and the best of them together; a change that costs time is listed too."),
    rows.length > 0 ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
      h("table", { class: "data ranked" },
        h("thead", {}, h("tr", {}, ...heads.map((text, at) => text === "" ? h("td", { "aria-hidden": "true" }) : h("th", { scope: "col", class: at > 0 ? "number" : null }, text)))),
        h("tbody", {}, ...rows))) : h("p", {}, "No change applies."),
    not.length > 0 ? h("details", {}, h("summary", {}, `${plural(not.length, "change")} that ${not.length === 1 ? "does" : "do"} not apply`), h("ul", {}, ...not)) : null);
}

/** Changes that make the step fit the GPU's memory, if it does not. */
function fitting(head: Head): HTMLElement | null {
  const tried = ok(head.explained)?.to_fit ?? [];
  if (tried.length === 0) return null;
  const number = (text: string): HTMLElement => h("td", { class: "number" }, text);
  const rows = tried.map((remedy) => h("tr", {}, h("th", { scope: "row" }, remedy.name), h("td", {}, h("code", {}, remedy.options)),
    ...(remedy.reason === null
      ? [number(remedy.fits ? "yes" : "no"), number(`${((remedy.peak_mb ?? 0) / 1000).toFixed(1)} GB`), number(ms(remedy.step_ms ?? 0)),
        number(remedy.samples_per_s === null ? "" : count(Math.round(remedy.samples_per_s)))]
      : [h("td", { colspan: 4 }, `does not apply: ${remedy.reason}`)])));
  const heads = ["change", "options", "fits", "memory", "step, ms", "samples/s"];
  return section("What would make it fit", h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes that save memory" },
    h("table", { class: "data" }, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, ...rows))));
}

function parts(head: Head): HTMLElement {
  const { predicted } = head;
  const facts: [string, string][] = [];
  if (predicted.peak_mb?.total !== undefined) facts.push(["most memory needed", `${count(Math.round(predicted.peak_mb.total))} MB`]);
  facts.push(["host times", host(predicted)], ["kernel times", predicted.kernels], ["process", predicted.process]);
  facts.push(["recorded", `${plural(predicted.steps.count, "step")}, ${predicted.steps.source}`], ["input", predicted.input]);
  const rows = (predicted.phases ?? []).filter((part) => part.host_ms > 0 || part.device_ms > 0).map((part) => h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "swatch", style: `background:${variable(`--phase-${head.phases.indexOf(part.name)}`)}` }), part.name),
    h("td", { class: "number" }, ms(part.host_ms)), h("td", { class: "number" }, ms(part.device_ms))));
  return section("By part of the step",
    h("div", { class: "columns" },
      h("table", { class: "data" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "part"), h("th", { scope: "col", class: "number" }, "host, ms"), h("th", { scope: "col", class: "number" }, "device, ms"))), h("tbody", {}, ...rows)),
      h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
}

/** The view of the answer. */
export function answer(page: Page): HTMLElement {
  const { head } = page;
  return h("div", { class: "answers" }, fitting(head), idle(head), ranked(page), blame(head), parts(head));
}
