"""Recommenders with skewed or padded indices, dense gradients."""
import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, cycle, model, size
from .skew import histories, zipf


def tower(*widths, act=nn.ReLU):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    """Facebook's DLRM: bags, a dot interaction with its lower triangle, two MLPs."""

    def __init__(self, rows, dim, hot, dense=13):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(n, dim, mode="sum") for n in rows)
        self.bottom = tower(dense, 512, 256, dim)
        fields = len(rows) + 1
        self.register_buffer("pairs", torch.tril_indices(fields, fields, -1), persistent=False)
        self.top = tower(dim + fields * (fields - 1) // 2, 512, 256, 1)
        self.hot = hot

    def forward(self, dense, sparse):
        x = F.relu(self.bottom(dense))
        found = [bag(index) for bag, index in zip(self.bags, sparse.split(self.hot, 1))]
        t = torch.stack([x] + found, 1)
        z = torch.bmm(t, t.transpose(1, 2))
        z = z[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, z], 1)).squeeze(1)


@model("skew", "recommender")
def dlrm_zipf105(device, dtype):
    rows = size([200_000] * 4 + [50_000] * 6 + [10_000] * 8 + [500] * 6, [300] * 6)
    hot = [8 if n >= 50_000 else 1 for n in rows]
    batch = size(4096, 32)
    net = Dlrm(rows, 64, hot).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    following = cycle(lambda: (
        torch.rand(batch, 13),
        torch.cat([zipf(n, (batch, h), 1.05) for n, h in zip(rows, hot)], 1),
        torch.randint(0, 2, (batch,)).float(),
    ))

    def step():
        dense, sparse, label = (t.to(device) for t in following())
        optimizer.zero_grad()
        loss = criterion(net(dense, sparse), label)
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Crossed(nn.Module):
    """DLRM with one lookup per field, an einsum, Adam."""

    def __init__(self, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, dim) for n in rows])
        self.bottom = tower(13, 256, 64, dim)
        self.top = tower((len(rows) + 1) ** 2 + dim, 1024, 512, 256, 1)

    def forward(self, dense, ids):
        x = self.bottom(dense)
        e = torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)] + [x], dim=1)
        inter = torch.einsum("bif,bjf->bij", e, e).flatten(1)
        return self.top(torch.cat((x, inter), dim=1))


