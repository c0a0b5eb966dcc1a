"""Measures the cost of the profiler in a captured step: graphs of small nodes, replayed with and without the profiler.

    python3 lab/profiler-cost/graph_nodes.py [out.json]      (default graph_nodes.json)

A window replays one graph `REPLAYS` times back to back. Before it, a spin kernel keeps the GPU busy, so that host time is
not included: device events around the replays give the period of one replay. Windows alternate: plain, profiled, plain, ...
The profiled trace gives every node's duration, the time between nodes by kind (kernel, memset, copy), the time from a
replay's last node to the next one's first, and the host's time in cudaGraphLaunch by number of nodes.

Of a plain window only the period is known. With nodes' durations from the trace (`keep` of each), the time between nodes
is fitted by least squares: period = sum of durations + sum over pairs of between(pair) + between replays.
"""
import collections
import ctypes
import json
import os
import sys
import tempfile
import time

import numpy
import torch
from torch.profiler import ProfilerActivity, profile

REPLAYS, WINDOWS, ROUNDS = 12, 6, 3
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
PAIRS = ("kernel:kernel", "kernel:memset", "memset:kernel", "kernel:copy", "copy:kernel", "memset:memset", "copy:copy", "memset:copy", "copy:memset")


def cudart():
    """The CUDA runtime this process has loaded, for raw calls; None if it cannot be found."""
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if "libcudart" in line})
    return ctypes.CDLL(paths[0]) if paths else None


