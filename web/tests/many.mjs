// Writes a Kineto trace of one step with very many ops, calls and kernels: node many.mjs OUT.json [KERNELS]
import { closeSync, openSync, writeSync } from "node:fs";

/** Writes the trace. Each kernel is launched by a call in two nested ops, on one of two threads: four slices. */
export function write(path, kernels) {
  const out = openSync(path, "w");
  let pieces = ['{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": [\n'];
  let first = true;
  const put = (event) => {
    pieces.push((first ? "" : ",\n") + JSON.stringify(event));
    first = false;
    if (pieces.length > 50_000) {
      writeSync(out, pieces.join(""));
      pieces = [];
    }
  };
  const names = ["aten::linear", "aten::relu", "aten::add", "aten::embedding_bag", "aten::mul", "aten::cat", "<b>aten::markup</b>"];
  // Lengths that do not repeat: a sequence of remainders.
  let seed = 7;
  const some = (most) => (seed = (seed * 48271) % 2147483647) % most;
  let now = 1000;
  for (let i = 0; i < kernels; i++) {
    const name = names[some(names.length)];
    const inner = 4 + some(9);
    const wait = some(40) === 0 ? 30 + some(60) : some(4);
    put({ ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: now, dur: inner + 4, args: { "External id": 2 * i + 1 } });
    put({ ph: "X", cat: "cpu_op", name: `${name}_out`, pid: 1, tid: 1, ts: now + 1, dur: inner + 2, args: { "External id": 2 * i + 2 } });
    put({ ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: now + 2, dur: inner, args: { correlation: i + 1, "External id": 2 * i + 2 } });
    put({ ph: "X", cat: "kernel", name: `kernel_${some(60)}`, pid: 0, tid: 7, ts: now + 3 + inner, dur: 2 + some(4), args: { correlation: i + 1, device: 0, stream: 7, "External id": 2 * i + 2 } });
    now += inner + 5 + wait;
  }
  writeSync(out, `${pieces.join("")}\n]}\n`);
  closeSync(out);
}

if (process.argv[1]?.endsWith("many.mjs")) write(process.argv[2], Number(process.argv[3] ?? 250_000));
