// The timelines as a Chrome trace, for Perfetto.

import type { Side } from "./rows";

const CATEGORIES = ["op", "annotation", "call", "device", "device", "device"];

/** The trace as the pieces of a JSON text. Times are microseconds. */
export function chromeTrace(sides: Side[], phases: string[]): string[] {
  const pieces: string[] = ['{"displayTimeUnit": "ms", "traceEvents": [\n'];
  let first = true;
  const put = (event: object): void => {
    pieces.push((first ? "" : ",\n") + JSON.stringify(event));
    first = false;
  };
  sides.forEach((side, process) => {
    const pid = process + 1;
    const micros = side.data.tick_ns / 1000;
    put({ ph: "M", name: "process_name", pid, tid: 0, args: { name: side.name } });
    put({ ph: "M", name: "process_sort_index", pid, tid: 0, args: { sort_index: pid } });
    side.lanes.forEach((lane, at) => {
      const tid = lane.kind === "stream" ? 1000 + at : at + 1;
      put({ ph: "M", name: "thread_name", pid, tid, args: { name: lane.name } });
      put({ ph: "M", name: "thread_sort_index", pid, tid, args: { sort_index: tid } });
      for (const row of lane.rows) {
        for (let i = 0; i < row.size; i++) {
          put({
            ph: "X", cat: CATEGORIES[row.kind[i]!], name: side.block.text(row.name[i]!), pid, tid,
            ts: row.start[i]! * micros, dur: row.length[i]! * micros, args: { phase: phases[row.phase[i]!] },
          });
        }
      }
    });
  });
  pieces.push("\n]}\n");
  return pieces;
}

/** Saves the trace as a file. */
export function download(pieces: string[], name: string): void {
  const address = URL.createObjectURL(new Blob(pieces, { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const PERFETTO = "https://ui.perfetto.dev";

/** Opens Perfetto in another tab and passes it the trace, directly between the tabs and without a network. */
export function open(pieces: string[], title: string): void {
  const tab = window.open(PERFETTO);
  if (!tab) return;
  const ask = setInterval(() => tab.postMessage("PING", PERFETTO), 100);
  const stop = setTimeout(() => clearInterval(ask), 60_000);
  const heard = (event: MessageEvent): void => {
    if (event.origin !== PERFETTO || event.data !== "PONG") return;
    clearInterval(ask);
    clearTimeout(stop);
    removeEventListener("message", heard);
    void new Blob(pieces).arrayBuffer().then((buffer) => tab.postMessage({ perfetto: { buffer, title } }, PERFETTO));
  };
  addEventListener("message", heard);
}
