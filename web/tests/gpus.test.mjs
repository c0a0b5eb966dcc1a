// The GPU that is selected on a served page: its answer equals that of the command line.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync, gzipSync, inflateSync } from "node:zlib";
import { launch, open } from "./browser.mjs";
import { data, page, place, root, run, serve } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const EXAMPLE = "examples/dlrm_default_2048";
const GPU = "header select";

let browser, dark, server;
before(async () => {
  [browser, dark] = [await launch(), await launch("dark")];
  server = await serve(EXAMPLE);
});
after(async () => {
  server.end();
  await browser.close();
  await dark.close();
});

const predicted = (...args) => JSON.parse(run("predict", ...args, "--json"));
const selected = (tab) => tab.locator(`${GPU} option:checked`).textContent();
const shown = (tab, name) => tab.waitForFunction((name) => document.querySelector('header [role="status"]').textContent === `${name} is shown`, name);

/** Milliseconds in the page's format. */
const ms = (value) => value.toFixed(value >= 100 ? 1 : value >= 10 ? 2 : 3);

/** Checks that the first lines show an answer. */
async function isOf(tab, known) {
  const first = await tab.textContent(".headline");
  assert.ok(first.includes(ms(known.step_ms)), `${first} is not ${known.step_ms}`);
  assert.ok(first.includes(`on ${known.device}`), `${first} is not on ${known.device}`);
}

test("every GPU that ships can be chosen, in the order of --device", async () => {
  const { page: tab, asked, errors } = await open(browser.context, server.address);
  const names = await tab.locator(`${GPU} option`).allTextContents();
  const known = JSON.parse(run("device", "list", "--json")).map((device) => device.name);
  assert.deepEqual(names, ["as recorded", ...known]);
  assert.equal(await tab.getByLabel("GPU").evaluate((select) => select.tagName), "SELECT");
  assert.equal(await selected(tab), "as recorded");
  await isOf(tab, predicted(EXAMPLE));
  assert.deepEqual([asked, errors], [[], []]);
  await tab.close();
});

test("what is served for a GPU is what predict says of it, and the page with --device", async () => {
  for (const device of ["t4", "mi300x", null]) {
    const on = device ? ["--device", device] : [];
    const reply = await fetch(`${server.address}data`, { method: "POST", body: JSON.stringify({ device }) });
    const [head, block] = (await reply.text()).trim().split("\n").map((text) => inflateSync(Buffer.from(text, "base64")));
    const written = data(page(EXAMPLE, ...on));
    assert.deepEqual(JSON.parse(head), written.head);
    assert.ok(block.equals(written.block));
    assert.deepEqual(JSON.parse(head).predicted, predicted(EXAMPLE, ...on));
  }
});

test("a GPU is chosen by keyboard, and all views are of it", async () => {
  const { page: tab, asked, errors } = await open(browser.context, server.address, "kernels");
  await tab.focus(GPU);
  await tab.keyboard.type("t4");
  await tab.keyboard.press("Enter");
  await shown(tab, "t4");
  assert.equal(await selected(tab), "t4");
  assert.equal(await tab.evaluate(() => document.activeElement.tagName), "SELECT");
  const known = predicted(EXAMPLE, "--device", "t4");
  await isOf(tab, known);
  // The open view stays open, with the new times.
  const most = known.kernels_by_name[0];
  assert.ok((await tab.textContent("#view-kernels")).includes(most.name));
  await tab.click("#tab-roofline");
  assert.match(await tab.locator("#view-roofline p").first().textContent(), /at the rates of t4 /);
  await tab.click("#tab-timeline");
  await tab.waitForSelector("#view-timeline canvas");
  // Changes apply to that GPU, too.
  await tab.click("#tab-whatif");
  await tab.fill("#view-whatif input[name=batch]", "8192");
  await tab.click("#view-whatif button[type=submit]");
  await tab.waitForSelector("#view-whatif .halves");
  const changed = JSON.parse(run("whatif", EXAMPLE, "--device", "t4", "--batch", "8192", "--json"));
  const then = await tab.locator("#view-whatif .half").nth(1).textContent();
  assert.ok(then.includes(ms(changed.after.step_ms)), `${then} is not ${changed.after.step_ms}`);
  // The selection survives a reload, and the recorded GPU can be selected.
  await tab.reload();
  await shown(tab, "t4");
  await isOf(tab, known);
  await tab.selectOption(GPU, "as recorded");
  await shown(tab, "as recorded");
  await isOf(tab, predicted(EXAMPLE));
  assert.ok(asked.every((to) => to.startsWith(server.address)), asked.join(" "));
  assert.deepEqual(errors, []);
  await tab.close();
});

