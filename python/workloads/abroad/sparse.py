"""Sparse gradients, sparse products, and indices with few distinct values."""
import torch
import torch.nn.functional as F
from torch import nn

from .ranking import tower
from .registry import Training, cycle, model, size
from .skew import zipf


class QuotientRemainder(nn.Module):
    """Two small tables whose products replace one large table."""

    def __init__(self, rows, collisions, dim):
        super().__init__()
        self.collisions = collisions
        self.quotient = nn.EmbeddingBag(rows // collisions + 1, dim, mode="sum", sparse=True)
        self.remainder = nn.EmbeddingBag(collisions, dim, mode="sum", sparse=True)

    def forward(self, index, offsets):
        return self.quotient(torch.div(index, self.collisions, rounding_mode="floor"), offsets) * self.remainder(index % self.collisions, offsets)


class QrDlrm(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList(QuotientRemainder(n, 4, dim) for n in rows)
        self.bottom, self.top = tower(13, 256, dim), tower(dim * (len(rows) + 1), 512, 256, 1)

    def forward(self, dense, index, offsets):
        found = [table(i, offsets) for table, i in zip(self.tables, index)]
        return self.top(torch.cat([self.bottom(dense)] + found, 1))


@model("sparse", "skew", "recommender")
def qr_dlrm_sparse_adam(device, dtype):
    rows = size([1_000_000] * 4 + [200_000] * 6, [1000] * 3)
    batch, hot = size((4096, 4), (16, 2))
    net = QrDlrm(rows, 64).to(device)
    dense_side = torch.optim.Adam([*net.bottom.parameters(), *net.top.parameters()], lr=1e-3)
    sparse_side = torch.optim.SparseAdam(list(net.tables.parameters()), lr=1e-3)
    following = cycle(lambda: (
        torch.rand(batch, 13),
        torch.stack([zipf(n, (batch * hot,), 1.05) for n in rows]),
        torch.randint(0, 2, (batch, 1)).float(),
    ))
    offsets = torch.arange(0, batch * hot, hot, device=device)

    def step():
        dense, index, label = (t.to(device) for t in following())
        loss = F.binary_cross_entropy_with_logits(net(dense, index, offsets), label)
        dense_side.zero_grad()
        sparse_side.zero_grad()
        loss.backward()
        dense_side.step()
        sparse_side.step()

    return Training(step, net, None, batch)


class Ranker(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim, sparse=True) for n in rows)
        self.mlp = tower(dim * len(rows) + 8, 512, 256, 64, 1)

    def forward(self, dense, ids):
        return self.mlp(torch.cat([dense] + [t(ids[i]) for i, t in enumerate(self.tables)], 1)).view(-1)


@model("sparse", "skew", "recommender")
def dlrm_adagrad_sparse(device, dtype):
    rows = size([400_000] * 4 + [40_000] * 8 + [2_000] * 4, [400] * 4)
    batch = size(8192, 16)
    net = Ranker(rows, 48).to(device)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.01)
    following = cycle(lambda: (
        torch.randn(batch, 8), torch.stack([zipf(n, (batch,), 1.1) for n in rows]), torch.randint(0, 2, (batch,)).float()
    ))

    def step():
        dense, ids, label = (t.to(device) for t in following())
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(dense, ids), label).backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class LightGcn(nn.Module):
    def __init__(self, users, items, dim, layers):
        super().__init__()
        self.users, self.layers = users, layers
        self.weight = nn.Parameter(torch.randn(users + items, dim) * 0.1)

    def forward(self, graph):
        x, total = self.weight, self.weight
        for _ in range(self.layers):
            x = torch.sparse.mm(graph, x)
            total = total + x
        return (total / (self.layers + 1)).split([self.users, self.weight.shape[0] - self.users])


