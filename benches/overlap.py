"""Measures pairs of kernels on two streams of a GPU, on which the model of shared SMs and bandwidth is fitted and scored.

    python benches/overlap.py --out benches/results/overlap.json

A branch is one op, launched repeatedly. Each pair is captured as CUDA graphs, so that the host does not matter: each branch alone, both
on one stream, both on two streams. The four are replayed in turn; times are medians. Every kernel is profiled too: the model uses its
grid, block, registers, shared memory and time. Pairs marked `held` are never fitted on.
Needs PyTorch and a GPU; takes a minute. Pairs that fail are left out, and named at the end.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.nn import functional as F

DEVICE = "cuda"
BRANCH_MS = 1.5
"""Approximate duration of a branch alone."""
COUNTS = (4, 250)
ROUNDS, REPLAYS = 6, 8


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def size(*tensors):
    """Total size of tensors in bytes."""
    return sum(each.numel() * each.element_size() for each in tensors)


def matmul(m, k, n, dtype=torch.float32):
    a, b, out = random(m, k, dtype=dtype), random(k, n, dtype=dtype), random(m, n, dtype=dtype)
    return lambda: torch.mm(a, b, out=out), size(a, b, out), 2 * m * k * n


def linear(m, k, n, dtype=torch.float32):
    a, b, bias = random(m, k, dtype=dtype), random(n, k, dtype=dtype), random(n, dtype=dtype)
    return lambda: F.linear(a, b, bias), size(a, b) + m * n * a.element_size(), 2 * m * k * n


def batched(count, m, k, n, dtype=torch.float32):
    a, b, out = random(count, m, k, dtype=dtype), random(count, k, n, dtype=dtype), random(count, m, n, dtype=dtype)
    return lambda: torch.bmm(a, b, out=out), size(a, b, out), 2 * count * m * k * n


def convolution(batch, channels, width, filters, kernel=3, dtype=torch.float32, last=False):
    layout = torch.channels_last if last else torch.contiguous_format
    x = random(batch, channels, width, width, dtype=dtype).to(memory_format=layout)
    w = random(filters, channels, kernel, kernel, dtype=dtype).to(memory_format=layout)
    out = batch * filters * width * width
    return lambda: F.conv2d(x, w, padding=kernel // 2), size(x, w) + out * x.element_size(), 2 * out * channels * kernel * kernel


def pointwise(name, elements, inputs=1, dtype=torch.float32):
    tensors, out = [random(elements, dtype=dtype) for _ in range(inputs)], random(elements, dtype=dtype)
    op = getattr(torch, name)
    return lambda: op(*tensors, out=out), size(*tensors, out), 0


def cast(elements, to=torch.bfloat16):
    x, out = random(elements), random(elements, dtype=to)
    return lambda: out.copy_(x), size(x, out), 0


def transposed(rows, columns):
    x, out = random(rows, columns), random(columns, rows)
    return lambda: out.copy_(x.t()), size(x, out), 0


def softmax(rows, columns):
    x, out = random(rows, columns), random(rows, columns)
    return lambda: torch.softmax(x, 1, out=out), size(x, out), 0


def layer_norm(rows, columns):
    x, w, b = random(rows, columns), random(columns), random(columns)
    return lambda: F.layer_norm(x, (columns,), w, b), 2 * size(x), 0


def total(rows, columns):
    x, out = random(rows, columns), random(rows)
    return lambda: torch.sum(x, 1, out=out), size(x, out), 0


def bag(rows, dim, bags, lookups):
    table, index = random(rows, dim), torch.randint(0, rows, (bags * lookups,), device=DEVICE)
    offsets = torch.arange(0, bags * lookups, lookups, device=DEVICE)
    rows_read = bags * lookups * dim * 4
    return lambda: F.embedding_bag(index, table, offsets, mode="sum"), rows_read + size(index, offsets) + bags * dim * 4, 0


def gather(rows, dim, lookups):
    table, index, out = random(rows, dim), torch.randint(0, rows, (lookups,), device=DEVICE), random(lookups, dim)
    return lambda: torch.index_select(table, 0, index, out=out), size(index) + 2 * size(out), 0


HALF = torch.bfloat16
OPS = {
    make.__name__: make
    for make in (matmul, linear, batched, convolution, pointwise, cast, transposed, softmax, layer_norm, total, bag, gather)
}
PAIRS = [
    # name, held out, one branch, the other, factors on the usual duration of each
    ("small products", False, ("matmul", 256, 1024, 1024), ("matmul", 128, 2048, 512), (1, 1)),
    ("product and bag", False, ("matmul", 1024, 1024, 1024), ("bag", 1_000_000, 64, 8192, 20), (1, 1)),
    ("pointwise, both large", False, ("pointwise", "add", 1 << 25, 2), ("pointwise", "exp", 1 << 25), (1, 1)),
    ("large product and pointwise", False, ("matmul", 2048, 2048, 2048), ("pointwise", "mul", 1 << 25, 2), (2, 2)),
    ("convolution and product", False, ("convolution", 32, 128, 28, 128), ("matmul", 512, 2048, 2048), (1, 1)),
    ("softmax and product", False, ("softmax", 8192, 1024), ("matmul", 512, 1024, 1024), (1, 1)),
    ("few blocks and pointwise", False, ("total", 48, 65536), ("pointwise", "add", 1 << 24, 2), (1, 1)),
    ("one short, one long", False, ("matmul", 384, 1024, 2048), ("pointwise", "exp", 1 << 23), (0.5, 2)),
    ("half-precision products", False, ("matmul", 1024, 2048, 1024, HALF), ("linear", 512, 1024, 4096, HALF), (1, 1)),
    ("small products of two types", True, ("matmul", 512, 512, 512, HALF), ("linear", 192, 1536, 768), (1, 1)),
    ("half-precision product and gather", True, ("linear", 2048, 1024, 1024, HALF), ("gather", 2_000_000, 128, 100_000), (1, 1)),
    ("pointwise and cast", True, ("pointwise", "sigmoid", 3 << 23), ("cast", 3 << 24), (1, 1)),
    ("large half-precision product and pointwise", True, ("matmul", 4096, 4096, 4096, HALF), ("pointwise", "tanh", 1 << 24), (2, 2)),
    ("convolution, channels last, and product", True, ("convolution", 16, 64, 56, 64, 3, HALF, True), ("matmul", 256, 4096, 1024, HALF), (1, 1)),
    ("layer norm and product", True, ("layer_norm", 16384, 1024), ("matmul", 384, 1536, 1536), (1, 1)),
    ("few blocks and norm", True, ("batched", 8, 128, 2048, 128), ("layer_norm", 32768, 512), (1, 1)),
    ("one long, one short", True, ("convolution", 8, 256, 14, 256), ("transposed", 4096, 4096), (2, 0.5)),
    ("bag and pointwise", True, ("bag", 500_000, 128, 4096, 30), ("pointwise", "mul", 1 << 23, 2), (1, 1)),
]


def made(op):
    name, *arguments = op
    call, moved, flops = OPS[name](*arguments)
    return {"call": call, "bytes": moved, "flops": flops}


def captured(*streams):
    """A CUDA graph: for each stream, a list of (call, times)."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        sides = [torch.cuda.Stream() for _ in streams[1:]]
        for side in sides:
            side.wait_stream(main)
        for stream, calls in zip([main, *sides], streams):
            with torch.cuda.stream(stream):
                for call, times in calls:
                    for _ in range(times):
                        call()
        for side in sides:
            main.wait_stream(side)
    return graph


