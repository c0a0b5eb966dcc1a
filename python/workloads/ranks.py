"""Ranks of a job: their group, numbers of all of them, windows of steps."""

import os
import time

import torch
import torch.distributed as dist

ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29513"}


def begin(device):
    """Joins the ranks that torchrun started, or a group of one; returns this rank."""
    for key, value in ALONE.items():
        os.environ.setdefault(key, value)
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    return dist.get_rank()


def of_all(value, device):
    """A number of each rank."""
    found = [torch.zeros(1, dtype=torch.float64, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(found, torch.tensor([value], dtype=torch.float64, device=device))
    return [float(each) for each in found]


def wait(device):
    """Waits for the GPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(step, steps, device):
    """Milliseconds per step of this rank, in a window of steps that all ranks begin together."""
    wait(device)
    dist.barrier()
    wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait(device)
    return (time.perf_counter() - start) * 1e3 / steps
