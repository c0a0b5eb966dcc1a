"""A described DLRM or DCN-v2 trained by the ranks of a job: tables on the GPUs given in `[parallel]`, vectors exchanged by all-to-all, the
dense part in DistributedDataParallel.

    torchrun --nproc-per-node 2 python/workloads/hybrid.py OUT MODEL.toml...

OUT/NAME has a folder per rank, as `steptime validate OUT` reads them; for comparison, `steptime predict MODEL.toml` predicts the same
job from its description. All ranks of a job train; models are recorded in turn. Tables are placed whole or cut by columns, not by
rows. Lookups are uniform over rows. The rank STEPTIME_SLOW_RANK waits for STEPTIME_SLOW_US microseconds before its forward pass: an
artificial straggler.
"""
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import steptime
from job_description import parts_of, read
from job_model import Dense, Inputs, Step, Tables
from ranks import begin, timed

SLOW_RANK = int(os.environ.get("STEPTIME_SLOW_RANK", -1))
SLOW_US = float(os.environ.get("STEPTIME_SLOW_US", 0))


def train(path, out, rank):
    """Trains and records one model; returns its measurements."""
    model = read(path)
    parts = parts_of(model)
    torch.manual_seed(rank)
    tables, dense = Tables(model, parts, rank, "cuda"), nn.parallel.DistributedDataParallel(Dense(model).cuda())
    step = Step(tables, dense, Inputs(model, len(parts), rank), "cuda", SLOW_US if rank == SLOW_RANK else 0.0)
    timed(step, 10, "cuda")
    before = [timed(step, 50, "cuda") for _ in range(3)]
    name = Path(path).stem
    with steptime.watch(dense, step.optimizer, out=out / name, batch=model["batch"] // len(parts), every_rank=True, quiet=True) as watched:
        while not watched.done:
            step()
            watched.step()
    after = [timed(step, 50, "cuda") for _ in range(3)]
    peak = torch.cuda.max_memory_allocated() / 1e6
    torch.cuda.reset_peak_memory_stats()
    row = {"model": name, "rank": rank, "before_ms": sorted(before), "after_ms": sorted(after), "peak_mb": peak}
    # A job of one rank has no folders per rank.
    folder = out / name / f"rank{rank}" if dist.get_world_size() > 1 else out / name
    with open(folder / "meta.json") as text:
        meta = json.load(text)
    return {**row, "step_ms": meta["step_ms"]}


def main():
    out = Path(sys.argv[1]).absolute()
    rank = begin("cuda")
    rows = [train(path, out, rank) for path in sys.argv[2:]]
    with open(out / f"measured_rank{rank}.json", "w") as text:
        json.dump(rows, text, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
