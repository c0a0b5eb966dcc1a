// Every view of every kind of input: present, without errors, without requests, and accessible.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { column, data, page, place, run } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const INPUTS = [
  ["examples/dlrm_default_2048"], ["examples/dlrm_ddp_2048"], ["examples/dlrm_mlperf_2048"], ["examples/resnet50_32"],
  ["examples/operators/dlrm_8192"],
  ["examples/dlrm_default_2048/et.json.gz", "--device", "h200"],
  ["crates/model/aten/tests/data/dlrm_cpu.json.gz", "--device", "h200"],
  ["crates/model/predict/tests/data/tiny_transformer", "--device", "h200"],
  ["examples/dlrm_default_2048/kineto.json.gz"],
  ["examples/dlrm_default_2048", "--against", "examples/dlrm_default_fused_2048"],
];
const VIEWS = { answer: ".bar", timeline: "canvas", graph: '[role="tree"]', whatif: "pre", roofline: "section", ops: "table", kernels: "table", memory: "section" };

const browsers = {};
before(async () => { for (const scheme of ["light", "dark"]) browsers[scheme] = await launch(scheme); });
after(async () => { for (const browser of Object.values(browsers)) await browser.close(); });

for (const input of INPUTS) {
  test(`all views of ${input.join(" ")}`, async () => {
    const path = page(...input);
    const { head } = data(path);
    const views = head.difference ? { ...VIEWS, compare: "table" } : VIEWS;
    for (const [scheme, { context }] of Object.entries(browsers)) {
      const { page: tab, asked, errors } = await open(context, `file://${path}`);
      await tab.evaluate(axe);
      const first = await tab.textContent(".headline");
      assert.ok(first.includes(head.title), first);
      if (head.predicted.doubts.some((doubt) => doubt.no_estimate)) assert.match(first, /no estimate/);
      else assert.match(first, /\d ms a step.*within [\d.]+ to [\d.]+ ms/);
      for (const doubt of head.predicted.doubts) assert.ok(first.includes(doubt.text), doubt.text);
      const violations = [];
      for (const [view, wanted] of Object.entries(views)) {
        await tab.click(`#tab-${view}`);
        await tab.waitForSelector(`#view-${view} ${wanted}`);
        const found = await tab.evaluate(async (view) => (await axe.run({ include: [["header"], [`#view-${view}`]] })).violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`), view);
        violations.push(...found.map((one) => `${view}, ${scheme}: ${one}`));
      }
      assert.deepEqual(violations, []);
      assert.deepEqual([asked, errors], [[], []], scheme);
      await tab.close();
    }
  });
}

test("the timeline holds every op, call and activity, on each level of detail", () => {
  const { head, block } = data(page("examples/resnet50_32"));
  // `predict --timeline` uses other code.
  const trace = place("trace.json");
  run("predict", "examples/resnet50_32", "--timeline", trace);
  const events = JSON.parse(readFileSync(trace, "utf8")).traceEvents.filter((event) => event.ph === "X");
  head.sides.forEach((side, at) => {
    const known = events.filter((event) => event.pid === at + 1);
    assert.equal(side.slices, known.length);
    const kinds = { op: 0, annotation: 0, call: 0, device: 0 };
    for (const event of known) kinds[event.cat]++;
    const counted = [0, 0, 0, 0, 0, 0];
    for (const row of side.lanes.flatMap((lane) => lane.rows)) {
      column(block, row.kind).forEach((kind) => counted[kind]++);
      const [start, length] = [column(block, row.start), column(block, row.length)];
      for (let i = 1; i < start.length; i++) assert.ok(start[i - 1] + length[i - 1] <= start[i]);
      for (const level of row.levels) assert.equal(column(block, level.count).reduce((sum, one) => sum + one, 0), start.length);
    }
    assert.deepEqual(counted.slice(0, 3), [kinds.op, kinds.annotation, kinds.call]);
    assert.equal(counted[3] + counted[4] + counted[5], kinds.device);
  });
  assert.ok(head.sides[0].lanes.some((lane) => lane.rows.some((row) => row.levels.length > 0)), "no level of detail");
});

test("the critical path and the waits add up to what the answer says", () => {
  const { head, block } = data(page("examples/dlrm_default_2048"));
  const [side] = head.sides;
  const sum = (place) => column(block, place).reduce((sum, one) => sum + one, 0) * side.tick_ns / 1e6;
  assert.ok(Math.abs(sum(side.path.length) - head.predicted.step_ms) < 1e-3);
  head.causes.forEach(({ key }, at) => assert.ok(Math.abs(sum(side.waits.causes[at]) - head.predicted.idle_ms[key]) < 1e-3, key));
  const most = Math.max(...column(block, head.memory.at_us).map((_, i) => head.memory.kb.reduce((sum, place) => sum + column(block, place)[i], 0)));
  assert.ok(Math.abs(most / 1000 - head.predicted.peak_mb.total) < 0.01, `${most} kB`);
});

test("a table is sorted and filtered; a name leads to the timeline; keys move it", async () => {
  const { page: tab } = await open(browsers.light.context, `file://${page("examples/dlrm_default_2048")}`, "kernels");
  const first = () => tab.textContent("#view-kernels tbody tr:first-child th");
  const longest = await first();
  await tab.click('#view-kernels th button:text("count")');
  assert.equal(await tab.getAttribute('#view-kernels th:nth-child(2)', "aria-sort"), "descending");
  await tab.fill("#view-kernels input", "embedding");
  assert.ok((await tab.textContent("#view-kernels tbody")).toLowerCase().includes("embedding"));
  await tab.fill("#view-kernels input", "");
  await tab.click('#view-kernels th button:text("together")');
  assert.equal(await first(), longest);
  await tab.click("#view-kernels tbody tr:first-child button");
  await tab.waitForSelector("#view-timeline .chosen h2");
  assert.match(await tab.textContent("#view-timeline .tools"), /slices? of that name/);
  await tab.click("#view-timeline details summary");
  await tab.focus("canvas");
  const shown = () => tab.textContent("#view-timeline .inview p");
  const before = await shown();
  await tab.keyboard.press("w");
  await tab.waitForFunction((before) => document.querySelector("#view-timeline .inview p").textContent !== before, before);
  await tab.keyboard.press("0");
  await tab.waitForFunction(() => document.querySelector("#view-timeline .inview p").textContent.includes("between 0 ns"));
  await tab.keyboard.press("/");
  assert.equal(await tab.evaluate(() => document.activeElement.type), "search");
  await tab.keyboard.press("Escape");
  assert.equal(await tab.inputValue("#view-timeline input[type=search]"), "");
  await tab.close();
});

test("the graph of the step that is compared with is there too", async () => {
  const path = page("examples/dlrm_default_2048", "--against", "crates/model/predict/tests/data/tiny_transformer", "--device", "h200");
  const { page: tab, errors } = await open(browsers.light.context, `file://${path}`, "graph");
  const tree = () => tab.textContent('#view-graph [role="tree"]');
  const first = await tree();
  await tab.selectOption('#view-graph label:has-text("Step") select', "second");
  assert.notEqual(await tree(), first);
  assert.ok(await tab.isDisabled('#view-graph label:has-text("Show what a change does") select'));
  await tab.selectOption('#view-graph label:has-text("Ops by") select', "module");
  assert.match(await tree(), /Tiny/);
  await tab.selectOption('#view-graph label:has-text("Step") select', "");
  assert.doesNotMatch(await tree(), /Tiny/);
  assert.deepEqual(errors, []);
  await tab.close();
});

test("ops stand in the modules that ran them, and a module is found by its name", async () => {
  const path = page("crates/model/predict/tests/data/tiny_transformer", "--device", "h200");
  const { head } = data(path);
  const { page: tab, errors } = await open(browsers.light.context, `file://${path}`, "ops");
  await tab.click('#view-ops table button:text("Tiny.blocks.1.mlp.0")');
  const heads = async () => (await tab.locator('#view-graph [role="treeitem"]:visible > .line .label').allTextContents()).map((text) => text.replace("\u25b8", ""));
  const shown = await heads();
  for (const wanted of ["Tiny", "blocks.1 (Block)", "mlp (Sequential)", "0 (Linear)", "optimizer"]) assert.ok(shown.includes(wanted), `${wanted} is not among ${shown}`);
  // The displayed times of a module are those of the answer.
  const { forward_ms, backward_ms } = head.predicted.modules.find(({ name }) => name === "Tiny.blocks.1.mlp.0");
  const told = await tab.textContent("#view-graph .about");
  assert.match(told, /^0 \(Linear\)/);
  const device = Number(told.match(/device([\d.]+) \u00b5s/)[1]);
  assert.ok(Math.abs(device - 1000 * (forward_ms + backward_ms)) < 0.02, `${told} is not ${forward_ms + backward_ms} ms`);
  await tab.selectOption('#view-graph label:has-text("Ops by") select', "phase");
  assert.deepEqual((await heads()).slice(0, 3), ["step", "input", "forward"]);
  assert.deepEqual(errors, []);
  await tab.close();
});

test("the graph opens by keys, and shows what a change does", async () => {
  const { page: tab } = await open(browsers.light.context, `file://${page("examples/dlrm_default_2048")}`, "graph");
  await tab.focus('#view-graph [role="treeitem"]');
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowRight");
  assert.equal(await tab.getAttribute('#view-graph [role="treeitem"][aria-level="2"]', "aria-expanded"), "true");
  await tab.selectOption("#view-graph select", { label: "fuse-embedding-bags" });
  assert.match(await tab.textContent("#view-graph .changes"), /8 aten::embedding_bag|aten::embedding_bag.*removed/s);
  assert.ok(await tab.locator("#view-graph .badge").count() > 0);
  await tab.close();
});
