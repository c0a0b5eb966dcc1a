"""Compares replays of PyTorch's profiler traces, with the profiler's cost, with figures that this script reads from their JSON.

    python lab/replayed.py TRACE.json[.gz]... [--steptime BIN]

The step is compared with the median length of the marks (`ProfilerStep#n`; the last one by its own length), device active time with
the union of all kernels, copies and fills of one step. A trace counts as silent if it is over 5 % off and no doubt reports that the
replay or the steps differ, or that kernels are missing. Prints a row per trace and a summary.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
ON_HOST = {"user_annotation", "cpu_op", "Operator"}
MARK = re.compile(r"ProfilerStep#\d+$")
SAYS_SO = {"replay", "steps", "lost", "cut"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--steptime", default="steptime", help="the program")
    options = parser.parse_args()
    print("| trace | steps | marks, ms | replayed, ms | off | active, ms | union, ms | off | doubts |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    steps: List[float] = []
    active: List[float] = []
    silent = 0
    for trace in options.traces:
        found = read(trace)
        answer = replayed(options.steptime, trace)
        if found is None or answer is None:
            continue
        count, length, union = found
        doubts = {doubt["kind"] for doubt in answer["doubts"]} | {"no estimate" for d in answer["doubts"] if d["no_estimate"]}
        off = answer["step_ms"] / length - 1 if length else None
        if off is not None and count > 1:
            steps.append(abs(off))
            silent += abs(off) > 0.05 and not doubts & (SAYS_SO | {"no estimate"})
        busy = answer["active_ms"] / union - 1
        active.append(abs(busy))
        shown = ["", ""] if off is None or length is None else [f"{length:.3f}", f"{off:+.2%}"]
        print(
            f"| {trace.name.split('.json')[0]} | {count} | {shown[0]} | {answer['step_ms']:.3f} | {shown[1]} "
            f"| {answer['active_ms']:.3f} | {union:.3f} | {busy:+.1%} | {', '.join(sorted(doubts))} |"
        )
    if steps:
        within = sum(off <= 0.05 for off in steps)
        print(f"\n{len(steps)} of several steps: median {statistics.median(steps):.2%}, {within} within 5 %, {silent} silent")
    print(f"active within 1 % of the union: {sum(off <= 0.01 for off in active)} of {len(active)}")


def read(path: Path) -> Optional[Tuple[int, Optional[float], float]]:
    """Number of steps, median of their marks and union of device time per step, in milliseconds; None without kernels."""
    with gzip.open(path, "rt", errors="replace") if path.suffix == ".gz" else open(path, errors="replace") as file:
        whole = json.load(file)
    busy: List[Tuple[float, float]] = []
    marks: Dict[Tuple[Any, Any], Dict[str, Tuple[float, float]]] = {}
    for event in whole if isinstance(whole, list) else whole.get("traceEvents", []):
        if event.get("ph") != "X" or "ts" not in event:
            continue
        start, length = float(event["ts"]), max(float(event.get("dur") or 0), 0.0)
        if event.get("cat") in ON_DEVICE:
            busy.append((start, start + length))
        elif event.get("cat") in ON_HOST and MARK.match(str(event.get("name", ""))):
            marks.setdefault((event["pid"], event["tid"]), {}).setdefault(event["name"], (start, length))
    if not busy:
        return None
    if not marks:
        return 1, None, union(busy) / 1e3
    ordered = sorted(max(marks.values(), key=len).values())
    lengths = [after[0] - before[0] for before, after in zip(ordered, ordered[1:])] + [ordered[-1][1]]
    return len(ordered), statistics.median(lengths) / 1e3, union(busy) / 1e3 / len(ordered)


def union(spans: List[Tuple[float, float]]) -> float:
    """Total time in which at least one of the spans runs."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def replayed(steptime: str, trace: Path) -> Optional[Dict[str, Any]]:
    """The answer of `predict --keep-profiler`; on an error, prints the reason and returns None."""
    command = [steptime, "predict", str(trace), "--keep-profiler", "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"| {trace.name.split('.json')[0]} | | | refused: {run.stderr.strip().splitlines()[0]} | | | | | |")
        return None
    answer: Dict[str, Any] = json.loads(run.stdout)
    return answer


if __name__ == "__main__":
    main()
