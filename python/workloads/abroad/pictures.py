"""Models of pictures and signals with attention, each in fp32 and under autocast to bf16."""
import torch
import torch.nn.functional as F
from torch import nn

from .common import BOTH, trained
from .registry import cycle, model, size


# ViT with layer scale and stochastic depth.


class VitBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.g1, self.g2 = nn.Parameter(1e-4 * torch.ones(dim)), nn.Parameter(1e-4 * torch.ones(dim))

    def keep(self, x):
        mask = x.new_empty(x.shape[0], 1, 1).bernoulli_(0.9)
        return x * mask / 0.9

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + self.keep(self.o(y) * self.g1)
        return x + self.keep(self.fc2(F.gelu(self.fc1(self.n2(x)))) * self.g2)


class Vit(nn.Module):
    def __init__(self, side, patch, dim, heads, depth, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList(VitBlock(dim, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


@model("attention", "bf16", "vision", dtypes=BOTH)
def vit_layer_scale(device, dtype):
    batch, side, dim, depth = size((48, 224, 384, 8), (2, 32, 32, 2))
    net = Vit(side, 16, dim, size(6, 2), depth, 200).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
    following = cycle(lambda: (torch.randn(batch, 3, side, side), torch.randint(0, 200, (batch,))))
    return trained(device, dtype, net, optimizer, following, lambda net, x, y: F.cross_entropy(net(x), y), batch)


# Cross attention of pictures to words.


class Fuser(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(dim, heads, dropout=0.0, batch_first=True)
        self.cross = nn.MultiheadAttention(dim, heads, kdim=dim // 2, vdim=dim // 2, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.wide, self.back = nn.Linear(dim, 8 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, text):
        h = self.norms[0](x)
        x = x + self.self_attention(h, h, h, need_weights=False)[0]
        x = x + self.cross(self.norms[1](x), text, text, need_weights=False)[0]
        a, gate = self.wide(self.norms[2](x)).chunk(2, -1)
        return x + self.back(a * F.gelu(gate))


class Captioned(nn.Module):
    def __init__(self, dim, heads, depth, words):
        super().__init__()
        self.project, self.words = nn.Linear(48, dim), nn.Embedding(words, dim // 2)
        self.layers = nn.ModuleList(Fuser(dim, heads) for _ in range(depth))
        self.out = nn.Linear(dim, 48)

    def forward(self, patches, text):
        x, t = self.project(patches), self.words(text)
        for layer in self.layers:
            x = layer(x, t)
        return self.out(x)


@model("attention", "bf16", dtypes=BOTH)
def cross_attention_patches(device, dtype):
    batch, patches, words, dim, depth = size((16, 400, 77, 448, 6), (2, 16, 5, 32, 1))
    net = Captioned(dim, size(7, 4), depth, 9_000).to(device)
    optimizer = torch.optim.NAdam(net.parameters(), lr=1e-4)
    following = cycle(lambda: (torch.randn(batch, patches, 48), torch.randint(0, 9_000, (batch, words)), torch.randn(batch, patches, 48)))
    return trained(device, dtype, net, optimizer, following, lambda net, x, t, y: F.mse_loss(net(x, t), y), batch)


# Swin: windows shifted by roll, relative position biases.


class WindowBlock(nn.Module):
    def __init__(self, dim, heads, side, window, shift):
        super().__init__()
        self.heads, self.side, self.window, self.shift = heads, side, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        gap = at[:, :, None] - at[:, None, :] + window - 1
        self.register_buffer("index", gap[0] * (2 * window - 1) + gap[1], persistent=False)
        place = torch.zeros(side, side)
        for i, rows in enumerate((slice(0, -window), slice(-window, -shift or None), slice(-shift or side, None))):
            for j, columns in enumerate((slice(0, -window), slice(-window, -shift or None), slice(-shift or side, None))):
                place[rows, columns] = 3 * i + j
        parts = place.view(side // window, window, side // window, window).transpose(1, 2).reshape(-1, window * window)
        self.register_buffer("mask", (parts[:, :, None] != parts[:, None, :]).float() * -100.0, persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        w, s = self.window, self.side
        h = self.norm1(x).view(b, s, s, d)
        if self.shift:
            h = torch.roll(h, (-self.shift, -self.shift), (1, 2))
        h = h.view(b, s // w, w, s // w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, d)
        q, k, v = self.qkv(h).reshape(len(h), w * w, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = (q * (d // self.heads) ** -0.5) @ k.transpose(-2, -1)
        a = a + self.table[self.index.view(-1)].view(w * w, w * w, self.heads).permute(2, 0, 1).contiguous()
        if self.shift:
            a = (a.view(b, -1, self.heads, w * w, w * w) + self.mask[None, :, None]).view(-1, self.heads, w * w, w * w)
        h = self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(len(h), w * w, d))
        h = h.view(b, s // w, s // w, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(b, s, s, d)
        if self.shift:
            h = torch.roll(h, (self.shift, self.shift), (1, 2))
        x = x + h.view(b, n, d)
        return x + self.mlp(self.norm2(x))


class Merge(nn.Module):
    def __init__(self, dim, side):
        super().__init__()
        self.side, self.norm, self.reduce = side, nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = x.view(x.shape[0], self.side, self.side, -1)
        x = torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
        return self.reduce(self.norm(x.flatten(1, 2)))


@model("attention", "bf16", "vision", dtypes=BOTH)
def window_attention(device, dtype):
    batch, side, window, dim = size((32, 48, 6, 96), (2, 8, 2, 16))
    blocks = [nn.Conv2d(3, dim, 4, 4), nn.Flatten(2)]
    body = []
    for depth, heads in zip((2, 2, 4), (3, 6, 12)):
        body += [WindowBlock(dim, heads if dim % heads == 0 else 2, side, window, window // 2 * (i % 2)) for i in range(depth)]
        if depth < 4:
            body.append(Merge(dim, side))
            dim, side = 2 * dim, side // 2
    full = side * 4 * 4

    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.body = nn.Sequential(*blocks), nn.Sequential(*body)
            self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 100)

        def forward(self, x):
            return self.head(self.norm(self.body(self.stem(x).transpose(1, 2))).mean(1))

    net = Windows().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4)
    following = cycle(lambda: (torch.randn(batch, 3, full, full), torch.randint(0, 100, (batch,))))
    return trained(device, dtype, net, optimizer, following, lambda net, x, y: F.cross_entropy(net(x), y), batch, clip=5.0)
