"""Recommenders of the next item from padded histories."""
import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, cycle, model, size
from .skew import histories, zipf


class SasBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(0.2), nn.Linear(dim, dim), nn.Dropout(0.2))
        self.heads = heads

    def forward(self, x, keep):
        b, n, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, d))
        return (x + self.ff(self.second(x))) * keep


class SasRec(nn.Module):
    def __init__(self, items, dim, length):
        super().__init__()
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.place = nn.Embedding(length, dim)
        self.drop = nn.Dropout(0.2)
        self.blocks = nn.ModuleList(SasBlock(dim, 2) for _ in range(2))
        self.norm = nn.LayerNorm(dim)

    def forward(self, history, positive, negative):
        keep = (history > 0).unsqueeze(-1)
        x = self.drop(self.item(history) + self.place(torch.arange(history.shape[1], device=history.device))) * keep
        for block in self.blocks:
            x = block(x, keep)
        x = self.norm(x)
        return (x * self.item(positive)).sum(-1), torch.matmul(self.item(negative), x.unsqueeze(-1)).squeeze(-1)


@model("skew", "recommender", "attention")
def sasrec_padded(device, dtype):
    items, batch, length = size((60_000, 256, 100), (200, 4, 12))
    net = SasRec(items, 64, length).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.98))

    def make():
        history = histories(batch, length, items, 1.1, left=True)
        positive = torch.cat([history[:, 1:], zipf(items, (batch, 1), 1.1, first=1)], 1)
        return history, positive, torch.randint(1, items, (batch, length, 4))

    following = cycle(make)

    def step():
        history, positive, negative = (x.to(device) for x in following())
        pos, neg = net(history, positive, negative)
        known = (positive > 0).float()
        loss = (F.softplus(-pos) * known).sum() + (F.softplus(neg).mean(-1) * known).sum()
        loss = loss / known.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Gru4Rec(nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        self.item = nn.Embedding(items, dim, padding_idx=0)
        self.gru = nn.GRU(dim, 2 * dim, num_layers=2, batch_first=True, dropout=0.1)
        self.back = nn.Linear(2 * dim, dim)

    def forward(self, x):
        h, _ = self.gru(self.item(x))
        return self.back(h) @ self.item.weight.t()


@model("skew", "recommender", "rnn")
def gru4rec_padded(device, dtype):
    items, batch, length = size((20_000, 128, 30), (100, 4, 6))
    net = Gru4Rec(items, 128).to(device)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    following = cycle(lambda: histories(batch, length + 1, items, 1.2))

    def step():
        h = following().to(device)
        logits = net(h[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), h[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)
