// Compares views with reviewed pictures. `PICTURES=write` updates the pictures: review them before committing.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";
import { launch, open } from "./browser.mjs";
import { page, root } from "./pages.mjs";

const KEPT = join(root, "web/tests/pictures");
/** Share of pixels that may differ, because fonts differ slightly between machines. */
const MOST = 0.06;
const SIZE = { width: 960, height: 640 };

const PICTURES = [["answer", "light"], ["timeline", "light"], ["timeline", "dark"], ["graph", "dark"], ["roofline", "light"]];

for (const scheme of ["light", "dark"]) {
  test(`views look as they did, ${scheme}`, async (t) => {
    const { context, close } = await launch(scheme, { viewport: SIZE });
    const path = page("examples/dlrm_default_2048");
    try {
      for (const [view] of PICTURES.filter(([, of]) => of === scheme)) {
        const { page: tab } = await open(context, `file://${path}`, view);
        await tab.waitForTimeout(400);
        const shot = await tab.screenshot();
        await tab.close();
        const kept = join(KEPT, `${view}-${scheme}.png`);
        if (process.env.PICTURES === "write") {
          mkdirSync(KEPT, { recursive: true });
          writeFileSync(kept, shot);
          continue;
        }
        assert.ok(existsSync(kept), `${kept} is not there`);
        const [is, was] = [PNG.sync.read(shot), PNG.sync.read(readFileSync(kept))];
        assert.deepEqual([is.width, is.height], [was.width, was.height]);
        const differ = pixelmatch(is.data, was.data, null, is.width, is.height, { threshold: 0.2 }) / (is.width * is.height);
        t.diagnostic(`${view}: ${(100 * differ).toFixed(2)} % of pixels differ`);
        assert.ok(differ <= MOST, `${view}, ${scheme}: ${(100 * differ).toFixed(1)} % of pixels differ`);
      }
    } finally {
      await close();
    }
  });
}
