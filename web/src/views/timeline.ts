// The timeline: lanes of slices, drawn on a canvas at the level of detail that fits.

import type { Block, SideData } from "../data";
import { h } from "../dom";
import { count, plural, short, time } from "../format";
import type { Page } from "../main";
import { chromeTrace, download, open } from "../perfetto";
import { groupOf, Side, type Row } from "../rows";
import { theme, type Theme } from "../theme";
import { listen } from "./gestures";
import { inView, key } from "./inview";
import { draw, layout } from "./lanes";
import { HEADER, type Found, type Place } from "./scene";

const KINDS = ["op", "annotation", "runtime call", "kernel", "copy", "memset"];
/** Shortest visible range, in milliseconds. */
const SHORTEST = 2e-5;

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { tabindex: 0, role: "img" });
  private readonly scroller = h("div", { class: "lanes" });
  private readonly spacer = h("div", { class: "spacer" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly told = h("p", { class: "quiet", role: "status" });
  private readonly found = h("span", { class: "quiet", role: "status" });
  private readonly chosen = h("div", { class: "chosen", "aria-live": "polite" });
  private readonly input: HTMLInputElement;
  private readonly choices = h("span", { class: "choices", role: "group", "aria-label": "Steps shown" });
  private readonly listed = h("div", {});
  private readonly list: HTMLDetailsElement;
  private sides: Side[];
  private shown = new Set<number>();
  private places: Place[] = [];
  private from = 0;
  private to = 1;
  private colours: Theme = theme();
  private selected: Found | null = null;
  private hits: Found[] = [];
  private hit = -1;
  private pending = false;
  private width = 0;

  constructor(private readonly page: Page) {
    this.sides = page.head.sides.map((side) => new Side(side, page.block));
    this.sides.forEach((_, at) => this.shown.add(at));
    this.input = h("input", { type: "search", placeholder: "Search  ( / )", "aria-label": "Search slices by name", input: () => this.search(this.input.value), keydown: (event: KeyboardEvent) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") { this.find(""); this.canvas.focus(); }
      event.stopPropagation();
    } });
    const button = (text: string, label: string, click: () => void): HTMLElement => h("button", { type: "button", title: label, "aria-label": label, click }, text);
    this.list = h("details", { class: "inview", toggle: () => this.tell() }, h("summary", {}, "What is in view, as a table"), this.listed) as HTMLDetailsElement;
    this.scroller.append(this.spacer, this.canvas);
    this.element = h("div", { class: "timeline" },
      h("div", { class: "tools" },
        this.input, this.found,
        button("\u2212", "Zoom out", () => this.zoom(1.6)), button("+", "Zoom in", () => this.zoom(1 / 1.6)), button("Fit", "Fit all of the step", () => this.fit()),
        this.choices,
        h("span", { class: "push" }),
        h("button", { type: "button", click: () => this.perfetto() }, page.served ? "Open in Perfetto" : "Save for Perfetto")),
      this.told, key(page.head), h("div", { class: "framed" }, this.scroller, this.tip),
      h("p", { class: "quiet keys" }, "W S or + \u2212 zoom, A D or arrows move, 0 shows all, / searches, Enter finds the next, Esc lets go. Drag to move, Ctrl and wheel to zoom."),
      this.chosen, this.list);
    this.listen();
    this.choose();
    this.arrange();
    this.fit();
  }

  /** Adds a step, or replaces the one with the same name. */
  add(data: SideData, block: Block): void {
    const side = new Side(data, block);
    const at = this.sides.findIndex((known) => known.name === side.name);
    const place = at < 0 ? this.sides.length : at;
    this.sides[place] = side;
    this.shown.add(place);
    this.selected = null;
    this.choose();
    this.arrange();
    this.search(this.input.value);
    this.fit();
  }

  /** Searches for a name. */
  find(name: string): void {
    this.input.value = name;
    this.search(name);
    if (name) this.next(1);
  }

  recolour(): void {
    this.colours = theme();
    this.draw();
  }

  resize(): void {
    requestAnimationFrame(() => this.draw());
  }

  /** Duration of the longest displayed step, in milliseconds. */
  private get longest(): number {
    return Math.max(...this.sides.filter((_, at) => this.shown.has(at)).map((side) => side.ms), 1e-6);
  }

  private choose(): void {
    this.choices.replaceChildren(...this.sides.map((side, at) => {
      const box = h("input", { type: "checkbox", change: () => {
        this.shown[box.checked ? "add" : "delete"](at);
        this.arrange();
        this.draw();
      } });
      box.checked = this.shown.has(at);
      return h("label", {}, box, side.name);
    }));
  }

  private arrange(): void {
    this.places = layout(this.sides.filter((_, at) => this.shown.has(at)));
    const height = this.places.reduce((most, place) => Math.max(most, place.y + place.height), 0) + 8;
    this.spacer.style.height = `${height}px`;
    const sums = this.sides.filter((_, at) => this.shown.has(at)).map((side) => {
      const [ops, calls, device] = side.counts();
      const without = side.data.without_time > 0 ? `, ${count(side.data.without_time)} without a time in this step` : "";
      return `${side.name}: ${plural(side.data.slices, "slice")} (${plural(ops, "op")}, ${plural(calls, "call")}, ${count(device)} on the device${without})`;
    });
    this.told.textContent = `${sums.join("; ")}. None is left out: where slices are shorter than a pixel, one mark stands for several.`;
    this.canvas.setAttribute("aria-label", `Timeline. ${sums.join("; ")}. The table below says what is in view.`);
  }

  fit(): void {
    this.look(0, this.longest * 1.002);
  }

  private look(from: number, to: number): void {
    const whole = this.longest * 1.05;
    const span = Math.min(Math.max(to - from, SHORTEST), whole);
    this.from = Math.max(-0.02 * span, Math.min(from, whole - span));
    this.to = this.from + span;
    this.draw();
  }

  private zoom(by: number, around = (this.from + this.to) / 2): void {
    this.look(around - (around - this.from) * by, around + (this.to - around) * by);
  }

  private move(by: number): void {
    const span = this.to - this.from;
    this.look(this.from + by * span, this.to + by * span);
  }

  private search(text: string): void {
    const wanted = text.trim().toLowerCase();
    [this.hits, this.hit] = [[], -1];
    let sum = 0;
    for (const side of this.sides) {
      const names = wanted ? new Set(side.block.texts.flatMap((name, at) => name.toLowerCase().includes(wanted) ? [at] : [])) : null;
      for (const lane of side.lanes) for (const row of lane.rows) sum += row.search(names);
    }
    this.found.textContent = wanted ? `${plural(sum, "slice")} of that name` : "";
    if (wanted && sum > 0) {
      for (const place of this.places) {
        const { row } = place;
        if (!row) continue;
        for (let i = 0; i < row.size; i++) if (row.matching(i, i + 1)) this.hits.push({ place, row, slice: i });
      }
      this.hits.sort((a, b) => a.place.side.tick * a.row.start[a.slice]! - b.place.side.tick * b.row.start[b.slice]!);
    }
    this.draw();
  }

  private next(step: number): void {
    if (this.hits.length === 0) return;
    this.hit = (this.hit + step + this.hits.length) % this.hits.length;
    const found = this.hits[this.hit]!;
    this.select(found);
    const { side } = found.place;
    const [start, length] = [found.row.start[found.slice]! * side.tick, found.row.length[found.slice]! * side.tick];
    const span = Math.max(this.to - this.from > this.longest ? this.longest / 8 : this.to - this.from, length * 1.5);
    this.look(start + length / 2 - span / 2, start + length / 2 + span / 2);
    this.scroller.scrollTop = found.place.y - this.scroller.clientHeight / 2;
  }

  private select(found: Found | null): void {
    this.selected = found;
    this.chosen.replaceChildren();
    if (found) this.describe(found);
    this.draw();
  }

  private describe({ place, row, slice }: Found): void {
    const { side } = place;
    const name = side.block.text(row.name[slice]!);
    const nanos = side.data.tick_ns;
    const op = row.op(slice) - 1;
    const facts: [string, string][] = [
      ["what", `${KINDS[row.kind[slice]!]}, ${this.page.head.phases[row.phase[slice]!]}`],
      ["where", `${side.name}, ${place.title}`],
      ["takes", time(row.length[slice]! * nanos)],
      ["begins", `${time(row.start[slice]! * nanos)} into the step`],
    ];
    if (op >= 0) {
      facts.push(["op", this.page.graph.pathOf(op, side.name)]);
      const module = this.page.graph.moduleOf(op, side.name);
      if (module) facts.push(["module", module]);
    }
    this.chosen.append(h("h2", {}, name), h("dl", {}, ...facts.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])));
    if (op >= 0 && this.page.graph.has(op, side.name)) this.chosen.append(h("button", { type: "button", click: () => { this.page.go("graph"); this.page.graph.showOp(op, side.name); } }, "Show in the graph"));
  }

  private at(x: number, y: number): Found | null {
    const place = this.places.find((one) => y >= one.y && y < one.y + one.height);
    if (!place?.row) return null;
    const { row, side } = place;
    const tick = this.moment(x) / side.tick;
    const reach = ((this.to - this.from) / this.width) * 1.5 / side.tick;
    const slice = row.after(tick - reach);
    return slice < row.size && row.start[slice]! <= tick + reach ? { place, row, slice } : null;
  }

  private moment(x: number): number {
    return this.from + ((x - HEADER) / Math.max(1, this.width - HEADER)) * (this.to - this.from);
  }

  private hover(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop];
    const place = this.places.find((one) => y >= one.y && y < one.y + one.height);
    const found = x > HEADER ? this.at(x, y) : null;
    let words = "";
    if (found) words = this.wordsOf(found.row, found);
    else if (place && x > HEADER) words = place.words?.(this.moment(x) / place.side.tick, this.page.head.causes) ?? "";
    this.tip.hidden = words === "";
    this.tip.textContent = words;
    const frame = this.scroller.getBoundingClientRect();
    this.tip.style.transform = `translate(${Math.min(event.clientX - frame.left + 14, frame.width - 320)}px, ${event.clientY - frame.top + 16}px)`;
  }

  private wordsOf(row: Row, found: Found): string {
    const { side } = found.place;
    const groups = row.level(((this.to - this.from) / this.width / side.tick) * 1.5);
    const whole = `${short(side.block.text(row.name[found.slice]!))}\n${time(row.length[found.slice]! * side.data.tick_ns)}`;
    if (!groups) return whole;
    const group = groupOf(groups.first, found.slice);
    const many = groups.first[group + 1]! - groups.first[group]!;
    return many > 1 ? `${count(many)} slices, one of them ${whole}` : whole;
  }

  private listen(): void {
    listen(this.element, this.scroller, this.canvas, {
      zoom: (by, x) => this.zoom(by, x === undefined ? undefined : this.moment(x)),
      move: (by) => this.move(by),
      drag: (from, pixels) => {
        const span = this.to - this.from;
        const begin = from - (pixels / (this.width - HEADER)) * span;
        this.look(begin, begin + span);
      },
      begin: () => this.from,
      pick: (x, y) => this.select(this.at(x, y)),
      hover: (event) => this.hover(event),
      leave: () => { this.tip.hidden = true; },
      redraw: () => this.draw(),
      fit: () => this.fit(),
      search: () => this.input.focus(),
      release: () => { this.find(""); this.select(null); },
      next: (step) => this.next(step),
    }, this.page.signal);
  }

  private draw(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  private paint(): void {
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    if (width === 0 || height === 0) return;
    const began = performance.now();
    const dots = window.devicePixelRatio || 1;
    this.width = width;
    const [across, down] = [Math.round(width * dots), Math.round(height * dots)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      [this.canvas.width, this.canvas.height] = [across, down];
      this.canvas.style.cssText = `width:${width}px;height:${height}px`;
    }
    const context = this.canvas.getContext("2d")!;
    context.setTransform(dots, 0, 0, dots, 0, 0);
    draw(context, {
      width, height, top: this.scroller.scrollTop, from: this.from, to: this.to, colours: this.colours, places: this.places,
      selected: this.selected, searching: this.input.value.trim() !== "",
    });
    this.canvas.dataset.paintMs = (performance.now() - began).toFixed(1);
    this.tell();
  }

  /** Updates the table of the contents of the canvas. */
  private tell(): void {
    if (this.list.open) this.listed.replaceChildren(...inView(this.places, this.from, this.to));
  }

  private perfetto(): void {
    const pieces = chromeTrace(this.sides, this.page.head.phases);
    if (this.page.served) open(pieces, this.page.head.title);
    else download(pieces, `${this.page.head.title.replace(/[^\w.-]+/g, "_")}.trace.json`);
  }
}
