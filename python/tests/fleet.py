"""Shared parts of the tests of lakes and of scaling: the program, and traces small enough to be computed by hand."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def program() -> str:
    """Path of the program steptime: $STEPTIME, cargo's build here, or from PATH. Without it the test is skipped."""
    built = [ROOT / "target" / kind / "steptime" for kind in ("release", "debug")]
    named = [os.environ.get("STEPTIME"), *(str(path) for path in built if path.exists()), shutil.which("steptime")]
    found = next((name for name in named if name), None)
    if found is None:
        pytest.skip("no program steptime: cargo build --release, or name it by STEPTIME")
    return found


def trace(rank: int, allreduce_us: list[float], kernel_us: float = 10.0) -> str:
    """A trace of one rank: a step of 1 ms for each all-reduce, with a kernel before it."""
    events: list[dict[str, object]] = []

    def add(category: str, name: str, tid: int, start: float, dur: float, **args: object) -> None:
        events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": tid, "ts": start, "dur": dur, "args": args})

    for step, time in enumerate(allreduce_us):
        at, ids = 1000.0 * step, (2 * step + 1, 2 * step + 2)
        add("user_annotation", f"ProfilerStep#{step}", 1, at, 1000.0)
        add("cpu_op", "aten::mm", 1, at + 10, 20)
        add("cuda_runtime", "cudaLaunchKernel", 1, at + 15, 5, correlation=ids[0])
        add("kernel", "gemm", 7, at + 40, kernel_us, device=0, stream=7, correlation=ids[0])
        group = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}
        group |= {"Process Group Name": "0", "Group size": 2}
        add("cpu_op", "record_param_comms", 1, at + 100, 20, **group)
        add("cuda_runtime", "cudaLaunchKernel", 1, at + 105, 5, correlation=ids[1])
        add("kernel", "ncclDevKernel_AllReduce", 8, at + 200, time, device=0, stream=8, correlation=ids[1])
    distributed = {"backend": "nccl", "rank": rank, "world_size": 2}
    return json.dumps({"distributedInfo": distributed, "traceEvents": events})
