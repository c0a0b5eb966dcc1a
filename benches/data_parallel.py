"""What DistributedDataParallel adds to a step on one GPU: python benches/data_parallel.py OUT        (needs a GPU and NCCL, torchvision)

Four models, each plain, in DistributedDataParallel, and there with gradients as views of the buckets, in a process group of one rank: no
data moves to other ranks, so what is added is the wrapper's own work. OUT/NAME_KIND are recordings, OUT/data_parallel.json has a row each:
the un-profiled step as measured and as predicted from the recording, device active time, the most memory. `steptime compare` of two of
the recordings shows which ops and kernels differ: without views each parameter is scaled into a bucket and copied back.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.nn import functional

import steptime


def mlp():
    layers = [layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    batch = torch.randn(2048, 1024), torch.randn(2048, 1)
    return nn.Sequential(*layers, nn.Linear(1024, 1)), batch, functional.mse_loss


def transformer():
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    batch = torch.randn(16, 128, 512), torch.randint(1000, (16, 128))
    loss = lambda found, wanted: functional.cross_entropy(found.flatten(0, 1), wanted.flatten())  # noqa: E731
    return nn.Sequential(nn.TransformerEncoder(layer, 6), nn.Linear(512, 1000)), batch, loss


def images(network, count):
    return network, (torch.randn(count, 3, 224, 224), torch.randint(1000, (count,))), functional.cross_entropy


def resnet():
    return images(torchvision.models.resnet50(), 32)


def convnext():
    return images(torchvision.models.convnext_tiny(), 16)


def record(make, kind, out):
    """Records one model, and tells what came of it."""
    torch.manual_seed(0)
    network, batch, loss = make()
    network = network.cuda()
    wrapped = network
    if kind != "plain":
        wrapped = nn.parallel.DistributedDataParallel(network, device_ids=[0], gradient_as_bucket_view=kind == "view")
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    torch.cuda.reset_peak_memory_stats()
    path = f"{out}/{make.__name__}_{kind}"
    with steptime.watch(wrapped, optimizer, out=path, quiet=True) as watched:
        while not watched.done:
            x, y = (part.cuda() for part in batch)
            optimizer.zero_grad()
            loss(wrapped(x), y).backward()
            optimizer.step()
            watched.step()
    with open(f"{path}/meta.json") as text:
        meta = json.load(text)
    found = steptime.predict(path)
    peak = torch.cuda.max_memory_allocated() / 1e6
    times = {"step_ms": meta["step_ms"], "predicted_ms": found.step_ms, "active_ms": found.active_ms}
    return {"model": make.__name__, "kind": kind, **times, "peak_mb": peak, "params": meta["params"]}


def main():
    """Records all."""
    out = sys.argv[1]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    rows = [record(make, kind, out) for make in (mlp, transformer, resnet, convnext) for kind in ("plain", "ddp", "view")]
    with open(f"{out}/data_parallel.json", "w") as text:
        json.dump(rows, text, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
