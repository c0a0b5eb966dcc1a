// Starts Debian's chromium for a test, without network requests of its own, and records the requests of the page.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Path of chromium; undefined if it is not installed. */
export const executable = PLACES.find((place) => place && existsSync(place));

const SWITCHES = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--font-render-hinting=none",
];

/** A browser with its own folder, and a function to end it. `scheme` is light or dark. */
export async function launch(scheme = "light", more = {}) {
  const folder = mkdtempSync(join(tmpdir(), "steptime-chromium-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: executable, args: SWITCHES, colorScheme: scheme, viewport: { width: 1360, height: 900 }, chromiumSandbox: false, ...more,
  });
  const close = async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { context, close };
}

/** Opens a page and waits until it is interactive. `asked` collects its requests other than for the page itself. */
export async function open(context, address, view = "answer") {
  const page = await context.newPage();
  const asked = [];
  const errors = [];
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith("data:") && !to.startsWith("blob:") && to.split("#")[0] !== address) asked.push(to);
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  await page.goto(`${address}#${view}`);
  await page.waitForSelector("html[data-ready]", { timeout: 30_000 });
  return { page, asked, errors };
}
