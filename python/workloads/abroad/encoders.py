"""Models of text with softmax written out, each in fp32 and under autocast to bf16."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from .common import BOTH, RmsNorm, trained
from .registry import cycle, model, size


# BERT: softmax written out, padding masks, loss on masked words only.


class BertLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.dense = (nn.Linear(dim, dim) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm_a, self.norm_b, self.drop = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12), nn.Dropout(0.1)

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = (f(x).view(b, n, self.heads, -1).permute(0, 2, 1, 3) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(d // self.heads) + mask
        weights = self.drop(torch.softmax(scores, -1))
        y = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous().view(b, n, d)
        x = self.norm_a(x + self.drop(self.dense(y)))
        return self.norm_b(x + self.drop(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, words, dim, heads, depth, length):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(words, dim, padding_idx=0), nn.Embedding(length, dim), nn.Embedding(2, dim)
        self.norm, self.drop = nn.LayerNorm(dim, 1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList(BertLayer(dim, heads) for _ in range(depth))
        self.transform = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim, 1e-12))
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, x, kind, at):
        mask = (1.0 - (x != 0).float())[:, None, None, :] * -10_000.0
        h = self.drop(self.norm(self.words(x) + self.places.weight[: x.shape[1]] + self.kinds(kind)))
        for layer in self.layers:
            h = layer(h, mask)
        chosen = h.flatten(0, 1).index_select(0, at)
        return F.linear(self.transform(chosen), self.words.weight, self.bias)


@model("attention", "bf16", dtypes=BOTH)
def bert_masked(device, dtype):
    batch, length, dim, depth, words = size((24, 160, 512, 6, 20_000), (2, 12, 32, 2, 100))
    net = Bert(words, dim, size(8, 4), depth, length).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01)
    masked = batch * length * 15 // 100

    def make():
        x = torch.randint(1, words, (batch, length)) * (torch.arange(length) < torch.randint(length // 2, length + 1, (batch, 1)))
        return x, torch.randint(0, 2, (batch, length)), torch.randperm(batch * length)[:masked].sort().values, torch.randint(0, words, (masked,))

    loss_of = lambda net, x, kind, at, y: F.cross_entropy(net(x, kind, at), y)  # noqa: E731
    return trained(device, dtype, net, optimizer, cycle(make), loss_of, batch)


# T5: encoder and decoder, relative position biases, no scaling.


class T5Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, memory, bias):
        b, n, d = x.shape
        q = self.q(x).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = (f(memory).view(b, memory.shape[1], self.heads, -1).transpose(1, 2) for f in (self.k, self.v))
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is not None:
            scores = scores + bias
        w = F.dropout(F.softmax(scores.float(), dim=-1).type_as(scores), 0.1, self.training)
        return self.o(torch.matmul(w, v).transpose(1, 2).reshape(b, n, d))


class T5Block(nn.Module):
    def __init__(self, dim, heads, decoder):
        super().__init__()
        self.attention, self.norm = T5Attention(dim, heads), RmsNorm(dim)
        self.cross, self.cross_norm = (T5Attention(dim, heads), RmsNorm(dim)) if decoder else (None, None)
        self.wi, self.wo, self.last = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False), RmsNorm(dim)

    def forward(self, x, bias, memory=None):
        h = self.norm(x)
        x = x + F.dropout(self.attention(h, h, bias), 0.1, self.training)
        if self.cross is not None:
            x = x + F.dropout(self.cross(self.cross_norm(x), memory, None), 0.1, self.training)
        return x + F.dropout(self.wo(F.dropout(F.relu(self.wi(self.last(x))), 0.1, self.training)), 0.1, self.training)


class T5(nn.Module):
    def __init__(self, words, dim, heads, depth):
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.encoder = nn.ModuleList(T5Block(dim, heads, False) for _ in range(depth))
        self.decoder = nn.ModuleList(T5Block(dim, heads, True) for _ in range(depth))
        self.bias_e, self.bias_d = nn.Embedding(32, heads), nn.Embedding(32, heads)
        self.norm_e, self.norm_d, self.scale = RmsNorm(dim), RmsNorm(dim), dim**-0.5

    def bias(self, table, n, causal, device):
        gap = torch.arange(n, device=device)[None, :] - torch.arange(n, device=device)[:, None]
        near = gap.abs().clamp(max=15) + 16 * (gap > 0)
        found = table(near).permute(2, 0, 1).unsqueeze(0)
        return found + torch.full((n, n), -1e9, device=device).triu(1) if causal else found

    def forward(self, x, y):
        h, bias = self.words(x), self.bias(self.bias_e, x.shape[1], False, x.device)
        for block in self.encoder:
            h = block(h, bias)
        h = self.norm_e(h)
        g, bias = self.words(y), self.bias(self.bias_d, y.shape[1], True, y.device)
        for block in self.decoder:
            g = block(g, bias, h)
        return F.linear(self.norm_d(g) * self.scale, self.words.weight)


@model("attention", "bf16", dtypes=BOTH)
def t5_relative(device, dtype):
    batch, source, target, dim, depth, words = size((16, 192, 80, 512, 4, 18_000), (2, 12, 7, 32, 1, 100))
    net = T5(words, dim, size(8, 4), depth).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=True)
    following = cycle(lambda: (torch.randint(0, words, (batch, source)), torch.randint(0, words, (batch, target + 1))))

    def loss_of(net, x, y):
        out = net(x, y[:, :-1])
        return F.cross_entropy(out.view(-1, words), y[:, 1:].reshape(-1))

    return trained(device, dtype, net, optimizer, following, loss_of, batch)
