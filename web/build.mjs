// Builds dist/viewer.js and dist/viewer.css, which are embedded in the crate steptime-view. `--to FOLDER` builds them into another
// folder, `--own` prints the size in bytes of this project's part of the script.
import { readFileSync } from "node:fs";
import { build } from "esbuild";

/** Libraries in the page, whose notices are included. */
const LIBRARIES = ["@dagrejs/dagre", "@dagrejs/graphlib", "uplot"];
const notices = LIBRARIES.map((name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`);

const to = process.argv.indexOf("--to");
const own = process.argv.includes("--own");
const { metafile } = await build({
  entryPoints: { viewer: "src/main.ts" },
  outdir: to > 0 ? process.argv[to + 1] : "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox110", "safari16"],
  charset: "ascii",
  legalComments: "inline",
  banner: { js: `/*!\nThis script contains:\n\n${notices.join("\n\n---\n\n")}\n*/` },
  logLevel: "warning",
  metafile: true,
  write: !own,
});
if (own) {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  console.log(inputs.filter(([path]) => path.startsWith("src/") && path.endsWith(".ts")).reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0));
}
