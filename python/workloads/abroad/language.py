"""Models of text with attention, each in fp32 and under autocast to bf16."""
import torch
import torch.nn.functional as F
from torch import nn

from .common import BOTH, RmsNorm, next_word, trained
from .registry import cycle, model, size


# An encoder of PyTorch's own layers.


class Classifier(nn.Module):
    def __init__(self, words, dim, heads, depth, classes):
        super().__init__()
        self.words, self.cls = nn.Embedding(words, dim), nn.Parameter(torch.zeros(1, 1, dim))
        self.places = nn.Parameter(torch.randn(1, 512, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, x):
        h = torch.cat([self.cls.expand(len(x), -1, -1), self.words(x)], 1)
        return self.head(self.encoder(h + self.places[:, : h.shape[1]])[:, 0])


@model("attention", "bf16", dtypes=BOTH)
def encoder_classifier(device, dtype):
    batch, length, dim, depth = size((48, 191, 512, 6), (2, 11, 32, 2))
    net = Classifier(12_000, dim, 8, depth, 20).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
    following = cycle(lambda: (torch.randint(0, 12_000, (batch, length)), torch.randint(0, 20, (batch,))))
    return trained(device, dtype, net, optimizer, following, lambda net, x, y: F.cross_entropy(net(x), y, label_smoothing=0.1), batch)


# GPT with dropout everywhere.


class GptBlock(nn.Module):
    def __init__(self, dim, heads, drop):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim), nn.Dropout(drop))
        self.heads, self.drop = heads, drop

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.attn(self.ln_1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop if self.training else 0.0, is_causal=True)
        x = x + F.dropout(self.proj(y.transpose(1, 2).contiguous().view(b, t, c)), self.drop, self.training)
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, words, dim, heads, depth, length, drop):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(words, dim), nn.Embedding(length, dim), nn.Dropout(drop)
        self.blocks = nn.ModuleList(GptBlock(dim, heads, drop) for _ in range(depth))
        self.ln_f, self.head = nn.LayerNorm(dim), nn.Linear(dim, words, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, x):
        h = self.drop(self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device)))
        for block in self.blocks:
            h = block(h)
        return self.head(self.ln_f(h))


@model("attention", "bf16", dtypes=BOTH)
def gpt_dropout(device, dtype):
    batch, length, dim, depth, words = size((12, 384, 576, 8, 16_000), (2, 12, 48, 2, 100))
    net = Gpt(words, dim, 9, depth, length, 0.1) if dim == 576 else Gpt(words, dim, 4, depth, length, 0.1)
    net = net.to(device)
    decay = [p for p in net.parameters() if p.dim() > 1]
    plain = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95))
    following = cycle(lambda: (torch.randint(0, words, (batch, length + 1)),))
    return trained(device, dtype, net, optimizer, following, next_word, batch, clip=1.0)


# Llama: rotary positions, RMS norms, grouped heads.


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, dim, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, dim // heads
        self.q, self.o = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k, self.v = (nn.Linear(dim, groups * self.width, bias=False) for _ in range(2))
        self.gate, self.up, self.down = nn.Linear(dim, hidden, False), nn.Linear(dim, hidden, False), nn.Linear(hidden, dim, False)
        self.first, self.second = RmsNorm(dim), RmsNorm(dim)

    def forward(self, x, cos, sin):
        b, n, _ = x.shape
        h = self.first(x)
        q = rotate(self.q(h).view(b, n, self.heads, -1).transpose(1, 2), cos, sin)
        k = rotate(self.k(h).view(b, n, self.groups, -1).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, n, self.groups, -1).transpose(1, 2)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q.type_as(v), k.type_as(v), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, n, -1))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, words, dim, heads, groups, depth, length):
        super().__init__()
        self.words, self.head = nn.Embedding(words, dim), nn.Linear(dim, words, bias=False)
        self.blocks = nn.ModuleList(LlamaBlock(dim, heads, groups, 8 * dim // 3 // 64 * 64 or 64) for _ in range(depth))
        self.norm = RmsNorm(dim)
        angle = torch.arange(length)[:, None] * torch.pow(10_000, -torch.arange(0, dim // heads, 2) / (dim // heads))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x):
        h = self.words(x)
        for block in self.blocks:
            h = block(h, self.cos[: x.shape[1]], self.sin[: x.shape[1]])
        return self.head(self.norm(h))


@model("attention", "bf16", dtypes=BOTH)
def llama_rope(device, dtype):
    batch, length, dim, depth, words = size((4, 512, 768, 6, 24_000), (2, 12, 64, 2, 100))
    net = Llama(words, dim, *size((12, 4), (4, 2)), depth, length).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1, fused=device.type == "cuda")
    following = cycle(lambda: (torch.randint(0, words, (batch, length + 1)),))
    return trained(device, dtype, net, optimizer, following, next_word, batch, clip=1.0)