test("of several that are selected in a row the last is shown", async () => {
  const { page: tab, errors } = await open(browser.context, server.address);
  for (const name of ["a100", "l4", "p100", "v100"]) await tab.selectOption(GPU, name);
  await shown(tab, "v100");
  await isOf(tab, predicted(EXAMPLE, "--device", "v100"));
  // The keys of a removed timeline do nothing.
  await tab.click("#tab-timeline");
  await tab.keyboard.press("w");
  assert.deepEqual(errors, []);
  await tab.close();
});

test("the GPU of the command line is selected, and another may be", async () => {
  const other = await serve(EXAMPLE, "--device", "h100");
  try {
    const { page: tab } = await open(browser.context, other.address);
    assert.equal(await selected(tab), "h100");
    await isOf(tab, predicted(EXAMPLE, "--device", "h100"));
    await tab.selectOption(GPU, "as recorded");
    await shown(tab, "as recorded");
    await isOf(tab, predicted(EXAMPLE));
    await tab.close();
  } finally {
    other.end();
  }
});

test("an input without times of a GPU has none as recorded", async () => {
  const other = await serve(`${EXAMPLE}/et.json.gz`, "--device", "h200");
  try {
    const { page: tab } = await open(browser.context, other.address);
    assert.equal(await tab.locator(`${GPU} option`).first().textContent(), "h200");
    await tab.close();
  } finally {
    other.end();
  }
});

/** A recording with correct times, of which one op has sizes that fit no GPU. */
function impossible() {
  const folder = place("impossible");
  cpSync(join(root, EXAMPLE), folder, { recursive: true });
  const trace = JSON.parse(gunzipSync(readFileSync(`${folder}/et.json.gz`)));
  for (const node of trace.nodes.filter((node) => node.name === "aten::clamp_min")) {
    for (const side of [node.inputs, node.outputs]) side.shapes = side.shapes.map((shape) => shape.map(() => 2 ** 40));
  }
  writeFileSync(`${folder}/et.json.gz`, gzipSync(JSON.stringify(trace)));
  return folder;
}

test("a refusal is said, and the GPU before stays", async () => {
  const folder = impossible();
  const other = await serve(folder);
  try {
    for (const { context } of [browser, dark]) {
      const { page: tab } = await open(context, other.address, "ops");
      const before = await tab.textContent(".headline");
      await tab.selectOption(GPU, "t4");
      await tab.waitForSelector('header [role="alert"]:not([hidden])');
      const said = await tab.textContent('header [role="alert"]');
      assert.match(said, /^Not shown for t4: .*clamp_min.*no GPU does/);
      assert.equal(await selected(tab), "as recorded");
      assert.equal(await tab.textContent(".headline"), before);
      assert.throws(() => run("predict", folder, "--device", "t4"));
      await tab.evaluate(axe);
      const violations = await tab.evaluate(async () => (await axe.run({ include: [["header"]] })).violations.map((one) => one.id));
      assert.deepEqual(violations, []);
      await tab.close();
    }
  } finally {
    other.end();
  }
});

test("a name in the address that is none is said to be none", async () => {
  const { page: tab, asked } = await open(browser.context, `${server.address}?device=voodoo2`);
  assert.match(await tab.textContent('header [role="alert"]'), /^Not shown for voodoo2: /);
  assert.equal(await selected(tab), "as recorded");
  assert.deepEqual(asked, []);
  await tab.close();
});

test("a program that is gone is said to be gone", async () => {
  const other = await serve(EXAMPLE);
  const { page: tab } = await open(browser.context, other.address);
  other.end();
  await tab.selectOption(GPU, "t4");
  await tab.waitForSelector('header [role="alert"]:not([hidden])');
  assert.match(await tab.textContent('header [role="alert"]'), /is gone: start it again/);
  assert.equal(await selected(tab), "as recorded");
  await tab.close();
});

test("a page that is a file has no GPUs to choose from", async () => {
  const { page: tab, asked } = await open(browser.context, `file://${page(EXAMPLE)}`);
  assert.equal(await tab.locator(GPU).count(), 0);
  assert.deepEqual(asked, []);
  await tab.close();
});
