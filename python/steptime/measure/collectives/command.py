"""The command: its options and its order of work."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import List, Optional, Tuple

from steptime.errors import UsageError
from steptime.measure.collectives.cases import BYTES, DTYPES, plan
from steptime.measure.collectives.files import check_out, describe, rows, write
from steptime.measure.collectives.job import Job
from steptime.measure.collectives.timing import sweep

OK, USAGE = 0, 2
COMMAND = "torchrun --nproc-per-node N -m steptime.measure.collectives -o FILE.csv"


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one rank of the command and returns its exit code."""
    options = parse(argv)
    try:
        run(options)
        return OK
    except UsageError as error:
        if os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"steptime: {error}", file=sys.stderr, flush=True)
        else:
            time.sleep(2)  # torchrun ends all ranks when the first one exits: let the rank that prints the error be first
        return USAGE


def parse(argv: Optional[List[str]]) -> argparse.Namespace:
    known = {"ops": ",".join(BYTES), "dtypes": ",".join(DTYPES)}
    about = "Times collectives over the ranks of a job, into one file."
    parser = argparse.ArgumentParser(prog=COMMAND.partition(" -o")[0], description=about)
    add = parser.add_argument
    add("-o", "--out", type=Path, required=True, metavar="FILE.csv", help="the file to make, together with FILE.json")
    add("--ops", default=known["ops"], help="comma-separated ops (default all: %(default)s)")
    add("--from", dest="low", default="1KiB", metavar="BYTES", help="the smallest size (default %(default)s)")
    add("--to", dest="high", default="256MiB", metavar="BYTES", help="the largest size (default %(default)s)")
    add("--sizes-per-doubling", type=int, default=1, metavar="N", help="random sizes per doubling (default %(default)s)")
    add("--groups", help="group sizes in ranks, such as 2,4 (default powers of two, and all ranks)")
    add("--dtypes", default="float32", help=f"comma-separated types of {known['dtypes']} (default %(default)s)")
    add("--minutes", type=float, default=3.0, help="how long to measure at most (default %(default)g)")
    add("--iterations", type=int, default=40, help="calls of a case at most (default %(default)s)")
    add("--seed", type=int, default=0, help="another seed, other sizes (default %(default)s)")
    add("--backend", choices=("nccl", "gloo"), default="nccl", help="gloo runs on the CPU (default %(default)s)")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> None:
    """Measures all cases, or as many as the time allows; rank 0 writes the files."""
    rank, world = started()
    cases = plan(options, world)
    if rank == 0:
        check_out(options.out)
    job = Job(options.backend, rank, world, cases)
    try:
        found = sweep(job, cases, options)
        if rank == 0:
            about = describe(job, options, len(cases), len(found))
            write(options.out, rows(found, job.members, about["topology"] if job.on_gpu else None), about)
            print(f"{len(found)} of {len(cases)} cases in {options.out}", file=sys.stderr)
            if options.backend == "nccl" and not any(all(each.kernels for each in seen) for seen in found.values()):
                print("steptime: the profiler saw no kernel of NCCL, so kernel_us is empty", file=sys.stderr)
    finally:
        job.end()


def started() -> Tuple[int, int]:
    """Index of this rank and number of ranks, from torchrun."""
    missing = [name for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR") if name not in os.environ]
    if missing:
        raise UsageError(f"this was not started by torchrun (no {missing[0]} is set): {COMMAND}")
    world = int(os.environ["WORLD_SIZE"])
    if world < 2:
        raise UsageError("collectives need 2 ranks at least, with NCCL 2 GPUs: torchrun --nproc-per-node 2 ...")
    return int(os.environ["RANK"]), world
