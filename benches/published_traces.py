"""Compares published traces with predictions: each kind of kernel as measured, and as predicted by the GPU's profile.

    git clone https://github.com/AMD-AGI/TraceLens; git clone https://github.com/pytorch/kineto
    git clone https://github.com/pytorch-labs/segment-anything-fast
    python benches/published_traces.py TraceLens/tests/traces/h100/*.json.gz kineto/tb_plugin/samples/resnet50*/*.json.gz ...

A row is an op on inputs of certain shapes: the time of all its kernels in the typical step, measured and predicted. Collectives, copies
to and from the host, and unknown ops are left out; their share of time is printed. The profile is that of the trace's GPU (`--device`
selects another). Nothing is fitted to these traces.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

LEFT_OUT = {"unknown", "transfer"}
Key = Tuple[str, str, str, int]


class Row(NamedTuple):
    """Kernels of one op on inputs of the same shapes, in us per step."""

    family: str
    measured: float
    predicted: float
    half_width: float

    @property
    def error(self) -> float:
        return abs(self.predicted / self.measured - 1)

    @property
    def inside(self) -> bool:
        return abs(math.log(self.predicted / self.measured)) <= self.half_width


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, help="Kineto traces with shapes")
    parser.add_argument("--device", help="the profile to price with, instead of the trace's own GPU")
    parser.add_argument("--steptime", default="steptime", help="the program")
    parser.add_argument("--families", action="store_true", help="also a table of families")
    options = parser.parse_args()
    rows: Dict[str, List[Row]] = {}
    print("| GPU | trace | ms, measured | of all kernels | predicted over measured | GMAE | rows, time in the interval |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for trace in options.traces:
        answer = compared(options.steptime, trace, options.device)
        if answer is None:
            continue
        gpu, found, share = answer
        rows.setdefault(gpu, []).extend(found)
        print(f"| {gpu} | {trace.name.split('.')[0]} | {line(found, share)} |")
    for gpu, found in rows.items():
        print(f"| {gpu} | all | {line(found, None)} |")
    if options.families:
        by_family(rows)
    return 0 if rows else 1


def compared(steptime: str, trace: Path, device: Optional[str]) -> Optional[Tuple[str, List[Row], float]]:
    """The GPU of a trace, its rows, and their share of all kernel time; None if the trace cannot be read or predicted."""
    told = answer([steptime, "inspect", str(trace), "--json"])
    if told is None:
        return None
    gpu = told["device"] or "not named"
    device = device or told["device"]
    if device is None:
        print(f"{trace}: names no GPU: give --device", file=sys.stderr)
        return None
    measured = answer([steptime, "roofline", str(trace), "--json"])
    priced = answer([steptime, "roofline", str(trace), "--device", device, "--json"])
    predicted = answer([steptime, "predict", str(trace), "--device", device, "--json"])
    if measured is None or priced is None or predicted is None:
        return None
    widths = {family["family"]: family["half_width"] for family in predicted["families"]}
    before, after = times(measured), times(priced)
    rows = [Row(key[1], us, after[key], widths.get(key[1], 0.0)) for key, us in before.items() if key in after and after[key] > 0]
    return gpu, rows, sum(row.measured for row in rows) / max(1e-9, 1e3 * measured["device_ms"])


def times(roofline: dict) -> Dict[Key, float]:
    """The time of each row."""
    rows: Counter = Counter()
    for kernel in roofline["kernels"]:
        if kernel["family"] not in LEFT_OUT and kernel["time_us"] > 0:
            rows[(kernel["op"], kernel["family"], json.dumps(kernel.get("shapes")), kernel["bytes"])] += kernel["time_us"]
    return rows


def answer(command: List[str]) -> Optional[dict]:
    """JSON answer of a command; on an error, prints it and returns None."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{command[2]}: {done.stderr.strip().splitlines()[0] if done.stderr.strip() else done.returncode}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def line(rows: List[Row], share: Optional[float]) -> str:
    """Columns of a table on rows."""
    if not rows:
        return "- | - | - | - | -"
    measured = sum(row.measured for row in rows)
    ratio = sum(row.predicted for row in rows) / measured
    gmae = math.exp(sum(math.log(max(row.error, 1e-3)) for row in rows) / len(rows))
    inside = sum(row.inside for row in rows) / len(rows)
    of_time = sum(row.measured for row in rows if row.inside) / measured
    known = "" if share is None else f"{share:.0%}"
    return f"{measured / 1e3:.2f} | {known} | {ratio:.2f} | {gmae:.1%} | {inside:.0%}, {of_time:.0%}"


def by_family(rows: Dict[str, List[Row]]) -> None:
    """Prints a table of each GPU's families."""
    print("\n| GPU | family | ms, measured | | predicted over measured | GMAE | rows, time in the interval |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for gpu, found in rows.items():
        for family in sorted({row.family for row in found}):
            print(f"| {gpu} | {family} | {line([row for row in found if row.family == family], None)} |")


if __name__ == "__main__":
    sys.exit(main())