def times(graph, replays):
    """Times of consecutive replays in milliseconds, without the first."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
    events[0].record()
    for event in events[1:]:
        graph.replay()
        event.record()
    torch.cuda.synchronize()
    return [one.elapsed_time(other) for one, other in zip(events[1:], events[2:])]


def profiled(run):
    """Kineto's events of the kernels that a function launches, by start."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profile.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    kinds = ("kernel", "gpu_memset", "gpu_memcpy")
    return sorted((each for each in events if each.get("cat") in kinds), key=lambda each: each["ts"])


def kernels(call, repeats=12):
    """Geometry and median time in us of each kernel that a call launches."""

    def run():
        for _ in range(repeats):
            call()

    events = profiled(run)
    each = len(events) // repeats
    if not each or len(events) != each * repeats:
        raise RuntimeError(f"{len(events)} kernels of {repeats} calls")
    found = []
    for at in range(each):
        about = events[at].get("args", {})
        found.append(
            {
                "name": events[at]["name"],
                "us": statistics.median(event["dur"] for event in events[at::each]),
                "grid": about.get("grid", [1, 1, 1]),
                "block": about.get("block", [1, 1, 1]),
                "registers": about.get("registers per thread", 0),
                "shared": about.get("shared memory", 0),
                "blocks_per_sm": about.get("blocks per SM"),
                "occupancy": about.get("est. achieved occupancy %"),
            }
        )
    return found


