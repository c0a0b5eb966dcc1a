"""Measures the overhead of a job on one of its ranks: python benches/worlds.py OUT nccl|fake        (needs a GPU, NCCL, torchvision)

`nccl`: models in a process group of one rank: plain, in DistributedDataParallel, and the latter with gradients sent as bf16. `fake`: the
same models as rank 0 of 8 in a process group whose collectives return at once, in FSDP2 (`fully_shard` of every block). No data moves
between GPUs: only the rank's own work on host and device is measured. OUT/NAME_KIND are recordings; OUT/worlds_WHICH.json has a row each.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

import steptime

RANKS = 8


class Block(nn.Module):
    """A decoder block with pre-norms."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        samples, length, width = x.shape
        each = self.qkv(self.one(x)).view(samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        met = F.scaled_dot_product_attention(*each, is_causal=True)
        x = x + self.out(met.transpose(1, 2).reshape(samples, length, width))
        return x + self.down(F.gelu(self.up(self.two(x))))


class Decoder(nn.Module):
    """A decoder language model."""

    def __init__(self, words, width, blocks):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, 8) for _ in range(blocks))
        self.head = nn.Linear(width, words)

    def forward(self, x):
        x = self.words(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def mlp():
    layers = [nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(8)]
    return nn.Sequential(*layers, nn.Linear(1024, 1)), (torch.randn(2048, 1024), torch.randn(2048, 1)), F.mse_loss, list


def decoder():
    batch = torch.randint(8192, (8, 256)), torch.randint(8192, (8, 256))
    loss = lambda found, wanted: F.cross_entropy(found.flatten(0, 1), wanted.flatten())  # noqa: E731
    return Decoder(8192, 768, 8), batch, loss, lambda model: model.blocks


def resnet():
    blocks = lambda model: [block for layer in (model.layer1, model.layer2, model.layer3, model.layer4) for block in layer]  # noqa: E731
    return torchvision.models.resnet50(), (torch.randn(32, 3, 224, 224), torch.randint(1000, (32,))), F.cross_entropy, blocks


def record(make, kind, out):
    """Records one model; returns its row."""
    torch.manual_seed(0)
    network, batch, loss, blocks = make()
    network = network.cuda()
    wrapped = network
    if kind.startswith("ddp"):
        wrapped = nn.parallel.DistributedDataParallel(network, device_ids=[0])
        if kind == "ddp_bf16":
            wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    if kind == "fsdp":
        for block in blocks(network):
            fully_shard(block)
        wrapped = fully_shard(network)
    optimizer = torch.optim.AdamW(wrapped.parameters(), lr=1e-4)

    def step():
        x, y = (part.cuda() for part in batch)
        optimizer.zero_grad()
        loss(wrapped(x), y).backward()
        optimizer.step()

    def timed(steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3 / steps

    timed(8)
    torch.cuda.reset_peak_memory_stats()
    before = sorted(timed(20) for _ in range(3))
    peak = torch.cuda.max_memory_allocated() / 1e6
    path = f"{out}/{make.__name__}_{kind}"
    with steptime.watch(wrapped, optimizer, out=path, quiet=True) as watched:
        while not watched.done:
            step()
            watched.step()
    with open(f"{path}/meta.json") as text:
        meta = json.load(text)
    return {"model": make.__name__, "kind": kind, "before_ms": before, "step_ms": meta["step_ms"], "peak_mb": peak}


def fake(ranks, rank):
    """Makes this process rank `rank` of a group of `ranks`, whose collectives do nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)


def main():
    """Records all models of a kind."""
    out, which = sys.argv[1], sys.argv[2]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.cuda.set_device(0)
    if which == "nccl":
        dist.init_process_group("nccl", rank=0, world_size=1)
    else:
        fake(RANKS, 0)
    kinds = ("plain", "ddp", "ddp_bf16") if which == "nccl" else ("fsdp",)
    rows = []
    for make in (mlp, decoder, resnet):
        for kind in kinds:
            rows.append(record(make, kind, out))
            torch.cuda.empty_cache()
    with open(f"{out}/worlds_{which}.json", "w") as text:
        json.dump(rows, text, indent=1)
    print(json.dumps(rows), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
