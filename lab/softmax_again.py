"""Sweeps PyTorch's softmax kernel that reads each row three times, at lengths for which this version of PyTorch uses another kernel.

    python lab/softmax_again.py --out softmax.parquet --minutes 1.5      # on a GPU, with PyTorch 2.8 or later
    steptime device fit softmax.parquet --onto h200 -o profiles/h200

Recordings made with PyTorch up to 2.6 contain it for all rows above 1,024 elements. The kernel is still in the library, for rows that
fit neither registers nor shared memory: it is captured with such a row into a CUDA graph, extracted from the graph, and launched for
other rows. Results are compared with PyTorch's own. The file has the format of a sweep.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from steptime.measure import machine  # noqa: E402
from steptime.measure.draw import Draw  # noqa: E402
from steptime.measure.kernels import short  # noqa: E402
from steptime.measure.sheet import Sheet, path_for  # noqa: E402

NAME = "cunn_SoftMaxForward"
TYPES = {"float32": ("float", 4), "bfloat16": ("c10::BFloat16", 2), "float16": ("c10::Half", 2)}
OPS = ("_softmax", "_log_softmax")
# Length of a row that PyTorch 2.11 keeps neither in registers nor in shared memory.
LONG_ROW = 10_001
SHORTEST, LONGEST, ELEMENTS = 1025, 50_000, 300_000_000
REPETITIONS, BATCH = 3, 100


class Case(NamedTuple):
    """Rows of one length."""

    op: str
    dtype: str
    rows: int
    length: int
    # Offset of the first row in elements, so that vector loads are misaligned in every row.
    late: int


class Driver:
    """Calls of the CUDA driver that PyTorch does not expose."""

    class NodeParams(ctypes.Structure):
        _fields_ = [
            ("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
            ("arguments", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p),
        ]  # fmt: skip

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: error {code} of the CUDA driver")

    def only_kernel(self, graph: int) -> "Driver.NodeParams":
        """Launch parameters of the only kernel of a graph."""
        count = ctypes.c_size_t(0)
        self.call("cuGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(count))
        nodes = (ctypes.c_void_p * count.value)()
        self.call("cuGraphGetNodes", ctypes.c_void_p(graph), nodes, ctypes.byref(count))
        if count.value != 1:
            raise RuntimeError(f"a softmax became {count.value} nodes of a graph, not one")
        found = self.NodeParams()
        self.call("cuGraphKernelNodeGetParams_v2", ctypes.c_void_p(nodes[0]), ctypes.byref(found))
        if not found.function:
            function = ctypes.c_void_p()
            self.call("cuKernelGetFunction", ctypes.byref(function), ctypes.c_void_p(found.kernel))
            found.function = function.value
        return found

    def launch(self, kernel: "Driver.NodeParams", rows: int, result: int, given: int, length: int, stream: int) -> None:
        values = (ctypes.c_void_p(result), ctypes.c_void_p(given), ctypes.c_int64(length))
        arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        block = (kernel.block[0], 1, 1)
        self.call(
            "cuLaunchKernel", ctypes.c_void_p(kernel.function), rows, 1, 1, *block, kernel.shared, ctypes.c_void_p(stream), arguments, None
        )


def captured(torch: Any, driver: Driver, op: str, dtype: str) -> Any:
    """The kernel, and the graph that keeps it loaded."""
    x = torch.randn(4, LONG_ROW, device="cuda").to(getattr(torch, dtype))
    run = getattr(torch.ops.aten, op)
    run(x, 1, False)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        run(x, 1, False)
    return driver.only_kernel(graph.raw_cuda_graph()), graph


def draw(rng: Draw) -> Case:
    op, dtype = rng.pick("_softmax", "_softmax", "_log_softmax"), rng.dtype({"float32": 40, "bfloat16": 40, "float16": 20})
    length, size = int(rng.log(SHORTEST, LONGEST)), TYPES[dtype][1]
    if rng.chance(0.4):
        length -= length % (16 // size)
    late = int(rng.chance(0.2))
    return Case(op, dtype, int(rng.log(1, ELEMENTS / length)), max(length, SHORTEST), late)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the Parquet file to make")
    parser.add_argument("--minutes", type=float, default=1.5, help="how long to measure (default 1.5)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is missing: pip install torch, 2.8 or later")
    if not torch.cuda.is_available():
        sys.exit("there is no GPU that PyTorch can use: run it where `python -m steptime.measure` runs")
    until = time.monotonic() + 60 * options.minutes
    driver, rng = Driver(), Draw(options.seed)
    kernels = {(op, dtype): captured(torch, driver, op, dtype) for op in OPS for dtype in TYPES}
    # Values similar to those of a model: a division by infinity is slower.
    given = {dtype: torch.randn(ELEMENTS + 16, device="cuda", dtype=getattr(torch, dtype)) for dtype in TYPES}
    result = torch.empty(ELEMENTS, device="cuda")
    flushed, one = torch.randn(1 << 26, device="cuda"), torch.zeros((), device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    meta = {"steptime_sweep_version": "1", "seed": str(options.seed), **machine.describe(torch, "cuda:0"), **machine.peaks(torch, "cuda:0")}
    sheet, done = Sheet(path_for(options.out)), 0

    def launch(case: Case) -> None:
        there = given[case.dtype].data_ptr() + case.late * TYPES[case.dtype][1]
        driver.launch(kernels[case.op, case.dtype][0], case.rows, result.data_ptr(), there, case.length, stream)

    worst = max(difference(torch, case, given[case.dtype], result, launch) for case in (draw(rng) for _ in range(20)))
    print(f"20 cases differ from PyTorch's own by {worst:.1e} at most")
    while time.monotonic() < until:
        cases = [draw(rng) for _ in range(BATCH)]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for case in cases:
                for _ in range(REPETITIONS):
                    torch.sum(flushed, dim=0, out=one)
                    launch(case)
                    launch(case)
            torch.cuda.synchronize()
        events = [event for event in profiler.profiler.kineto_results.events() if NAME in event.name()]
        events.sort(key=lambda event: event.start_ns())
        each = 2 * REPETITIONS
        if len(events) != each * len(cases):
            print(f"a batch left out: {len(events)} kernels of {each * len(cases)} were seen")
            continue
        for at, case in enumerate(cases):
            of_case = events[at * each : (at + 1) * each]
            for state, which in (("cold", of_case[::2]), ("warm", of_case[1::2])):
                sheet.add([row(done + at, case, state, which)])
        done += len(cases)
    sheet.write({**meta, "cases_done": str(done), "started": machine.now()})
    print(f"{sheet.count} rows of {done} cases")
    return 0


def difference(torch: Any, case: Case, given: Any, result: Any, launch: Any) -> float:
    """Largest difference from PyTorch's own result, over at most 50 rows."""
    case = case._replace(rows=min(case.rows, 50))
    count = case.rows * case.length
    x = given[case.late : case.late + count]
    launch(case)
    expected = getattr(torch.ops.aten, case.op)(x.view(case.rows, case.length), 1, False)
    there = result.view(given.dtype)[:count].view(case.rows, case.length)
    return float((there.float() - expected.float()).abs().max())


def row(number: int, case: Case, state: str, events: List[Any]) -> Dict[str, Any]:
    times = sorted(event.duration_ns() / 1e3 for event in events)
    us = statistics.median(times)
    return {
        "case": number, "family": "softmax_again", "op": f"aten::{case.op}", "dims": json.dumps([[case.rows, case.length], [], []]),
        "strides": json.dumps([[case.length, 1], [], []]), "types": json.dumps([TYPES[case.dtype][0], "Scalar", "Scalar"]),
        "concrete": json.dumps(["", "1", "False"]), "devices": "", "tf32": False, "indices": "", "state": state, "reps": len(times),
        "us": us, "us_min": times[0], "us_max": times[-1], "kernels": json.dumps([short(events[0].name())]), "kernel_us": [us],
        "grids": json.dumps([[case.rows, 1, 1, 1024]]), "leaf": 0, "span_us": us,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
