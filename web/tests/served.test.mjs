// The served page: changes are tried on it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { run, serve } from "./pages.mjs";

let browser, server;
before(async () => {
  browser = await launch();
  server = await serve("examples/dlrm_default_2048");
});
after(async () => {
  server.end();
  await browser.close();
});

test("a change is tried, and is the answer of the command line", async () => {
  const { page: tab, asked, errors } = await open(browser.context, server.address, "whatif");
  await tab.fill("#view-whatif input[name=batch]", "8192");
  await tab.check('#view-whatif input[value="embedding-bags"]');
  await tab.click("#view-whatif button[type=submit]");
  await tab.waitForSelector("#view-whatif .halves");
  const known = JSON.parse(run("whatif", "examples/dlrm_default_2048", "--batch", "8192", "--fuse", "embedding-bags", "--json"));
  const shown = await tab.locator("#view-whatif .half").nth(1).textContent();
  assert.ok(shown.includes(known.after.step_ms.toFixed(3)), `${shown} is not ${known.after.step_ms}`);
  await tab.click("#tab-timeline");
  assert.match(await tab.textContent("#view-timeline .choices"), /changed/);
  await tab.click("#tab-graph");
  assert.match(await tab.textContent("#view-graph .changes"), /batch \+ fuse-embedding-bags/);
  await tab.click('#view-graph button:text("After")');
  await tab.waitForSelector("#view-graph .badge");
  assert.deepEqual(asked, [`${server.address}whatif`]);
  assert.deepEqual(errors, []);
  await tab.close();
});

test("an op is selected, and a change that touches it tried from there", async () => {
  const { page: tab } = await open(browser.context, server.address, "graph");
  await tab.click('#view-graph .touching button:text("cuda-graph")');
  await tab.waitForSelector("#view-whatif .halves");
  assert.match(await tab.textContent("#view-whatif"), /cuda-graph/);
  await tab.close();
});

test("selected ops are left out, moved and resized, and nothing else", async () => {
  const { page: tab, errors } = await open(browser.context, server.address, "graph");
  const tried = async (words) => {
    await tab.waitForSelector("#view-whatif .halves");
    const known = JSON.parse(run("whatif", "examples/dlrm_default_2048", ...words, "--json"));
    const shown = await tab.locator("#view-whatif .half").nth(1).textContent();
    assert.ok(shown.includes(known.after.step_ms.toFixed(3)), `${words}: ${shown} is not ${known.after.step_ms}`);
    await tab.click("#tab-graph");
    await tab.selectOption('#view-graph select[aria-label="Show what a change does"]', "");
  };
  const pick = async (name) => {
    const label = tab.locator(`#view-graph .label[title="${name}"]`).first();
    const closed = tab.locator('#view-graph [role="treeitem"][aria-expanded="false"]:visible > .line').first();
    while (!(await label.isVisible())) await closed.click();
    await label.click();
  };
  await pick("aten::relu");
  await tab.check("#view-graph .selection input[type=checkbox]");
  await tab.click('#view-graph button:text("Leave them out")');
  await tried(["--remove", "aten::relu"]);
  await pick("aten::embedding_bag");
  await tab.fill("#view-graph .selection input[type=number]", "777777");
  await tab.click('#view-graph button:text("Resize")');
  await tried(["--set", "tables[0].rows=777777"]);
  await pick("aten::embedding_bag");
  await tab.check("#view-graph .selection input[type=checkbox]");
  await tab.click('#view-graph button:text("Keep it selected")');
  await pick("aten::relu");
  await tab.check("#view-graph .selection input[type=checkbox]");
  await tab.click('#view-graph button:text("On a stream of their own")');
  await tried(["--on-stream", "aten::embedding_bag,aten::relu"]);
  await pick("aten::linear");
  await tab.click('#view-graph .selection [aria-label^="Let go of all aten::embedding_bag"]');
  await tab.check("#view-graph .selection input[type=checkbox]");
  await tab.click('#view-graph button:text("Fuse linear with ReLU")');
  await tried(["--fuse", "linear", "--among", "aten::linear"]);
  assert.deepEqual(errors, []);
  await tab.close();
});

test("a module is selected as one", async () => {
  const transformer = ["crates/model/predict/tests/data/tiny_transformer", "--device", "h200"];
  const other = await serve(...transformer);
  try {
    const { page: tab, errors } = await open(browser.context, other.address, "ops");
    await tab.click('#view-ops table button:text("Tiny.blocks.1.mlp")');
    await tab.click('#view-graph button:text("Leave them out")');
    await tab.waitForSelector("#view-whatif .halves");
    const known = JSON.parse(run("whatif", ...transformer, "--remove", "module:Tiny.blocks.1.mlp", "--json"));
    const shown = await tab.locator("#view-whatif .half").nth(1).textContent();
    assert.ok(shown.includes(known.after.step_ms.toFixed(3)), `${shown} is not ${known.after.step_ms}`);
    assert.deepEqual(errors, []);
    await tab.close();
  } finally {
    other.end();
  }
});

test("what cannot be changed is said in words", async () => {
  const { page: tab } = await open(browser.context, server.address, "whatif");
  await tab.click("#view-whatif button[type=submit]");
  await tab.waitForSelector('#view-whatif [role="alert"]');
  assert.equal(await tab.textContent('#view-whatif [role="alert"]'), "nothing to change");
  await tab.check('#view-whatif input[name="channels-last"]');
  await tab.click("#view-whatif button[type=submit]");
  await tab.waitForFunction(() => document.querySelector('#view-whatif [role="alert"]')?.textContent.includes("channels-last"));
  await tab.close();
});

test("nobody else is answered", async () => {
  const { origin } = new URL(server.address);
  assert.equal((await fetch(origin)).status, 403);
  assert.equal((await fetch(`${server.address}whatif`)).status, 405);
  assert.equal((await fetch(`${server.address}whatif`, { method: "POST", body: "{", headers: { origin: "http://evil.example" } })).status, 403);
  const wrong = await fetch(`${server.address}whatif`, { method: "POST", body: '{"bacth": 1}' });
  assert.equal(wrong.status, 422);
  assert.match(await wrong.text(), /is batch meant/);
});
