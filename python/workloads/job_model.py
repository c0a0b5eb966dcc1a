"""A described DLRM or DCN-v2 on a rank of a job: its shards of tables, the exchange of vectors by all-to-all, the replicated dense part.

Tables are placed whole or cut by columns, not by rows. Ops are those of `steptime predict` for a described job.
"""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

from job_description import tables_of
from steptime.measure.tensors import Maker
from steptime.models.layers import Cross


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


class Tables(nn.Module):
    """The shards of this rank, and the vectors of its samples from all ranks. `weights` has parameters by shard, which modules share."""

    def __init__(self, model, parts, rank, device, weights=None):
        super().__init__()
        tables = tables_of(model)
        self.ranks, self.share = len(parts), model["batch"] // len(parts)
        self.own = parts[rank]
        weights = {} if weights is None else weights
        for shard in self.own:
            if shard not in weights:
                weights[shard] = torch.empty(tables[shard.table][0], shard.columns, device=device).normal_()
        self.bags = nn.ModuleList(self.bag(weights[shard], model["pooling"]) for shard in self.own)
        # A rank without tables takes part in the backward exchange, too.
        self.nothing = None if self.own else nn.Parameter(torch.empty(0, device=device))
        self.widths = [sum(shard.columns for shard in part) for part in parts]
        self.sent, self.received = [self.share * self.widths[rank]] * self.ranks, [self.share * width for width in self.widths]
        came = [shard for part in parts for shard in part]
        self.columns = [shard.columns for shard in came]
        self.back = sorted(range(len(came)), key=lambda at: came[at])
        self.in_order = self.back == list(range(len(came)))
        by_index = not self.in_order and len(set(self.columns)) == 1
        self.register_buffer("order", torch.tensor(self.back, device=device) if by_index else None)

    @staticmethod
    def bag(weight, pooling):
        return nn.EmbeddingBag(*weight.shape, mode=pooling, sparse=True, _weight=weight)

    def pooled(self, lookups, offsets):
        """Pooled rows of this rank's shards, for the samples of all ranks."""
        sums = [bag(at, start) for bag, at, start in zip(self.bags, lookups, offsets)]
        return torch.cat(sums, dim=1) if len(sums) > 1 else sums[0]

    def forward(self, lookups, offsets):
        """The vectors of this rank's samples, table after table."""
        return self.exchanged(self.pooled(lookups, offsets) if self.own else self.nothing)

    def exchanged(self, sums):
        """Sends pooled rows to the ranks of their samples."""
        return self.ordered(A2A.apply(sums.view(-1), self.received, self.sent))

    def ordered(self, came):
        """The vectors of this rank's samples, table after table, from those that came rank after rank."""
        parts = [part.view(self.share, -1) for part, width in zip(came.split(self.received), self.widths) if width]
        x = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        if self.in_order:
            return x
        if self.order is not None:
            return x.view(self.share, len(self.order), -1)[:, self.order].view(x.shape)
        each = x.split(self.columns, dim=1)
        return torch.cat([each[at] for at in self.back], dim=1)


def mlp(sizes, last):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*(layers if last else layers[:-1]))


class Dense(nn.Module):
    """The replicated part: both MLPs, and the interaction between them."""

    def __init__(self, model):
        super().__init__()
        tables = tables_of(model)
        self.width = model["bottom_mlp"][-1]
        self.bottom = mlp([model["dense"], *model["bottom_mlp"]], True)
        features = len(tables) + 1
        self.dot = model["interaction"] == "dot"
        rows, columns = torch.tril_indices(features, features, -1)
        if self.dot:
            self.register_buffer("rows", rows)
            self.register_buffer("columns", columns)
        met = self.width + (len(rows) if self.dot else sum(width for _, width, _ in tables))
        layers = model.get("cross_layers", 3) if model["interaction"] == "cross" else 0
        self.cross = nn.ModuleList(Cross(met, model.get("cross_rank", 0), None) for _ in range(layers))
        self.top = mlp([met, *model["top_mlp"]], False)
        self.mse = model["loss"] == "mse"

    def forward(self, dense, vectors):
        return self.rest(self.bottom(dense), vectors)

    def rest(self, x, vectors):
        """The output, from the result of the bottom MLP."""
        met = torch.cat([x, vectors], dim=1)
        if self.dot:
            each = met.view(x.shape[0], -1, self.width)
            met = torch.cat([x, torch.bmm(each, each.transpose(1, 2))[:, self.rows, self.columns]], dim=1)
        first = met
        for layer in self.cross:
            met = layer(first, met)
        out = self.top(met)
        return torch.sigmoid(out) if self.mse else out

    def loss(self, out, labels):
        """The mean loss."""
        return F.mse_loss(out, labels) if self.mse else F.binary_cross_entropy_with_logits(out, labels)


class Inputs:
    """A batch in host memory: dense features and labels of this rank's samples, and the lookups of any table for all samples.

    The lookups of a table are the same for every placement.
    """

    def __init__(self, model, ranks, rank, indices="uniform"):
        torch.manual_seed(rank)
        self.batch, self.tables, self.indices = model["batch"], tables_of(model), indices
        share = self.batch // ranks
        self.dense, self.labels = torch.rand(share, model["dense"]), torch.rand(share, 1)
        self.made = {}

    def lookups(self, table):
        """Indices and offsets of a table."""
        if table not in self.made:
            rows, _, count = self.tables[table]
            torch.manual_seed(1000 + table)
            at = Maker(torch, "cpu").indices((self.batch * count,), rows, self.indices)
            self.made[table] = at, torch.arange(0, self.batch * count, count)
        return self.made[table]

    def of(self, own):
        """Dense features, indices of each shard, offsets of each shard, labels."""
        lookups = [self.lookups(shard.table) for shard in own]
        return self.dense, [at for at, _ in lookups], [offsets for _, offsets in lookups], self.labels


class Step:
    """A training step with sparse SGD: copies of the inputs, forward, backward, update. `dense` is in DistributedDataParallel."""

    def __init__(self, tables, dense, inputs, device, late_us=0.0):
        self.tables, self.dense, self.device, self.late_us = tables, dense, device, late_us
        self.batch = inputs.of(tables.own)
        self.optimizer = torch.optim.SGD([*tables.parameters(), *dense.parameters()], lr=0.01)

    def __call__(self):
        with torch.profiler.record_function("## to_device ##"):
            x = self.batch[0].to(self.device)
            lookups, offsets = ([each.to(self.device) for each in part] for part in self.batch[1:3])
            labels = self.batch[3].to(self.device)
        if self.late_us:
            until = time.perf_counter() + self.late_us * 1e-6
            while time.perf_counter() < until:
                pass
        with torch.profiler.record_function("## embedding ##"):
            vectors = self.tables(lookups, offsets)
        loss = self.dense.module.loss(self.dense(x, vectors), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