class Nodes:
    """Functions that each add one node to a captured graph."""

    def __init__(self, elements):
        self.x, self.y = torch.rand(elements, device="cuda"), torch.rand(elements, device="cuda")
        self.out = torch.empty_like(self.x)
        self.a, self.b = torch.rand(64, 64, device="cuda"), torch.rand(64, 64, device="cuda")
        self.c = torch.empty(64, 64, device="cuda")
        self.library = cudart()

    def add(self):
        torch.add(self.x, self.y, out=self.out)

    def chain(self):
        """A kernel that depends on the output of the previous node."""
        self.out.add_(1.0)

    def memset(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.cudaMemsetAsync(ctypes.c_void_p(self.out.data_ptr()), 0, ctypes.c_size_t(self.out.nbytes), stream)

    def copy(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        source, target = ctypes.c_void_p(self.x.data_ptr()), ctypes.c_void_p(self.out.data_ptr())
        self.library.cudaMemcpyAsync(target, source, ctypes.c_size_t(self.x.nbytes), 3, stream)  # 3: device to device

    def mm(self):
        torch.mm(self.a, self.b, out=self.c)


def cases():
    """Linear graphs: name, elements of a node, functions used in turn, number of nodes."""
    for elements in (256, 1 << 16, 1 << 20, 1 << 22, 1 << 24):
        for count in (2, 10, 30, 100, 300, 1000, 2000):
            if elements * count <= 1 << 31:
                yield f"chain_{elements}_{count}", elements, ("chain",), count
    for elements in (256, 1 << 20):
        for mix in (("add",), ("mm",), ("memset",), ("copy",), ("chain", "memset"), ("chain", "copy"), ("mm", "chain"), ("mm", "chain", "add", "memset")):
            for count in (20, 200):
                yield "_".join(mix) + f"_{elements}_{count}", elements, mix, count


def branches():
    """Parallel graphs: name, number of branches, nodes of each."""
    return [(f"branches_{width}_{length}", width, length) for width in (2, 4) for length in (10, 100)]


def capture(work):
    """The captured and warmed-up graph of `work`."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return graph


def line(elements, names, count):
    nodes = Nodes(elements)
    functions = [getattr(nodes, names[at % len(names)]) for at in range(count)]

    def work():
        for function in functions:
            function()

    return capture(work)


def forked(width, length):
    nodes = [Nodes(256) for _ in range(width)]

    def work():
        main = torch.cuda.current_stream()
        streams = [torch.cuda.Stream() for _ in nodes]
        for stream, each in zip(streams, nodes):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                for _ in range(length):
                    each.chain()
        for stream in streams:
            main.wait_stream(stream)

    return capture(work)


def window(graph, spin):
    """Microseconds per replay: between device events, and of the host in the call."""
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(spin)
    first.record()
    begin = time.perf_counter()
    for _ in range(REPLAYS):
        graph.replay()
    host = time.perf_counter() - begin
    last.record()
    torch.cuda.synchronize()
    return 1e3 * first.elapsed_time(last) / REPLAYS, 1e6 * host / REPLAYS


def lone(graph):
    """Microseconds from a replay's call until the host knows that it is done."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begin)


def windows(graph, spin):
    window(graph, spin)
    return [(*window(graph, spin), lone(graph)) for _ in range(WINDOWS)]


def profiled(graph, spin):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=False) as running:
        times = windows(graph, spin)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        running.export_chrome_trace(path)
        with open(path) as trace:
            return times, in_trace(json.load(trace)["traceEvents"])


def in_trace(events):
    """Durations, times between nodes by pair, and the launching call of a replay in the trace."""
    replays, calls = collections.defaultdict(list), []
    for event in events:
        if event.get("cat") in KINDS:
            replays[event["args"].get("correlation")].append(event)
        elif event.get("name") == "cudaGraphLaunch":
            calls.append((event["args"].get("correlation"), event["dur"]))
    wanted = dict(calls)
    ordered = [sorted(nodes, key=lambda each: each["ts"]) for at, nodes in sorted(replays.items()) if at in wanted]
    between, durations, spans, apart = collections.defaultdict(list), [], [], []
    for number, nodes in enumerate(ordered):
        durations.append(sum(each["dur"] for each in nodes))
        spans.append(nodes[-1]["ts"] + nodes[-1]["dur"] - nodes[0]["ts"])
        for one, two in zip(nodes, nodes[1:]):
            pair = f"{KINDS[one['cat']]}:{KINDS[two['cat']]}"
            between[pair].append(two["ts"] - one["ts"] - one["dur"])
        if number:
            last = ordered[number - 1][-1]
            apart.append(nodes[0]["ts"] - last["ts"] - last["dur"])
    return {
        "nodes": float(numpy.median([len(nodes) for nodes in ordered] or [0])),
        "pairs": {pair: len(values) / max(len(ordered), 1) for pair, values in between.items()},
        "durations_us": middle(durations), "span_us": middle(spans),
        "between_us": {pair: quantiles(values) for pair, values in between.items()},
        "between_replays_us": quantiles(apart), "launch_call_us": quantiles([duration for _, duration in calls]),
        "streams": len({event["args"].get("stream") for nodes in ordered for event in nodes}),
    }


def quantiles(values):
    return [round(float(each), 4) for each in numpy.quantile(values, (0.1, 0.5, 0.9))] if values else []


def middle(values):
    return float(numpy.median(values)) if len(values) else 0.0


def measure(name, graph, about):
    spin = 2_000_000  # clock cycles: about a millisecond, until the host is well ahead
    rows = []
    for number in range(ROUNDS):
        plain, (under, trace), again = windows(graph, spin), profiled(graph, spin), windows(graph, spin)
        every = plain + again
        row = {
            "case": name, "round": number, **about, "trace": trace,
            "plain_us": middle([each[0] for each in every]), "profiled_us": middle([each[0] for each in under]),
            "plain_host_us": middle([each[1] for each in every]), "profiled_host_us": middle([each[1] for each in under]),
            "plain_lone_us": middle([each[2] for each in every]), "profiled_lone_us": middle([each[2] for each in under]),
            "plain_all_us": [round(each[0], 3) for each in every], "profiled_all_us": [round(each[0], 3) for each in under],
        }
        rows.append(row)
    print(
        f"{name:32} {row['plain_us']:9.2f} -> {row['profiled_us']:9.2f} us, durations {trace['durations_us']:9.2f}, span {trace['span_us']:9.2f}, "
        f"host {row['plain_host_us']:7.1f} -> {row['profiled_host_us']:7.1f}, lone {row['plain_lone_us']:7.1f} -> {row['profiled_lone_us']:7.1f}",
        flush=True,
    )
    return rows


def fit(rows, time_of):
    """Least-squares fit of the time between nodes by pair, and between replays; weighted by one over the period."""
    used = [pair for pair in PAIRS if any(row["trace"]["pairs"].get(pair, 0) >= 1 for row in rows)]
    rows = [row for row in rows if row["trace"]["streams"] <= 1 and row["trace"]["nodes"] > 1]
    if len(rows) <= len(used) + 1:
        return None
    x = numpy.array([[1.0, *(row["trace"]["pairs"].get(pair, 0.0) for pair in used)] for row in rows])
    y = numpy.array([row[time_of] - row["trace"]["durations_us"] for row in rows])
    weight = 1 / numpy.array([max(row[time_of], 1.0) for row in rows])
    found = numpy.linalg.lstsq(x * weight[:, None], y * weight, rcond=None)[0]
    left = (y - x @ found) * weight
    return {"between_replays_us": float(found[0]), "between_us": dict(zip(used, map(float, found[1:]))), "rms_of_period": float(numpy.sqrt(numpy.mean(left**2)))}


def line_fit(rows, of):
    """Host cost of a replay: a constant, and a cost per node."""
    if len(rows) < 3:
        return None
    x = numpy.array([[1.0, row["trace"]["nodes"]] for row in rows])
    y = numpy.array([row[of] for row in rows])
    weight = 1 / numpy.maximum(y, 1.0)
    base, node = numpy.linalg.lstsq(x * weight[:, None], y * weight, rcond=None)[0]
    return {"call_us": float(base), "node_us": float(node)}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "graph_nodes.json"
    deadline = time.monotonic() + float(os.environ.get("GRAPH_NODES_SECONDS", "120"))
    torch.cuda.synchronize()
    rows, skipped = [], []
    todo = [(name, lambda e=elements, n=names, c=count: line(e, n, c), {"elements": elements, "mix": list(names)}) for name, elements, names, count in cases()]
    todo.sort(key=lambda each: float(each[0].rpartition("_")[2]) * max(each[2]["elements"], 1 << 16))  # short ones first
    todo += [(name, lambda w=width, n=length: forked(w, n), {"branches": width}) for name, width, length in branches()]
    profiled(line(256, ("chain",), 4), 1000)  # the profiler's own start-up
    for name, make, about in todo:
        if time.monotonic() > deadline:
            skipped.append(name)
            continue
        try:
            rows += measure(name, make(), about)
        except Exception as error:  # one odd case must not lose the others
            skipped.append(f"{name}: {type(error).__name__}: {error}")
    small = [row for row in rows if row["trace"]["nodes"]]
    fits = {
        "plain": fit(rows, "plain_us"), "profiled": fit(rows, "profiled_us"),
        "host_plain": line_fit(small, "plain_host_us"), "host_profiled": line_fit(small, "profiled_host_us"),
    }
    result = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "replays": REPLAYS, "windows": WINDOWS, "rounds": ROUNDS,
        "skipped": skipped, "fits": fits, "rows": rows,
    }
    with open(out, "w") as target:
        json.dump(result, target)
    print(json.dumps({"skipped": skipped, "fits": fits}, indent=1))


if __name__ == "__main__":
    main()
