// Names that contain markup stay text; a browser that cannot read the data shows a message.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { page, place } from "./pages.mjs";

const NAME = `</script><script>window.hurt = 1</script><img src=x onerror="window.hurt = 2"><b>bold`;

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test("names with markup stay text", async () => {
  const events = [{ ph: "X", cat: "user_annotation", name: NAME, pid: 1, tid: 1, ts: 0, dur: 400 }];
  for (let i = 0; i < 9; i++) {
    const ts = 10 + 40 * i;
    events.push({ ph: "X", cat: "cpu_op", name: `aten::${NAME}`, pid: 1, tid: 1, ts, dur: 20 });
    events.push({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: ts + 4, dur: 6, args: { correlation: i + 1 } });
    events.push({ ph: "X", cat: "kernel", name: `kernel ${NAME}`, pid: 0, tid: 7, ts: ts + 12, dur: 9, args: { correlation: i + 1, device: 0, stream: 7 } });
  }
  const path = place(`${"<i>a&b"}.json`);
  writeFileSync(path, JSON.stringify({ schemaVersion: 1, deviceProperties: [{ id: 0, name: `GPU ${NAME}` }], traceEvents: events }));
  const made = page(path);
  const html = readFileSync(made, "utf8");
  assert.ok(!html.includes("onerror") && !html.includes("window.hurt") && !html.includes("<i>a"), "a name is in the page as it is");
  const { page: tab, asked, errors } = await open(browser.context, `file://${made}`);
  for (const view of ["answer", "timeline", "graph", "roofline", "ops", "kernels", "memory"]) {
    await tab.click(`#tab-${view}`);
    if (view === "graph") for (let i = 0; i < 3; i++) { await tab.focus('#view-graph [aria-selected="true"]'); await tab.keyboard.press("ArrowRight"); await tab.keyboard.press("ArrowDown"); }
  }
  assert.ok(await tab.locator('#view-kernels [title*="<b>bold"]').count() > 0, "the whole name is not there");
  assert.equal(await tab.evaluate(() => window.hurt), undefined);
  assert.equal(await tab.locator("#app img, #app b, #app i").count(), 0);
  assert.deepEqual([asked, errors], [[], []]);
  await tab.close();
});

test("a browser without DecompressionStream says what to do", async () => {
  const tab = await browser.context.newPage();
  await tab.addInitScript(() => { delete window.DecompressionStream; });
  await tab.goto(`file://${page("examples/dlrm_default_2048")}`);
  await tab.waitForSelector('[role="alert"]');
  assert.match(await tab.textContent('[role="alert"]'), /DecompressionStream.*Chrome.*Safari.*Firefox/);
  await tab.close();
});
