"""Measures the cost of the profiler per event: loops of identical tiny operations, un-profiled and profiled.

    python3 lab/profiler-cost/launch_cost.py [out.json]      (default launch_cost.json)

A window is: synchronise, issue N iterations, read the host's clock (host time), synchronise, read it again (wall time).
N stays below the depth of the launch queue, so host time never contains a wait for the GPU, also when the GPU is the
slower one. Windows alternate: un-profiled, profiled (CPU and CUDA activities, no shapes), un-profiled, ... `rounds` times.
Events of each iteration are counted in the exported trace; the extra host time of each iteration is then
fitted as cost(cpu_op) + cost(launching call) + cost(trivial runtime call) + cost(user annotation).
Raw calls through ctypes carry no cpu_op, so they separate a call's cost from an op's.
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
from torch.profiler import ProfilerActivity, profile, record_function

ITERATIONS, WINDOWS, WARMUP, ROUNDS = 200, 30, 5, 3
LAUNCHES = ("LaunchKernel", "LaunchCooperativeKernel", "MemcpyAsync", "MemsetAsync", "GraphLaunch")
TERMS = ("cpu_op", "launching_call", "trivial_call", "user_annotation")


def cudart():
    """The CUDA runtime this process has loaded, for raw calls; None if it cannot be found."""
    with open("/proc/self/maps") as maps:
        paths = sorted({line.split()[-1] for line in maps if "libcudart" in line})
    return ctypes.CDLL(paths[0]) if paths else None


def raw_cases():
    library = cudart()
    if library is None:
        return {}
    buffer = torch.empty(64, device="cuda")
    pointer, size = ctypes.c_void_p(buffer.data_ptr()), ctypes.c_size_t(256)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status = ctypes.c_int()

    def memset(keep=buffer):
        library.cudaMemsetAsync(pointer, 0, size, stream)

    def is_capturing():
        library.cudaStreamIsCapturing(stream, ctypes.byref(status))

    def peek():
        library.cudaPeekAtLastError()

    def memset_and_trivial():
        memset()
        is_capturing()

    return {"raw_memset": memset, "raw_is_capturing": is_capturing, "raw_peek_error": peek, "raw_memset_is_capturing": memset_and_trivial}


def torch_cases(elements, side):
    """Operations on `elements` floats, and a linear layer of `side` x `side`."""
    x, y = torch.rand(elements, device="cuda"), torch.rand(elements, device="cuda")
    out = torch.empty_like(x)
    a, w, b = torch.rand(side, side, device="cuda"), torch.rand(side, side, device="cuda"), torch.rand(side, device="cuda")
    group = [torch.rand(elements, device="cuda") for _ in range(4)]

    def annotated_add():
        with record_function("annotation"):
            torch.add(x, y)

    def add_and_views():
        torch.add(x, y)
        a.t()
        x.view(-1, 2)

    def chain():
        torch.mul(torch.add(x, y), y)

    return {
        "add": lambda: torch.add(x, y),
        "add_out": lambda: torch.add(x, y, out=out),
        "relu_": lambda: x.relu_(),
        "zero_": lambda: out.zero_(),
        "copy_d2d": lambda: out.copy_(x),
        "linear": lambda: torch.nn.functional.linear(a, w, b),
        "mm": lambda: torch.mm(a, w),
        "sum": lambda: x.sum(),
        "foreach_add_": lambda: torch._foreach_add_(group, 1.0),
        "add_mul": chain,
        "add_and_views": add_and_views,
        "annotated_add": annotated_add,
    }


def host_cases():
    """Operations without launches."""
    x, a = torch.rand(16, device="cuda"), torch.rand(16, 16, device="cuda")

    def annotation():
        with record_function("annotation"):
            pass

    def nested_annotations():
        with record_function("outer"), record_function("inner"):
            x.view(4, 4)

    return {
        "view": lambda: x.view(4, 4),
        "as_strided": lambda: x.as_strided((4, 4), (4, 1)),
        "t": lambda: a.t(),
        "transpose_view": lambda: a.transpose(0, 1).unsqueeze(0),
        "empty": lambda: torch.empty(16, device="cuda"),
        "annotation": annotation,
        "nested_annotations": nested_annotations,
        "nothing": lambda: None,
    }


def window(work):
    """Host and wall time of one iteration, in microseconds."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(ITERATIONS):
        work()
    host = time.perf_counter()
    torch.cuda.synchronize()
    end = time.perf_counter()
    return 1e6 * (host - begin) / ITERATIONS, 1e6 * (end - begin) / ITERATIONS


def windows(work):
    for _ in range(WARMUP):
        window(work)
    return [window(work) for _ in range(WINDOWS)]


