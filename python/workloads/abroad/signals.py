"""Models of long signals with attention, each in fp32 and under autocast to bf16."""
import torch
import torch.nn.functional as F
from torch import nn

from .common import BOTH, trained
from .registry import cycle, model, size


# Perceiver: few latents attend to a long input, with shared weights.


class Read(nn.Module):
    def __init__(self, dim, source, heads):
        super().__init__()
        self.heads = heads
        self.nq, self.ns, self.nf = nn.LayerNorm(dim), nn.LayerNorm(source), nn.LayerNorm(dim)
        self.q, self.kv, self.o = nn.Linear(dim, dim, bias=False), nn.Linear(source, 2 * dim, bias=False), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, source):
        b, n, d = x.shape
        k, v = self.kv(self.ns(source)).view(b, source.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        q = self.q(self.nq(x)).view(b, n, self.heads, -1).transpose(1, 2)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.nf(x))


class Perceiver(nn.Module):
    def __init__(self, latents, dim, source, heads, rounds, classes):
        super().__init__()
        self.latents, self.rounds = nn.Parameter(torch.randn(1, latents, dim) * 0.02), rounds
        self.read = Read(dim, source, 1)
        self.think = nn.ModuleList(Read(dim, dim, heads) for _ in range(3))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        h = self.latents.expand(x.shape[0], -1, -1)
        for _ in range(self.rounds):
            h = self.read(h, x)
            for layer in self.think:
                h = layer(h, h)
        return self.head(h.mean(1))


@model("attention", "bf16", dtypes=BOTH)
def perceiver(device, dtype):
    batch, length, latents, dim = size((16, 3136, 192, 384), (2, 40, 6, 32))
    net = Perceiver(latents, dim, 67, size(6, 4), 3, 50).to(device)
    optimizer = torch.optim.RAdam(net.parameters(), lr=4e-4)
    following = cycle(lambda: (torch.randn(batch, length, 67), torch.randint(0, 50, (batch,))))
    return trained(device, dtype, net, optimizer, following, lambda net, x, y: F.cross_entropy(net(x), y), batch)


# Conformer: half-step feed-forwards around attention and a depthwise convolution.


class ConformerBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        half = lambda: nn.Sequential(  # noqa: E731
            nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim), nn.Dropout(0.1)
        )
        self.first, self.second, self.norm, self.last = half(), half(), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, dropout=0.1, batch_first=True)
        self.before = nn.LayerNorm(dim)
        self.conv = nn.Sequential(
            nn.Conv1d(dim, 2 * dim, 1), nn.GLU(1), nn.Conv1d(dim, dim, 15, padding=7, groups=dim), nn.BatchNorm1d(dim), nn.SiLU(), nn.Conv1d(dim, dim, 1)
        )

    def forward(self, x, padding):
        x = x + 0.5 * self.first(x)
        h = self.norm(x)
        x = x + self.attention(h, h, h, key_padding_mask=padding, need_weights=False)[0]
        x = x + self.conv(self.before(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x + 0.5 * self.second(x))


class Conformer(nn.Module):
    def __init__(self, mels, dim, heads, depth, letters):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU())
        self.project, self.head = nn.Linear(64 * (mels // 4), dim), nn.Linear(dim, letters)
        self.blocks = nn.ModuleList(ConformerBlock(dim, heads) for _ in range(depth))

    def forward(self, x, padding):
        h = self.sub(x.unsqueeze(1)).transpose(1, 2).flatten(2)
        h = self.project(h)
        for block in self.blocks:
            h = block(h, padding)
        return self.head(h)


@model("attention", "bf16", "audio", dtypes=BOTH)
def conformer(device, dtype):
    batch, frames, dim, depth = size((16, 800, 256, 8), (2, 32, 32, 1))
    net = Conformer(80, dim, 4, depth, 500).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=1e-2)

    def make():
        lengths = torch.randint(frames // 8, frames // 4 + 1, (batch, 1))
        return torch.randn(batch, frames, 80), torch.arange(frames // 4) >= lengths, torch.randint(0, 500, (batch, frames // 4))

    loss_of = lambda net, x, padding, y: F.cross_entropy(net(x, padding).flatten(0, 1), y.flatten())  # noqa: E731
    return trained(device, dtype, net, optimizer, cycle(make), loss_of, batch, clip=1.0)
