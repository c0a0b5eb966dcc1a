"""A described DLRM trained by the ranks of a job: tables on the GPUs given in `[parallel]`, vectors exchanged by all-to-all, MLPs in
DistributedDataParallel.

    torchrun --nproc-per-node 2 python/workloads/hybrid.py OUT MODEL.toml...

OUT/NAME has a folder per rank, as `steptime validate OUT` reads them; for comparison, `steptime predict MODEL.toml` predicts the same
job from its description. All ranks of a job train; models are recorded in turn. Tables are placed whole or cut by columns, not by
rows. Lookups are uniform over rows. The rank STEPTIME_SLOW_RANK waits for STEPTIME_SLOW_US microseconds before its forward pass: an
artificial straggler.
"""
import json
import os
import sys
import time
import tomllib
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import steptime

SLOW_RANK = int(os.environ.get("STEPTIME_SLOW_RANK", -1))
SLOW_US = float(os.environ.get("STEPTIME_SLOW_US", 0))


class A2A(torch.autograd.Function):
    """All-to-all exchange of the parts of a flat tensor; the backward pass exchanges the gradients in reverse."""

    @staticmethod
    def forward(ctx, x, received, sent):
        ctx.splits = sent, received
        out = x.new_empty([sum(received)])
        dist.all_to_all_single(out, x, received, sent)
        return out

    @staticmethod
    def backward(ctx, grad):
        received, sent = ctx.splits
        out = grad.new_empty([sum(received)])
        dist.all_to_all_single(out, grad.contiguous(), received, sent)
        return out, None, None


def tables_of(model):
    """Rows, columns and lookups of each table."""
    return [(t["rows"], t["columns"], t.get("lookups", 1)) for t in model["tables"] for _ in range(t.get("count", 1))]


def parts_of(model):
    """Number of columns of each table on each GPU."""
    parallel, tables = model["parallel"], tables_of(model)
    lists = parallel.get("placement") or [[t for t in range(len(tables)) if t % parallel["gpus"] == g] for g in range(parallel["gpus"])]
    owners = {t: [g for g, own in enumerate(lists) if t in own] for t in range(len(tables))}
    return [[(t, tables[t][1] // len(owners[t])) for t in sorted(own)] for own in lists]


class Tables(nn.Module):
    """The tables of this rank, and the vectors of its samples from all ranks."""

    def __init__(self, model, rank):
        super().__init__()
        parts, tables = parts_of(model), tables_of(model)
        self.ranks, self.share = len(parts), model["batch"] // len(parts)
        self.own = parts[rank]
        self.bags = nn.ModuleList(nn.EmbeddingBag(tables[t][0], width, mode="sum", sparse=True) for t, width in self.own)
        # A rank without tables takes part in the backward exchange, too.
        self.nothing = None if self.own else nn.Parameter(torch.empty(0))
        self.widths = [sum(width for _, width in part) for part in parts]
        order = [t for part in parts for t, _ in part]
        self.equal = len({width for part in parts for _, width in part}) == 1
        back = sorted(range(len(order)), key=lambda at: (order[at], at))
        self.register_buffer("order", torch.tensor(back) if back != list(range(len(back))) else None)

    def forward(self, lookups, offsets):
        pooled = [bag(at, start) for bag, at, start in zip(self.bags, lookups, offsets)]
        sums = self.nothing if not pooled else torch.cat(pooled, dim=1) if len(pooled) > 1 else pooled[0]
        sent = [self.share * sum(width for _, width in self.own)] * self.ranks
        received = [self.share * width for width in self.widths]
        came = A2A.apply(sums.view(-1), received, sent)
        parts = [part.view(self.share, -1) for part, width in zip(came.split(received), self.widths) if width]
        x = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        if self.order is None:
            return x
        return x.view(self.share, len(self.order), -1)[:, self.order].view(x.shape)


def mlp(sizes, last):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*(layers if last else layers[:-1]))


class Dense(nn.Module):
    """The replicated part: both MLPs, and the products of all pairs between them."""

    def __init__(self, model):
        super().__init__()
        tables = tables_of(model)
        self.width = model["bottom_mlp"][-1]
        self.bottom = mlp([model["dense"], *model["bottom_mlp"]], True)
        features = len(tables) + 1
        self.dot = model.get("interaction", "dot") == "dot"
        rows, columns = torch.tril_indices(features, features, -1)
        if self.dot:
            self.register_buffer("rows", rows)
            self.register_buffer("columns", columns)
        met = self.width + (len(rows) if self.dot else sum(width for _, width, _ in tables))
        self.top = mlp([met, *model["top_mlp"]], False)
        self.mse = model.get("loss") == "mse"

    def forward(self, dense, vectors):
        x = self.bottom(dense)
        met = torch.cat([x, vectors], dim=1)
        if self.dot:
            each = met.view(x.shape[0], -1, self.width)
            met = torch.cat([x, torch.bmm(each, each.transpose(1, 2))[:, self.rows, self.columns]], dim=1)
        out = self.top(met)
        return torch.sigmoid(out) if self.mse else out


def inputs(model, rank):
    """A batch in host memory: dense features of this rank's samples, lookups of its tables for all samples, labels."""
    batch, share, tables = model["batch"], model["batch"] // model["parallel"]["gpus"], tables_of(model)
    own = [tables[t] for t, _ in parts_of(model)[rank]]
    lookups = [torch.randint(rows, (batch * count,)) for rows, _, count in own]
    offsets = [torch.arange(0, batch * count, count) for _, _, count in own]
    return torch.rand(share, model["dense"]), lookups, offsets, torch.rand(share, 1)


def train(path, out, rank):
    """Trains and records one model; returns its measurements."""
    with open(path, "rb") as text:
        model = tomllib.load(text)
    torch.manual_seed(rank)
    tables, dense = Tables(model, rank).cuda(), nn.parallel.DistributedDataParallel(Dense(model).cuda())
    optimizer = torch.optim.SGD([*tables.parameters(), *dense.parameters()], lr=0.01)
    batch = inputs(model, rank)
    loss_of = F.mse_loss if model.get("loss") == "mse" else F.binary_cross_entropy_with_logits

    def step():
        with torch.profiler.record_function("## to_device ##"):
            x = batch[0].to("cuda")
            lookups, offsets = ([each.to("cuda") for each in part] for part in batch[1:3])
            labels = batch[3].to("cuda")
        if rank == SLOW_RANK:
            until = time.perf_counter() + SLOW_US * 1e-6
            while time.perf_counter() < until:
                pass
        with torch.profiler.record_function("## embedding ##"):
            vectors = tables(lookups, offsets)
        loss = loss_of(dense(x, vectors), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def timed(steps):
        """Milliseconds per step."""
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3 / steps

    timed(10)
    before = [timed(50) for _ in range(3)]
    name = Path(path).stem
    with steptime.watch(dense, optimizer, out=out / name, batch=model["batch"] // len(parts_of(model)), every_rank=True, quiet=True) as watched:
        while not watched.done:
            step()
            watched.step()
    after = [timed(50) for _ in range(3)]
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
    rank = int(os.environ.setdefault("RANK", "0"))
    for key, value in (("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29513"), ("LOCAL_RANK", "0")):
        os.environ.setdefault(key, value)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rows = [train(path, out, rank) for path in sys.argv[2:]]
    with open(out / f"measured_rank{rank}.json", "w") as text:
        json.dump(rows, text, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