@model("sparse", "skew", "recommender")
def lightgcn_bpr(device, dtype):
    users, items, pairs, batch = size((60_000, 40_000, 1_000_000, 4096), (60, 40, 400, 16))
    u, i = zipf(users, (pairs,), 0.8), zipf(items, (pairs,), 1.0)
    ends = torch.stack([torch.cat([u, i + users]), torch.cat([i + users, u])])
    degree = torch.bincount(ends[0], minlength=users + items).clamp(min=1).float()
    values = (degree[ends[0]] * degree[ends[1]]).rsqrt()
    graph = torch.sparse_coo_tensor(ends, values, (users + items,) * 2).coalesce().to(device)
    net = LightGcn(users, items, 64, 3).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    following = cycle(lambda: (zipf(users, (batch,), 0.8), zipf(items, (batch,), 1.0), torch.randint(0, items, (batch,))))

    def step():
        user, good, bad = (t.to(device) for t in following())
        all_users, all_items = net(graph)
        a, p, n = all_users[user], all_items[good], all_items[bad]
        loss = F.softplus((a * n).sum(1) - (a * p).sum(1)).mean()
        loss = loss + 1e-4 * (a.norm(2).pow(2) + p.norm(2).pow(2) + n.norm(2).pow(2)) / batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Transducer(nn.Module):
    """Block of pointwise attention (SiLU, no softmax), with biases by position and by time between two actions."""

    def __init__(self, dim, heads, buckets, length):
        super().__init__()
        self.heads, self.buckets = heads, buckets
        self.norm, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.uvqk, self.out = nn.Linear(dim, 4 * dim), nn.Linear(dim, dim)
        self.place, self.time = nn.Parameter(torch.zeros(2 * length)), nn.Parameter(torch.zeros(buckets))

    def forward(self, x, distance, bucket, mask):
        b, n, d = x.shape
        u, v, q, k = F.silu(self.uvqk(self.norm(x))).split(d, -1)
        v, q, k = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (v, q, k))
        bias = self.place[distance] + self.time[bucket]
        a = F.silu(q @ k.transpose(-1, -2) + bias.unsqueeze(1)) / n * mask
        return x + self.out(self.after((a @ v).transpose(1, 2).reshape(b, n, d)) * u)


class Generative(nn.Module):
    def __init__(self, items, dim, length, layers):
        super().__init__()
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.blocks = nn.ModuleList(Transducer(dim, 4, 128, length) for _ in range(layers))
        self.register_buffer("distance", torch.arange(length)[:, None] - torch.arange(length) + length, persistent=False)
        self.register_buffer("mask", torch.ones(length, length).tril(), persistent=False)
        self.register_buffer("seen", torch.ones(items), persistent=False)

    def forward(self, history, when):
        gap = (when.unsqueeze(2) - when.unsqueeze(1)).abs().clamp(min=1).float()
        bucket = (gap.log() / 0.301).long().clamp(max=127)
        x = self.item(history)
        for block in self.blocks:
            x = block(x, self.distance, bucket, self.mask)
        return x


@model("sparse", "skew", "recommender")
def hstu_like(device, dtype):
    items, batch, length = size((50_000, 64, 200), (200, 2, 12))
    net = Generative(items, 128, length, 3).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.0)

    def make():
        when = torch.rand(batch, length + 1).pow(3).mul(1e6).long().cumsum(1)
        return zipf(items, (batch, length + 1), 1.1, first=1), when, torch.randint(1, items, (128,))

    following = cycle(make)

    def step():
        history, when, negative = (t.to(device) for t in following())
        positive = history[:, 1:]
        net.seen.index_add_(0, positive.reshape(-1), torch.ones(positive.numel(), device=device))
        frequency = (net.seen / net.seen.sum()).log()
        x = net(history[:, :-1], when[:, :-1])
        good = (x * net.item(positive)).sum(-1, keepdim=True) - frequency[positive].unsqueeze(-1)
        bad = x @ net.item(negative).t() - frequency[negative]
        logits = torch.cat([good, bad], -1).flatten(0, 1)
        loss = F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long, device=device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class SkipGram(nn.Module):
    def __init__(self, words, dim):
        super().__init__()
        self.center, self.context = nn.Embedding(words, dim, sparse=True), nn.Embedding(words, dim, sparse=True)

    def forward(self, center, context, noise):
        c = self.center(center)
        good = (c * self.context(context)).sum(-1)
        bad = torch.bmm(self.context(noise), c.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(1)).mean()


@model("sparse", "skew")
def skipgram_sparse(device, dtype):
    words, batch = size((100_000, 16384), (200, 16))
    net = SkipGram(words, 128).to(device)
    optimizer = torch.optim.SparseAdam(list(net.parameters()), lr=1e-3)
    following = cycle(lambda: (zipf(words, (batch,), 1.0), zipf(words, (batch,), 1.0), zipf(words, (batch, 5), 0.75)))

    def step():
        loss = net(*(t.to(device) for t in following()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)