@model("skew", "recommender")
def dlrm_zipf12(device, dtype):
    rows = size([300_000] * 3 + [100_000] * 3 + [20_000] * 3 + [1_000] * 3, [200] * 4)
    batch = size(16384, 32)
    net = Crossed(rows, 32).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    following = cycle(lambda: (
        torch.randn(batch, 13),
        torch.stack([zipf(n, (batch,), 1.2) for n in rows], 1),
        torch.randint(0, 2, (batch, 1)).float(),
    ))

    def step():
        dense, ids, y = following()
        dense, ids, y = dense.to(device), ids.to(device), y.to(device)
        loss = F.binary_cross_entropy_with_logits(net(dense, ids), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class TwoTower(nn.Module):
    """Query tower over a padded history, item tower, logits of all pairs of a batch."""

    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.query = tower(2 * dim, 256, 128)
        self.candidate = tower(dim, 256, 128)

    def forward(self, user, history, positive):
        seen = self.item(history)
        count = (history != 0).sum(1, keepdim=True).clamp(min=1)
        q = self.query(torch.cat([self.user(user), seen.sum(1) / count], -1))
        c = self.candidate(self.item(positive))
        return F.normalize(q, dim=-1) @ F.normalize(c, dim=-1).t() / 0.07


@model("skew", "recommender")
def two_tower_padded(device, dtype):
    users, items, batch = size((300_000, 200_000, 4096), (500, 300, 16))
    net = TwoTower(users, items, 64).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    following = cycle(lambda: (torch.randint(0, users, (batch,)), histories(batch, 50, items, 1.1), zipf(items, (batch,), 1.1, first=1)))
    target = torch.arange(batch, device=device)

    def step():
        user, history, positive = (x.to(device, non_blocking=True) for x in following())
        optimizer.zero_grad()
        F.cross_entropy(net(user, history, positive), target).backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Dice(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.alpha = nn.BatchNorm1d(dim, affine=False), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        p = torch.sigmoid(self.norm(x))
        return p * x + (1 - p) * self.alpha * x


class InterestNet(nn.Module):
    """DIN: weights of a history by a small network over (candidate, each item, difference, product)."""

    def __init__(self, items, shops, dim):
        super().__init__()
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.shop = nn.Embedding(shops, dim, padding_idx=0)
        self.score = nn.Sequential(nn.Linear(8 * dim, 64), nn.PReLU(), nn.Linear(64, 16), nn.PReLU(), nn.Linear(16, 1))
        self.head = nn.Sequential(nn.Linear(6 * dim, 200), Dice(200), nn.Linear(200, 80), Dice(80), nn.Linear(80, 2))

    def embed(self, pair):
        return torch.cat((self.item(pair[..., 0]), self.shop(pair[..., 1])), -1)

    def forward(self, candidate, history):
        c, h = self.embed(candidate), self.embed(history)
        wide = c.unsqueeze(1).expand_as(h)
        w = self.score(torch.cat((wide, h, wide - h, wide * h), -1)).squeeze(-1)
        w = w.masked_fill(history[..., 0] == 0, -1e9).softmax(-1)
        interest = torch.bmm(w.unsqueeze(1), h).squeeze(1)
        return self.head(torch.cat((c, interest, c * interest), -1))


@model("skew", "recommender")
def din_padded(device, dtype):
    items, shops, batch, length = size((150_000, 2_000, 2048, 60), (300, 20, 8, 10))
    net = InterestNet(items, shops, 32).to(device)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.02)

    def make():
        history = histories(batch, length, items, 1.05)
        candidate = zipf(items, (batch,), 1.05, first=1)
        pair = lambda x: torch.stack((x, x % shops * (x > 0)), -1)  # noqa: E731
        return pair(candidate), pair(history), torch.randint(0, 2, (batch,))

    following = cycle(make)

    def step():
        candidate, history, label = following()
        out = net(candidate.to(device), history.to(device))
        loss = F.cross_entropy(out, label.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()

    return Training(step, net, optimizer, batch)


class AttentionalFm(nn.Module):
    """Factorisation machine with attention over pairs; all fields in one table with offsets, as in pytorch-fm."""

    def __init__(self, fields, dim, hidden):
        super().__init__()
        self.table, self.linear = nn.Embedding(sum(fields), dim), nn.Embedding(sum(fields), 1)
        self.register_buffer("offsets", torch.tensor([0] + fields[:-1]).cumsum(0))
        self.register_buffer("pairs", torch.triu_indices(len(fields), len(fields), 1))
        self.score, self.weight, self.out = nn.Linear(dim, hidden), nn.Linear(hidden, 1), nn.Linear(dim, 1)

    def forward(self, x):
        x = x + self.offsets
        e = self.table(x)
        inner = e[:, self.pairs[0]] * e[:, self.pairs[1]]
        a = F.softmax(self.weight(F.relu(self.score(inner))), dim=1)
        pooled = F.dropout((a * inner).sum(1), 0.2, self.training)
        return (self.linear(x).sum(1) + self.out(pooled)).squeeze(1)


@model("skew", "recommender")
def afm_zipf(device, dtype):
    fields = size([500_000, 100_000, 100_000, 30_000, 10_000, 5_000] + [500] * 6 + [20] * 8, [50] * 5)
    batch = size(8192, 16)
    net = AttentionalFm(fields, 16, 16).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-6)
    following = cycle(lambda: (torch.stack([zipf(n, (batch,), 1.1) for n in fields], 1), torch.randint(0, 2, (batch,)).float()))

    def step():
        x, y = following()
        x, y = x.to(device), y.to(device)
        loss = F.binary_cross_entropy(torch.sigmoid(net(x)), y)
        net.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)
