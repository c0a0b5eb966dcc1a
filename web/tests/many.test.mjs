// A million slices: all present, drawn and moved fast enough.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { write } from "./many.mjs";
import { data, page, place } from "./pages.mjs";

/** Limit of milliseconds until the page is interactive; a busy machine may set a larger one. */
const MOST = Number(process.env.INTERACTIVE_MS ?? 2000);

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test("10^6 slices can be looked at within two seconds", async (t) => {
  const trace = place("many.json");
  // Predicted and measured: two sides of half a million each.
  write(trace, 125_000);
  const path = page(trace);
  assert.equal(data(path).head.sides.reduce((sum, side) => sum + side.slices, 0), 1_000_000);
  // The best of three: the first starts the browser too.
  let best = Infinity;
  for (let i = 0; i < 3; i++) {
    const { page: tab } = await open(browser.context, `file://${path}`, "timeline");
    best = Math.min(best, await tab.evaluate(() => performance.getEntriesByName("interactive")[0].startTime));
    if (i < 2) { await tab.close(); continue; }
    assert.match(await tab.textContent("#view-timeline"), /500,000 slices.*500,000 slices/);
    const paints = [];
    for (let step = 0; step < 10; step++) {
      await tab.keyboard.press(step < 6 ? "w" : "d");
      await tab.waitForTimeout(80);
      paints.push(Number(await tab.getAttribute("canvas", "data-paint-ms")));
    }
    t.diagnostic(`interactive after ${best.toFixed(0)} ms; drawn in ${Math.max(...paints)} ms at most`);
    assert.ok(Math.max(...paints) < 250, `drawn in ${paints} ms`);
  }
  assert.ok(best <= MOST, `interactive after ${best.toFixed(0)} ms`);
});
