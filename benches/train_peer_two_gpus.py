"""Time of a training step of a described model in PyTorch on several GPUs, beside that of `steptime-train --gpus 2`.

    torchrun --nproc-per-node 2 benches/train_peer_two_gpus.py --out FILE.json        (needs two GPUs and NCCL)

eager      an EmbeddingBag for each table, an all-to-all, then the dense part in DistributedDataParallel
compile    the dense part by torch.compile, the bottom MLP beside the all-to-all, a fused optimizer for the dense part, buckets without copies
bags       the same with steptime's operators for all tables of a rank in one call (STEPTIME_CUDA_LIBRARY)

Tables are whole on ranks, with sparse SGD: neighbours with the least elements looked up on a rank, or those of `--placement`, a plan of `steptime
shard`. The batch is on the GPUs, indices are uniform, no loss is read. For bf16, autocast, and vectors are exchanged in 16 bits. The time is the
median of the rounds, each by the slowest rank. `loss` is the mean of the ranks after three steps from equal parameters, and has to agree. FILE.json
is written after each peer.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import time
from itertools import accumulate
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/workloads")]

from job_description import adjusted, parts_of_lists, read, tables_of  # noqa: E402
from job_model import Dense, Inputs, Tables  # noqa: E402
from placement_plans import parts_of_plan  # noqa: E402
from ranks import begin, of_all, timed  # noqa: E402

PEERS, PRECISIONS, RATE = ("eager", "compile", "bags"), ("f32", "tf32", "bf16"), 0.01
CHECKED_STEPS, WARM_UP, TRIED = 3, 5, 5


class Request(torch.autograd.Function):
    """Begins the exchange of `sums`; its backward pass waits for the gradients."""

    @staticmethod
    def forward(ctx, sums, exchange):
        ctx.exchange = exchange
        came = sums.new_empty([sum(exchange.received)])
        exchange.work = dist.all_to_all_single(came, sums, exchange.received, exchange.sent, async_op=True)
        return came

    @staticmethod
    def backward(ctx, _):
        ctx.exchange.work.wait()
        return ctx.exchange.back, None


class Wait(torch.autograd.Function):
    """Waits for the exchange; its backward pass begins that of the gradients."""

    @staticmethod
    def forward(ctx, came, exchange):
        ctx.exchange = exchange
        exchange.work.wait()
        return came.view_as(came)

    @staticmethod
    def backward(ctx, grad):
        exchange, grad = ctx.exchange, grad.contiguous()
        exchange.back = grad.new_empty([sum(exchange.sent)])
        exchange.work = dist.all_to_all_single(exchange.back, grad, exchange.sent, exchange.received, async_op=True)
        return grad, None


class Exchange:
    """An all-to-all beside other work."""

    def __init__(self, tables):
        self.received, self.sent = tables.received, tables.sent


class FusedTables(Tables):
    """Tables by steptime's operators, updated in the backward pass."""

    def __init__(self, model, parts, rank, device, weights, lookups, offsets):
        from steptime.operators import EmbeddingBags

        super().__init__(model, parts, rank, device, weights)
        own, self.bags, self.fused = list(self.bags), nn.ModuleList(), None
        if not own:
            return
        options = {"mode": model["pooling"], "optimizer": "sgd", "lr": RATE, "longest": max(map(len, lookups)), "device": device}
        self.fused = EmbeddingBags([len(bag.weight) for bag in own], [bag.embedding_dim for bag in own], **options)
        with torch.no_grad():
            for table, bag in zip(self.fused.tables, own):
                table.copy_(bag.weight)
        firsts = accumulate([0, *map(len, lookups[:-1])])
        self.indices = torch.cat(lookups)
        self.offsets = torch.cat([*(start + first for start, first in zip(offsets, firsts)), torch.tensor([len(self.indices)], device=device)])

    def pooled(self, lookups, offsets):
        return self.fused(self.indices, self.offsets)


class BesideExchange(nn.Module):
    """The dense part by torch.compile, with the bottom MLP beside the exchange."""

    def __init__(self, dense, tables, mode):
        super().__init__()
        self.dense = dense
        self.bottom = torch.compile(dense.bottom, mode=mode)
        # Not a module of this one: its tables are not replicated.
        self.rest = torch.compile(lambda x, came: dense.rest(x, tables.ordered(came)), mode=mode)

    def forward(self, x, came, exchange):
        x = self.bottom(x)
        return self.rest(x, Wait.apply(came, exchange))


