"""Measures cases: each alone by clocks, then the kernels of many under one profiler."""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from steptime.measure.collectives.calls import call
from steptime.measure.collectives.cases import Case
from steptime.measure.collectives.job import Job

KERNELS = ("ncclDevKernel", "ncclKernel", "ncclSymkDevKernel", "rcclGenericKernel")
WARMUPS, FEWEST, TRAFFIC = 3, 10, 2**30  # calls before timing; minimum number of calls; bytes of traffic above which calls are reduced
CHUNK = 24  # number of cases between two checks of the time limit


class Timing(NamedTuple):
    """Times of a case on one rank, in microseconds."""

    median: float
    shortest: float
    kernels: List[float]  # one for each profiled call


def sweep(job: Job, cases: Sequence[Case], options: argparse.Namespace) -> Dict[Case, List[Timing]]:
    """Times of each case on its ranks, for the cases measured before the time is up."""
    start = told = time.monotonic()
    found: Dict[Case, List[Timing]] = {}
    if job.on_gpu:
        profiled(job, lambda: None)  # the first start of the profiler is slow
    for at in range(0, len(cases), CHUNK):
        chunk = cases[at : at + CHUNK]
        everyone = job.all(measure(job, [each for each in chunk if job.rank < each.world], options.iterations))
        for each in chunk:
            found[each] = [seen[each] for seen in everyone if each in seen]
        now = time.monotonic()
        if job.rank == 0 and now - told > 10:
            told = now
            print(f"{now - start:.0f} s: {len(found)} of {len(cases)} cases", file=sys.stderr, flush=True)
        if job.tell(now - start > options.minutes * 60):
            break
    return found


def measure(job: Job, cases: Sequence[Case], most: int) -> Dict[Case, Timing]:
    """Times of some cases on this rank: each alone, then the kernels of all under one profiler."""
    ready = [(each, call(job, each), min(most, max(TRAFFIC // each.bytes, FEWEST))) for each in cases]
    times = [alone(job, each, run, calls) for each, run, calls in ready]
    kernels: List[List[float]] = [[] for _ in ready]
    if job.on_gpu:
        counts = [min(calls, 20) for _, _, calls in ready]
        kernels = cut(profiled(job, lambda: queue(job, ready, counts)), counts)
    return {each: Timing(statistics.median(seen), min(seen), own) for each, seen, own in zip(cases, times, kernels)}


def alone(job: Job, case: Case, run: Callable[[], Any], calls: int) -> List[float]:
    """Times of `calls` single calls, in microseconds."""
    job.together(case)
    for _ in range(WARMUPS):
        run()
    job.synchronize()
    return [(on_gpu if job.on_gpu else on_host)(job, case, run) for _ in range(calls)]


def on_gpu(job: Job, case: Case, run: Callable[[], Any]) -> float:
    """Time of one call by the GPU's clock, in microseconds."""
    start, end = (job.torch.cuda.Event(enable_timing=True) for _ in range(2))
    job.together(case)
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def on_host(job: Job, case: Case, run: Callable[[], Any]) -> float:
    """Time of one call by the host's clock, in microseconds."""
    job.together(case)
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


def queue(job: Job, ready: Sequence[Tuple[Case, Callable[[], Any], int]], counts: Sequence[int]) -> None:
    """Runs the calls of each case in turn: a kernel that is not NCCL's as a mark, a small all_reduce, the op."""
    for (case, run, _), count in zip(ready, counts):
        for _ in range(count):
            job.mark.add_(1)
            job.together(case)
            run()
        job.synchronize()


def profiled(job: Job, run: Callable[[], None]) -> List[Tuple[str, float, float]]:
    """Kernels launched by `run`: name, start and end in microseconds, sorted by start."""
    from torch.profiler import ProfilerActivity, profile

    job.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        job.synchronize()
    events = [each for each in seen.events() or [] if "CUDA" in str(each.device_type)]
    kernels = [(each.name, each.time_range.start, each.time_range.end) for each in events]
    return sorted(kernels, key=lambda kernel: kernel[1])


def cut(kernels: Sequence[Tuple[str, float, float]], counts: Sequence[int]) -> List[List[float]]:
    """Time of NCCL's kernels of each call, in microseconds, by case; empty for a case that lacks one, or if a mark is missing.

    After a mark, the first kernel of NCCL is that of the small all_reduce; the others are those of the op.
    """
    calls: List[List[Tuple[float, float]]] = []
    for name, start, end in kernels:
        if "elementwise_kernel" in name:
            calls.append([])
        elif calls and any(each in name for each in KERNELS):
            calls[-1].append((start, end))
    if len(calls) != sum(counts):
        return [[] for _ in counts]
    ends = list(itertools.accumulate(counts))
    by_case = [calls[end - count : end] for end, count in zip(ends, counts)]
    return [[span(each[1:]) for each in own] if all(len(each) > 1 for each in own) else [] for own in by_case]


def span(kernels: Sequence[Tuple[float, float]]) -> float:
    """Time from the first start to the last end."""
    return max(end for _, end in kernels) - min(start for start, _ in kernels)
