"""Shared settings of the workloads: device, batch size and host-side batches from the environment.

STEPTIME_BATCH    batch size (each script has its own default)
STEPTIME_DEVICE   cuda (default) or cpu
STEPTIME_TINY     1 shrinks the model, for a check on a CPU
"""
import os

import torch

DEVICE = os.environ.get("STEPTIME_DEVICE", "cuda")
TINY = os.environ.get("STEPTIME_TINY", "0") == "1"
BATCHES = 8  # pageable host batches, used in turn

torch.manual_seed(0)


def batch_size(default):
    return int(os.environ.get("STEPTIME_BATCH", default))


def pick(real, tiny):
    return tiny if TINY else real


def arguments(name, batch, model):
    return {"batch": batch, "model": name, "params": sum(p.numel() for p in model.parameters())}
