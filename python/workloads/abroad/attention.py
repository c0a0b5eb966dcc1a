"""Ten models with attention, each in fp32 and under autocast to bf16."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, cast, cycle, model, size

BOTH = ("fp32", "bf16")


def trained(device, dtype, net, optimizer, following, loss_of, batch, clip=None):
    """Training loop that the models of this file share."""

    def step():
        given = [t.to(device, non_blocking=True) for t in following()]
        optimizer.zero_grad(set_to_none=True)
        with cast(device, dtype):
            loss = loss_of(net, *given)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()

    return Training(step, net, optimizer, batch)


# --- an encoder of PyTorch's own layers ---------------------------------------------------------------------------


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


# --- GPT with dropout everywhere ----------------------------------------------------------------------------------


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


def next_word(net, words):
    logits = net(words[:, :-1])
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), words[:, 1:].reshape(-1))


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


# --- Llama: rotary places, RMS norms, grouped heads ---------------------------------------------------------------


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * self.weight


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


# --- ViT with layer scale and stochastic depth --------------------------------------------------------------------


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


# --- BERT: softmax written out, padding masks, loss on masked words alone -----------------------------------------


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


# --- T5: encoder and decoder, biases by relative place, no scaling ------------------------------------------------


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


# --- cross attention of pictures to words -------------------------------------------------------------------------


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


# --- Swin: windows that are shifted by roll, biases by relative place ---------------------------------------------


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


# --- Perceiver: few latents read a long input, with weights that are used again -----------------------------------


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


# --- Conformer: half-step feed-forwards around attention and a depthwise convolution ------------------------------


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