def timeline(graph):
    """Kernels of one replay: stream, start and time in us."""
    events = profiled(graph.replay)
    first = events[0]["ts"] if events else 0
    return [[each["args"].get("stream"), round(each["ts"] - first, 2), each["dur"]] for each in events]


def measured(name, held, one, other, lengths):
    """Measures a pair: its branches, and the times of the four graphs in ms."""
    branches, sides = [], []
    for op, length in zip((one, other), lengths):
        branch = made(op)
        for _ in range(3):
            branch["call"]()
        torch.cuda.synchronize()
        trial = captured([(branch["call"], 10)])
        once = statistics.median(times(trial, 6)) / 10
        count = min(COUNTS[1], max(COUNTS[0], round(BRANCH_MS * length / once)))
        about = {"op": [str(word) for word in op], "launches": count, "bytes": branch["bytes"], "flops": branch["flops"]}
        branches.append({**about, "kernels": kernels(branch["call"])})
        sides.append((branch["call"], count))
    graphs = {
        "first": captured([sides[0]]),
        "second": captured([sides[1]]),
        "one_stream": captured(sides),
        "two_streams": captured([sides[0]], [sides[1]]),
        "two_streams_swapped": captured([sides[1]], [sides[0]]),
    }
    samples = {kind: [] for kind in graphs}
    for _ in range(ROUNDS):
        for kind, graph in graphs.items():
            samples[kind] += times(graph, REPLAYS)
    medians = {kind: round(statistics.median(of), 5) for kind, of in samples.items()}
    spread = {kind: round(max(of) - min(of), 5) for kind, of in samples.items()}
    print(name, medians, flush=True)
    return {"name": name, "held": held, "branches": branches, "ms": medians, "range_ms": spread}, graphs["two_streams"]


def gpu():
    """The GPU's limits, and the bytes per second of a copy."""
    about = torch.cuda.get_device_properties(0)
    x, y = torch.empty(1 << 28, device=DEVICE), torch.empty(1 << 28, device=DEVICE)
    copy = captured([(lambda: y.copy_(x), 10)])
    seconds = statistics.median(times(copy, 6)) / 10 / 1e3
    return {
        "name": about.name,
        "sms": about.multi_processor_count,
        "threads_per_sm": about.max_threads_per_multi_processor,
        "registers_per_sm": getattr(about, "regs_per_multiprocessor", 65536),
        "shared_per_sm": getattr(about, "shared_memory_per_multiprocessor", 0),
        "copy_bytes_per_s": round(2 * size(x) / seconds),
        "torch": torch.__version__,
    }


def text(result):
    """The result as JSON, with a line for each pair."""
    pairs = ",\n  ".join(json.dumps(pair) for pair in result["pairs"])
    return f'{{"gpu": {json.dumps(result["gpu"])},\n "pairs": [\n  {pairs}\n]}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--timelines", type=Path, help="also write when each kernel of a pair ran, to this JSON file")
    parser.add_argument("--seconds", type=float, default=80, help="begin no other pair after so long")
    options = parser.parse_args()
    torch.manual_seed(0)
    begun, failed, lines = time.monotonic(), [], {}
    with torch.no_grad():
        result = {"gpu": gpu(), "pairs": []}
        for pair in PAIRS:
            if time.monotonic() - begun > options.seconds:
                failed.append(f"{pair[0]}: no time left")
                continue
            try:
                row, graph = measured(*pair)
                result["pairs"].append(row)
                options.out.write_text(text(result))
                if options.timelines:
                    lines[pair[0]] = timeline(graph)
                    options.timelines.write_text(json.dumps(lines))
            except Exception as error:
                failed.append(f"{pair[0]}: {type(error).__name__}: {error}")
            torch.cuda.empty_cache()
    for line in failed:
        print("failed:", line, file=sys.stderr)
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