class PeerStep:
    """A training step of a peer, on a batch on the device."""

    def __init__(self, peer, model, parts, inputs, rank, asked, precision):
        self.peer, self.device, self.bf16, device = peer, asked.device, precision == "bf16", asked.device
        dense, *lists, labels = inputs.of(parts[rank])
        self.x, self.labels = dense.to(device), labels.to(device)
        self.lookups, self.offsets = ([each.to(device) for each in part] for part in lists)
        weights = first_weights(model, parts[rank], device)
        kind, given = (FusedTables, (self.lookups, self.offsets)) if peer == "bags" else (Tables, ())
        self.tables = kind(model, parts, rank, device, weights, *given)
        torch.manual_seed(0)
        self.plain = Dense(model).to(device)
        replicated = self.plain if peer == "eager" else BesideExchange(self.plain, self.tables, asked.mode)
        quick = {} if peer == "eager" else {"broadcast_buffers": False, "gradient_as_bucket_view": True}
        self.dense = nn.parallel.DistributedDataParallel(replicated, **quick)
        self.exchange = Exchange(self.tables)
        self.optimizers = [torch.optim.SGD(self.dense.parameters(), lr=RATE, **({} if peer == "eager" else {"fused": True}))]
        trained = [each for each in self.tables.parameters() if each.requires_grad]
        self.optimizers += [torch.optim.SGD(trained, lr=RATE)] if trained else []

    def loss(self):
        sums = self.tables.pooled(self.lookups, self.offsets) if self.tables.own else self.tables.nothing
        sums = sums.to(torch.bfloat16) if self.bf16 else sums
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            if self.peer == "eager":
                out = self.dense(self.x, self.tables.exchanged(sums))
            else:
                out = self.dense(self.x, Request.apply(sums.view(-1), self.exchange), self.exchange)
        return self.plain.loss(out.float(), self.labels)

    def __call__(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach()


def first_weights(model, own, device):
    """The weights of a rank's shards, which depend on the shard alone."""
    found, tables = {}, tables_of(model)
    for shard in own:
        torch.manual_seed(1000 * shard.table + shard.first)
        found[shard] = torch.empty(tables[shard.table][0], shard.columns, device=device).normal_()
    return found


def neighbours(tables, ranks):
    """Tables of each rank: neighbours, so that the elements looked up on the busiest rank are as few as possible."""
    loads = [columns * lookups for _, columns, lookups in tables]

    def cut(most):
        lists = [[]]
        for table, load in enumerate(loads):
            if lists[-1] and sum(loads[each] for each in lists[-1]) + load > most:
                lists.append([])
            lists[-1].append(table)
        return lists

    sums = [0, *accumulate(loads)]
    limits = sorted({end - first for at, first in enumerate(sums) for end in sums[at + 1 :]})
    lists = next(lists for most in limits if most >= max(loads) and len(lists := cut(most)) <= ranks)
    return lists + [[]] * (ranks - len(lists))


def measured(peer, model, parts, rank, asked, precision):
    """The answer of a peer."""
    began = time.perf_counter()
    torch.backends.cuda.matmul.allow_tf32 = precision != "f32"
    step = PeerStep(peer, model, parts, Inputs(model, len(parts), rank), rank, asked, precision)
    for _ in range(CHECKED_STEPS):
        loss = step()
    losses = of_all(float(loss), asked.device)
    ready = time.perf_counter() - began
    timed(step, WARM_UP, asked.device)
    tried = max(of_all(timed(step, TRIED, asked.device), asked.device))
    steps = max(TRIED, int(asked.window * 1e3 / tried) + 1)
    rounds = [max(of_all(timed(step, steps, asked.device), asked.device)) for _ in range(asked.rounds)]
    answer = {"ms": statistics.median(rounds), "ms_of_rounds": rounds, "steps": steps, "loss": statistics.mean(losses), "seconds_to_begin": round(ready, 1)}
    if asked.device == "cuda":
        answer["peak_gb"] = max(of_all(torch.cuda.max_memory_allocated() / 1e9, asked.device))
    return answer


def free(device):
    """Frees the memory of the peer before, which is in cycles."""
    torch._dynamo.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("precisions", nargs="*", default=["tf32", "bf16"], help=f"of {', '.join(PRECISIONS)}")
    parser.add_argument("--model", type=Path, default=ROOT / "examples/models/dlrm_nvidia.toml")
    parser.add_argument("--placement", type=Path, help="a plan of `steptime shard`")
    parser.add_argument("--peers", default="eager,compile,bags")
    parser.add_argument("--mode", default="default", help="mode of torch.compile")
    parser.add_argument("--batch", type=int, default=65_536, help="samples a GPU")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=float, default=0.4, help="least seconds of a round")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--rows-at-most", type=int, help="largest number of rows of a table, to try the program")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    peers = asked.peers.split(",")
    if unknown := [each for each in (*peers, *asked.precisions) if each not in (*PEERS, *PRECISIONS)]:
        parser.error(f"{unknown[0]} is unknown: choose of {', '.join((*PEERS, *PRECISIONS))}")
    rank, model = begin(asked.device), read(asked.model)
    ranks = dist.get_world_size()
    tables = tables_of(model)
    parts = parts_of_plan(asked.placement, tables, ranks) if asked.placement else parts_of_lists(neighbours(tables, ranks), tables)
    model, rows = adjusted(model, asked.batch * ranks, asked.rows_at_most), []
    about = {"model": asked.model.stem, "batch": asked.batch, "gpus": ranks, "torch": torch.__version__, "mode": asked.mode}
    about |= {"device": torch.cuda.get_device_name() if asked.device == "cuda" else "cpu", "placement": [[shard.table for shard in own] for own in parts]}
    for precision in asked.precisions:
        for peer in peers:
            free(asked.device)
            try:
                answer = measured(peer, model, parts, rank, asked, precision)
            except Exception as error:  # a peer that fails is reported, and the others run
                answer = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
            rows.append({"precision": precision, "peer": peer, **answer})
            if rank == 0:
                print(json.dumps(rows[-1]), flush=True)
                asked.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    # Compiled kernels of each rank are apart.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", f"/tmp/train_peer_two_gpus_{os.environ.get('RANK', 0)}")
    main()
