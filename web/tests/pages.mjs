// Makes pages with the program, and reads their data.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inflateSync } from "node:zlib";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const program = process.env.STEPTIME ?? join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release/steptime");
if (!existsSync(program)) throw new Error(`${program} is not there: cargo build --release -p steptime-cli`);

const folder = mkdtempSync(join(tmpdir(), "steptime-pages-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Path for a file of a test. */
export const place = (name) => join(folder, name);

/** Runs the program in the folder that contains `examples/`. */
export const run = (...args) => execFileSync(program, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 30 });

let made = 0;
/** The page of an input as a file. */
export function page(...args) {
  const path = place(`${++made}.html`);
  run("view", ...args, "-o", path);
  return path;
}

/** The data of a page. */
export function data(path) {
  const html = readFileSync(path, "utf8");
  const part = (id) => inflateSync(Buffer.from(html.match(new RegExp(`<script type="text/plain" id="${id}">([^<]*)</script>`))[1], "base64"));
  return { html, head: JSON.parse(part("head").toString("utf8")), block: part("block") };
}

/** The numbers of a column. */
export function column(block, { kind, at, len }) {
  if (kind === "u8") return block.subarray(at, at + len);
  const numbers = new Uint32Array(len);
  let sum = 0;
  for (let i = 0; i < len; i++) {
    const number = block.readUInt32LE(at + 4 * i);
    numbers[i] = sum = kind === "d32" ? (sum + number) >>> 0 : number;
  }
  return numbers;
}

/** Serves the page of an input; returns its address, and a function to end the server. */
export async function serve(...args) {
  const child = spawn(program, ["view", ...args, "--port", "0", "--no-open"], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const address = await new Promise((found, failed) => {
    const look = (piece) => {
      text += piece;
      const match = text.match(/http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\//);
      if (match) found(match[0]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", () => failed(new Error(text)));
  });
  return { address, end: () => child.kill() };
}
