"""Recommenders: embedding tables and interactions of their vectors."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case, case, labels


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with a ReLU after each but the last."""
    parts = [part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*parts[:-1])


def _clicked(net, *inputs):
    *features, click = inputs
    return F.binary_cross_entropy_with_logits(net(*features).squeeze(1), click)


class Dlrm(nn.Module):
    """Embedding bags of each table, dense features, and the products of all pairs of their vectors."""

    def __init__(self, tables: int, rows: int, width: int, sparse: bool, top: int) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum", sparse=sparse) for _ in range(tables)])
        self.bottom = mlp(13, 128, width)
        pairs = (tables + 1) * tables // 2
        self.top = mlp(width + pairs, top, 64, 1)
        self.pairs = tables + 1

    def forward(self, dense, index):
        low = self.bottom(dense)
        vectors = torch.stack([low] + [bag(index[:, at]) for at, bag in enumerate(self.bags)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        row, column = torch.tril_indices(self.pairs, self.pairs, offset=-1, device=dense.device)
        return self.top(torch.cat([low, products[:, row, column]], dim=1))


def _dlrm(tables: int, rows: int, width: int, lookups: int, sparse: bool, top: int, optimizer: str) -> Case:
    def inputs(batch):
        return torch.randn(batch, 13), labels(rows, batch, tables, lookups), torch.rand(batch)

    return Case(Dlrm(tables, rows, width, sparse, top), _clicked, inputs, optimizer, sparse=sparse)


@case(batch=512, sizes={"tables[*].rows=40000": {"rows": 40000}, "tables[*].lookups=8": {"lookups": 8}})
def dlrm(rows: int = 10000, lookups: int = 4, top: int = 256) -> Case:
    return _dlrm(6, rows, 32, lookups, False, top, "sgd")


@case(batch=512, sizes={"tables[*].rows=80000": {"rows": 80000}})
def dlrm_sparse(rows: int = 20000) -> Case:
    """DLRM with sparse gradients."""
    return _dlrm(5, rows, 48, 3, True, 256, "sgd")


@case(batch=256)
def dlrm_sparse_adam() -> Case:
    return _dlrm(4, 20000, 32, 2, True, 128, "sparseadam")


@case(batch=256)
def dlrm_adagrad() -> Case:
    return _dlrm(4, 30000, 64, 1, False, 512, "adagrad")


class Fields(nn.Module):
    """One table for all fields, one lookup per field."""

    def __init__(self, fields: int, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(fields * rows, width)
        self.register_buffer("begin", torch.arange(fields) * rows)

    def forward(self, index):
        return self.table(index + self.begin)


class Cross(nn.Module):
    """Cross layers beside deep ones (DCN v2)."""

    def __init__(self, fields: int, rows: int, width: int, hidden: int) -> None:
        super().__init__()
        self.fields, wide = Fields(fields, rows, width), fields * width + 8
        self.cross = nn.ModuleList([nn.Linear(wide, wide) for _ in range(3)])
        self.deep, self.head = mlp(wide, hidden, hidden), nn.Linear(wide + hidden, 1)

    def forward(self, dense, index):
        first = torch.cat([dense, self.fields(index).flatten(1)], dim=1)
        crossed = first
        for layer in self.cross:
            crossed = first * layer(crossed) + crossed
        return self.head(torch.cat([crossed, self.deep(first)], dim=1))


def _rows(fields, rows, dense):
    return lambda batch: (torch.randn(batch, dense), labels(rows, batch, fields), torch.rand(batch))


@case(batch=256)
def dcn(hidden: int = 256) -> Case:
    return Case(Cross(12, 2000, 16, hidden), _clicked, _rows(12, 2000, 8), "adam")


class Factorised(nn.Module):
    """Factorisation machine and deep layers on the same rows (DeepFM)."""

    def __init__(self, fields: int, rows: int, width: int) -> None:
        super().__init__()
        self.first, self.second = Fields(fields, rows, 1), Fields(fields, rows, width)
        self.deep = nn.Sequential(nn.Linear(fields * width, 200), nn.BatchNorm1d(200), nn.ReLU(), nn.Dropout(0.2), nn.Linear(200, 1))

    def forward(self, index):
        rows = self.second(index)
        pairs = 0.5 * (rows.sum(1).square() - rows.square().sum(1)).sum(1, keepdim=True)
        return self.first(index).sum(1) + pairs + self.deep(rows.flatten(1))


@case(batch=512, removed={"aten::dropout": ["deep.3"]})
def deepfm() -> Case:
    return Case(Factorised(16, 3000, 16), _clicked, lambda batch: (labels(3000, batch, 16), torch.rand(batch)), "adam")


class Towers(nn.Module):
    """A vector of the user, a vector of the item; the other items of the batch are negatives."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.user, self.item = nn.EmbeddingBag(rows, width, mode="mean"), nn.Embedding(rows, width)
        self.left, self.right = mlp(width, 128, 64), mlp(width, 128, 64)

    def forward(self, history, item):
        user = F.normalize(self.left(self.user(history)), dim=1)
        return user @ F.normalize(self.right(self.item(item)), dim=1).T / 0.05


@case(batch=192)
def two_towers() -> Case:
    def loss(net, history, item):
        scores = net(history, item)
        return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))

    return Case(Towers(20000, 64), loss, lambda batch: (labels(20000, batch, 10), labels(20000, batch)), "adagrad")


class Experts(nn.Module):
    """Experts that two tasks share, each with a gate (MMoE)."""

    def __init__(self, fields: int, rows: int, width: int, experts: int) -> None:
        super().__init__()
        wide = fields * width
        self.fields = Fields(fields, rows, width)
        self.experts = nn.ModuleList([mlp(wide, 128, 64) for _ in range(experts)])
        self.gates = nn.ModuleList([nn.Linear(wide, experts) for _ in range(2)])
        self.towers = nn.ModuleList([mlp(64, 32, 1) for _ in range(2)])

    def forward(self, index):
        x = self.fields(index).flatten(1)
        of_all = torch.stack([expert(x) for expert in self.experts], dim=1)
        mixed = [(gate(x).softmax(1).unsqueeze(2) * of_all).sum(1) for gate in self.gates]
        return torch.cat([tower(each) for tower, each in zip(self.towers, mixed)], dim=1)


@case(batch=256)
def mmoe() -> Case:
    def loss(net, index, goals):
        return F.binary_cross_entropy_with_logits(net(index), goals)

    return Case(Experts(10, 2000, 16, 4), loss, lambda batch: (labels(2000, batch, 10), torch.rand(batch, 2)), "adam")


class Sasrec(nn.Module):
    """Self-attention over the items of a history."""

    def __init__(self, items: int, width: int, length: int) -> None:
        super().__init__()
        self.item, self.place = nn.Embedding(items, width, padding_idx=0), nn.Embedding(length, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(4)])
        self.mixes = nn.ModuleList([nn.MultiheadAttention(width, 2, dropout=0.2, batch_first=True) for _ in range(2)])
        self.wide = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width)) for _ in range(2)])
        self.drop = nn.Dropout(0.2)
        self.register_buffer("later", torch.triu(torch.ones(length, length, dtype=torch.bool), 1))

    def forward(self, history):
        x = self.drop(self.item(history) + self.place.weight)
        for at, (mix, wide) in enumerate(zip(self.mixes, self.wide)):
            query = self.norms[2 * at](x)
            x = query + mix(query, x, x, attn_mask=self.later, need_weights=False)[0]
            x = x + wide(self.norms[2 * at + 1](x))
        return x


@case(batch=48, removed={"aten::dropout": ["drop", "wide.*.2"]})
def sasrec() -> Case:
    def loss(net, history, right, wrong):
        x = net(history)
        good, bad = (x * net.item(right)).sum(2), (x * net.item(wrong)).sum(2)
        return -(F.logsigmoid(good) + F.logsigmoid(-bad)).mean()

    return Case(Sasrec(5000, 48, 40), loss, lambda batch: tuple(labels(5000, batch, 40) for _ in range(3)), "adam")


class Din(nn.Module):
    """A history weighted by the similarity of each item to the candidate."""

    def __init__(self, items: int, width: int) -> None:
        super().__init__()
        self.item = nn.Embedding(items, width)
        self.weigh = nn.Sequential(nn.Linear(4 * width, 64), nn.PReLU(), nn.Linear(64, 1))
        self.top = nn.Sequential(nn.Linear(3 * width, 128), nn.PReLU(), nn.Linear(128, 1))

    def forward(self, history, offered):
        past, now = self.item(history), self.item(offered)
        near = now.unsqueeze(1).expand_as(past)
        weights = self.weigh(torch.cat([near, past, near - past, near * past], dim=2))
        interest = (weights * past).sum(1)
        return self.top(torch.cat([interest, now, interest * now], dim=1))


@case(batch=128)
def din() -> Case:
    return Case(Din(10000, 32), _clicked, lambda batch: (labels(10000, batch, 20), labels(10000, batch), torch.rand(batch)), "adagrad")


class Wide(nn.Module):
    """Crossed features beside deep layers."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.crossed, self.table = nn.EmbeddingBag(rows, 1, mode="sum"), nn.EmbeddingBag(rows, 32, mode="sum")
        self.deep = mlp(32 + 16, 256, 128, 1)

    def forward(self, dense, index):
        return self.crossed(index) + self.deep(torch.cat([dense, self.table(index)], dim=1))


@case(batch=256)
def wide_deep() -> Case:
    return Case(Wide(20000), _clicked, lambda batch: (torch.randn(batch, 16), labels(20000, batch, 12), torch.rand(batch)), "adam")