def profiled(work):
    """Times under the profiler, and the events of an iteration."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=False) as running:
        times = windows(work)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        running.export_chrome_trace(path)
        with open(path) as trace:
            events = json.load(trace)["traceEvents"]
    return times, count(events, ITERATIONS * (WINDOWS + WARMUP))


def count(events, iterations):
    """Events per iteration, by term and by name."""
    terms, names = collections.Counter(), collections.Counter()
    for event in events:
        term = term_of(event)
        if event.get("ph") == "X" and term:
            terms[term] += 1
            names[f"{term}:{event['name']}"] += 1
    return (
        {term: terms[term] / iterations for term in (*TERMS, "gpu_work")},
        {name: number / iterations for name, number in names.items() if number / iterations >= 0.01},
    )


def term_of(event):
    category, name = event.get("cat"), event.get("name", "")
    if category in ("cuda_runtime", "cuda_driver"):
        if "Synchronize" in name:
            return None  # those of the window
        return "launching_call" if any(each in name for each in LAUNCHES) else "trivial_call"
    if category in ("kernel", "gpu_memcpy", "gpu_memset"):
        return "gpu_work"
    return category if category in ("cpu_op", "user_annotation") else None


def middle(times, which):
    return float(numpy.median([each[which] for each in times]))


def measure(variant, name, work, rounds):
    """One row for each round."""
    rows = []
    for number in range(rounds):
        plain = windows(work)
        under, (terms, names) = profiled(work)
        again = windows(work)
        row = {
            "case": name, "variant": variant, "round": number,
            "host_us_plain": middle(plain + again, 0), "host_us_profiled": middle(under, 0),
            "wall_us_plain": middle(plain + again, 1), "wall_us_profiled": middle(under, 1),
            "host_us_plain_before": middle(plain, 0), "host_us_plain_after": middle(again, 0),
            "host_us_plain_all": [round(each[0], 4) for each in plain + again],
            "host_us_profiled_all": [round(each[0], 4) for each in under],
            "per_iteration": terms, "names": names,
        }
        row["extra_us"] = row["host_us_profiled"] - row["host_us_plain"]
        rows.append(row)
        print(f"{variant:9} {name:24} {row['host_us_plain']:8.3f} -> {row['host_us_profiled']:8.3f} us  {terms}", flush=True)
    return rows


def fit(rows):
    """Least-squares fit of the cost of each term, in microseconds; None where it cannot be determined."""
    used = [term for term in TERMS if any(row["per_iteration"][term] > 0.01 for row in rows)]
    if len(rows) < len(used) + 1 or not used:
        return None
    x = numpy.array([[row["per_iteration"][term] for term in used] for row in rows])
    y = numpy.array([row["extra_us"] for row in rows])
    costs, _, rank, singular = numpy.linalg.lstsq(x, y, rcond=None)
    left = y - x @ costs
    free = max(len(rows) - len(used), 1)
    spread = numpy.sqrt(numpy.diag(numpy.linalg.pinv(x.T @ x)) * (left @ left) / free)
    return {
        "rows": len(rows), "rank": int(rank), "condition": float(singular[0] / singular[-1]) if singular[-1] > 0 else None,
        "us": dict(zip(used, map(float, costs))), "standard_error_us": dict(zip(used, map(float, spread))),
        "rms_left_us": float(numpy.sqrt(numpy.mean(left**2))),
        "worst": max(zip(map(abs, map(float, left)), (row["case"] for row in rows))),
    }


def fits(rows):
    dense = [row for row in rows if row["variant"] != "gpu_bound"]
    bound = [row for row in rows if row["variant"] == "gpu_bound"]
    found = {"all": fit(rows), "dense": fit(dense), "gpu_bound": fit(bound)}
    found.update({f"dense_round_{n}": fit([row for row in dense if row["round"] == n]) for n in range(ROUNDS)})
    found["dense_without_raw_calls"] = fit([row for row in dense if not row["case"].startswith("raw_")])
    return found


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "launch_cost.json"
    deadline = time.monotonic() + float(os.environ.get("LAUNCH_COST_SECONDS", "130"))
    torch.cuda.synchronize()
    # The matrix product of the dense variant stays tiny; the large one keeps the GPU behind the host.
    groups = [("host", host_cases()), ("dense", {**torch_cases(16, 16), **raw_cases()}), ("gpu_bound", torch_cases(1 << 24, 1024))]
    profiled(lambda: None)  # the profiler's own start-up
    rows = []
    skipped = []
    for variant, cases in groups:
        for name, work in cases.items():
            if time.monotonic() > deadline:
                skipped.append(f"{variant}:{name}")
                continue
            try:
                rows += measure(variant, name, work, ROUNDS)
            except Exception as error:  # one odd case must not lose the others
                skipped.append(f"{variant}:{name}: {type(error).__name__}: {error}")
    result = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "iterations": ITERATIONS, "windows": WINDOWS, "rounds": ROUNDS, "skipped": skipped, "fits": fits(rows), "rows": rows,
    }
    with open(out, "w") as target:
        json.dump(result, target)
    print(json.dumps({"skipped": skipped, "fits": result["fits"]}, indent=1))


if __name__ == "__main__":
    main()
