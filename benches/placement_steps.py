"""Steps of placements of one model after the other, timed in turns on the ranks of a job."""

import gc
import json
import math
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/workloads")]

from job_description import adjusted, read, tables_of  # noqa: E402
from job_model import Dense, Inputs, Step, Tables  # noqa: E402
from placement_plans import parts_of_plan  # noqa: E402
from ranks import begin, of_all, timed  # noqa: E402

WARM_UP, TRIED, STEPS_BETWEEN = 8, 4, 2


def replicated(model, device):
    """The dense part of all placements."""
    torch.manual_seed(0)
    return nn.parallel.DistributedDataParallel(Dense(model).to(device))


def steps_of(model, parts, indices, rank, device):
    """A step for each placement. Steps share the dense part, the inputs, and the weights of equal shards."""
    dense, inputs, weights = replicated(model, device), Inputs(model, dist.get_world_size(), rank, indices), {}
    return {name: Step(Tables(model, own, rank, device, weights), dense, inputs, device) for name, own in parts.items()}


def rows_of(name, steps, asked):
    """Milliseconds of each placement: of each round, by the slower rank."""
    counts, rows = {}, {each: [] for each in steps}
    for each, step in steps.items():
        timed(step, WARM_UP, asked.device)
        ms = max(of_all(timed(step, TRIED, asked.device), asked.device))
        counts[each] = max(TRIED, math.ceil(asked.window * 1e3 / ms))
    for at in range(asked.rounds):
        for each in list(steps) if at % 2 == 0 else reversed(list(steps)):
            timed(steps[each], STEPS_BETWEEN, asked.device)
            rows[each].append(of_all(timed(steps[each], counts[each], asked.device), asked.device))
    return [{"model": name, "placement": each, "ms": [max(ranks) for ranks in rows[each]], "rank_ms": rows[each], "steps": counts[each]} for each in steps]


def measure(asked, jobs, folder):
    """Times the placements of each model, and writes the file after each."""
    began, rank, rows, seconds = time.perf_counter(), begin(asked.device), [], {}
    about = {"device": torch.cuda.get_device_name() if asked.device == "cuda" else "cpu", "torch": torch.__version__}
    about |= {"ranks": dist.get_world_size(), "window_s": asked.window, "rounds": asked.rounds, "date": time.strftime("%Y-%m-%d")}
    if asked.device == "cuda":
        about["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    for name, path, indices, _ in jobs:
        if max(of_all(time.perf_counter() - began, asked.device)) > asked.seconds:
            break
        start = time.perf_counter()
        model = read(path)
        parts = {plan.stem: parts_of_plan(plan, tables_of(model), dist.get_world_size()) for plan in sorted((folder / name).glob("*.json"))}
        if not parts:
            sys.exit(f"{folder / name}: no plans: run --predict first")
        model = adjusted(model, asked.batch, asked.rows_at_most)
        steps = steps_of(model, parts, indices, rank, asked.device)
        rows += [{**row, "batch": model["batch"], "indices": indices} for row in rows_of(name, steps, asked)]
        del steps
        gc.collect()
        if asked.device == "cuda":
            torch.cuda.empty_cache()
        seconds[name] = round(time.perf_counter() - start, 1)
        if rank == 0:
            print(f"{name}: {len(parts)} placements in {seconds[name]} s", flush=True)
            asked.measure.write_text(json.dumps({**about, "seconds": seconds, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    dist.destroy_process_group()
