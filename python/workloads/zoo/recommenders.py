"""Recommenders: much of their time is lookups and launches."""
import torch
from torch import nn
from torch.nn import functional as F

from .tables import OneCall, bags
from .task import Task, several, task

ADAM = torch.optim.Adam, 1e-3


def mlp(*widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@task(batch=4096, tables=("steptime", "fbgemm"))
def two_towers(batch, tables=None):
    """Retrieval: a tower of users, a tower of items, softmax over the batch."""
    rows, dim = 300_000, 64
    model = nn.ModuleDict(
        {
            "user": bags(tables, [rows], dim, *ADAM, mode="mean", longest=batch * 20) if tables else nn.EmbeddingBag(rows, dim, mode="mean"),
            "item": OneCall(tables, [rows], dim, batch, *ADAM) if tables else nn.Embedding(rows, dim),
            "left": mlp(dim, 256, 128),
            "right": mlp(dim, 256, 128),
        }
    )

    def loss(history, offsets, item):
        users = F.normalize(model["left"](model["user"](history, offsets)), dim=1)
        items = F.normalize(model["right"](model["item"](item)), dim=1)
        return F.cross_entropy(users @ items.t() / 0.07, torch.arange(len(item), device=item.device))

    offsets = torch.arange(0, batch * 20 + (1 if tables else 0), 20)
    data = several(lambda: (torch.randint(0, rows, (batch * 20,)), offsets, torch.randint(0, rows, (batch,))))
    return Task(model, loss, data)


class Attention(nn.Module):
    """Deep interest network: attention weights of a history, given a candidate."""

    def __init__(self, dim):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(4 * dim, 80), nn.PReLU(), nn.Linear(80, 40), nn.PReLU(), nn.Linear(40, 1))

    def forward(self, history, candidate, mask):
        wide = candidate.unsqueeze(1).expand_as(history)
        scores = self.score(torch.cat([history, wide, history - wide, history * wide], dim=-1)).squeeze(-1)
        weights = scores.masked_fill(~mask, -1e9).softmax(dim=1)
        return (weights.unsqueeze(-1) * history).sum(dim=1)


@task(batch=1024)
def din(batch):
    """Deep interest network."""
    rows, dim, length = 200_000, 32, 50
    model = nn.ModuleDict({"item": nn.Embedding(rows, dim), "user": nn.Embedding(rows, dim), "pool": Attention(dim), "top": mlp(3 * dim, 200, 80, 1)})

    def loss(user, history, mask, candidate, label):
        item = model["item"](candidate)
        pooled = model["pool"](model["item"](history), item, mask)
        return F.binary_cross_entropy_with_logits(model["top"](torch.cat([model["user"](user), pooled, item], dim=1)).squeeze(1), label)

    def make():
        return (
            torch.randint(0, rows, (batch,)),
            torch.randint(0, rows, (batch, length)),
            torch.rand(batch, length) < 0.8,
            torch.randint(0, rows, (batch,)),
            torch.randint(0, 2, (batch,)).float(),
        )

    return Task(model, loss, several(make), torch.optim.Adagrad)


@task(batch=2048)
def autoint(batch):
    """Self-attention over the fields of a click."""
    fields, rows, dim = 26, 40_000, 32
    layer = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.0, batch_first=True)
    model = nn.ModuleDict({"table": nn.Embedding(fields * rows, dim), "mix": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "top": mlp(fields * dim, 256, 1)})
    start = torch.arange(fields) * rows

    def loss(index, label):
        mixed = model["mix"](model["table"](index))
        return F.binary_cross_entropy_with_logits(model["top"](mixed.flatten(1)).squeeze(1), label)

    data = several(lambda: (torch.randint(0, rows, (batch, fields)) + start, torch.randint(0, 2, (batch,)).float()))
    return Task(model, loss, data)


@task(batch=8192, tables=("steptime",))
def wide_deep(batch, tables=None):
    """One table per field, a linear part and a deep part; dropout and batch norm."""
    fields, rows, dim = 16, 100_000, 16
    deep = []
    for before, after in ((fields * dim + 13, 512), (512, 256), (256, 128)):
        deep += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU(), nn.Dropout(0.2)]
    model = nn.ModuleDict(
        {
            "wide": OneCall(tables, [rows] * fields, 1, batch, *ADAM) if tables else nn.ModuleList(nn.Embedding(rows, 1) for _ in range(fields)),
            "tables": OneCall(tables, [rows] * fields, dim, batch, *ADAM) if tables else nn.ModuleList(nn.Embedding(rows, dim) for _ in range(fields)),
            "deep": nn.Sequential(*deep, nn.Linear(128, 1)),
        }
    )

    def loss(dense, index, label):
        if tables:
            indices = index.t().reshape(-1)
            wide, rows_of = model["wide"](indices).sum(dim=1), [model["tables"](indices)]
        else:
            columns = index.unbind(1)
            wide = torch.cat([table(each) for table, each in zip(model["wide"], columns)], dim=1).sum(dim=1)
            rows_of = [table(each) for table, each in zip(model["tables"], columns)]
        return F.binary_cross_entropy_with_logits(model["deep"](torch.cat([dense, *rows_of], dim=1)).squeeze(1) + wide, label)

    data = several(lambda: (torch.rand(batch, 13), torch.randint(0, rows, (batch, fields)), torch.randint(0, 2, (batch,)).float()))
    return Task(model, loss, data)


@task(batch=1024, tables=("steptime", "fbgemm"))
def behaviour(batch, tables=None):
    """A transformer over a user's actions, combined with other features."""
    items, length, dim = 200_000, 20, 32
    item_table = OneCall(tables, [items], dim, batch * (length + 1), *ADAM) if tables else nn.Embedding(items, dim)
    other_table = OneCall(tables, [50_000], 16, batch * 4, *ADAM) if tables else nn.Embedding(50_000, 16)
    layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, dropout=0.1, batch_first=True)
    model = nn.ModuleDict({"item": item_table, "place": nn.Embedding(length + 1, dim), "mix": nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), "other": other_table, "top": mlp((length + 1) * dim + 4 * 16, 256, 64, 1)})

    def loss(history, item, others, label):
        sequence = torch.cat([history, item.unsqueeze(1)], dim=1)
        if tables:
            rows = model["item"](sequence.view(-1)).view(*sequence.shape, dim)
            beside = model["other"](others.view(-1)).view(len(others), -1)
        else:
            rows, beside = model["item"](sequence), model["other"](others).flatten(1)
        mixed = model["mix"](rows + model["place"].weight)
        features = torch.cat([mixed.flatten(1), beside], dim=1)
        return F.binary_cross_entropy_with_logits(model["top"](features).squeeze(1), label)

    def make():
        return torch.randint(0, items, (batch, length)), torch.randint(0, items, (batch,)), torch.randint(0, 50_000, (batch, 4)), torch.rand(batch).round()

    return Task(model, loss, several(make))


@task(batch=8192)
def pairwise(batch):
    """Matrix factorization that learns to rank, with sparse gradients."""
    users, items, dim = 300_000, 100_000, 64
    model = nn.ModuleDict({"user": nn.Embedding(users, dim, sparse=True), "item": nn.Embedding(items, dim, sparse=True)})

    def loss(user, liked, other):
        of = model["user"](user)
        return -F.logsigmoid((of * (model["item"](liked) - model["item"](other))).sum(dim=1)).mean()

    data = several(lambda: (torch.randint(0, users, (batch,)), torch.randint(0, items, (batch,)), torch.randint(0, items, (batch,))))
    return Task(model, loss, data, lambda p, **more: torch.optim.SGD(p, lr=0.05))
