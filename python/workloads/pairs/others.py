"""Recurrent networks, graphs, diffusion, audio, plain layers."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from .case import Case, case, classified, labels
from .recommenders import mlp


class Language(nn.Module):
    """Recurrent language model."""

    def __init__(self, kind: type, vocabulary: int, width: int, dropout: float) -> None:
        super().__init__()
        self.token, self.memory = nn.Embedding(vocabulary, width), kind(width, width, 2, dropout=dropout, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, index):
        return self.head(self.memory(self.token(index))[0])


def _next_word(net, index):
    return F.cross_entropy(net(index)[:, :-1].flatten(0, 1), index[:, 1:].flatten())


@case(batch=24)
def lstm() -> Case:
    return Case(Language(nn.LSTM, 4000, 192, 0.0), _next_word, lambda batch: (labels(4000, batch, 20),), "sgd")


@case(batch=24)
def gru() -> Case:
    return Case(Language(nn.GRU, 3000, 160, 0.0), _next_word, lambda batch: (labels(3000, batch, 16),), "adam")


class Cells(nn.Module):
    """A recurrent network whose script loops over time itself."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(inputs, width), nn.Linear(width, 10)

    def forward(self, x):
        hidden = state = x.new_zeros(x.shape[0], self.cell.hidden_size)
        for at in range(x.shape[1]):
            hidden, state = self.cell(x[:, at], (hidden, state))
        return self.head(hidden)


@case(batch=48)
def lstm_cells() -> Case:
    return Case(Cells(28, 96), classified, lambda batch: (torch.randn(batch, 12, 28), labels(10, batch)), "momentum")


class Convolved(nn.Module):
    """Sums over the neighbours of a graph that all samples of a batch share."""

    def __init__(self, nodes: int, edges: int, inputs: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 8)])
        self.register_buffer("source", torch.randint(0, nodes, (edges,)))
        self.register_buffer("target", torch.randint(0, nodes, (edges,)))

    def forward(self, x):
        for layer in self.layers[:-1]:
            sent = layer(x)[:, self.source]
            x = F.relu(torch.zeros_like(layer(x)).index_add(1, self.target, sent))
        return self.layers[-1](x)


@case(batch=12)
def graph_series() -> Case:
    """Time series on the nodes of a fixed graph, such as traffic."""

    def loss(net, x, y):
        return F.mse_loss(net(x), y)

    return Case(Convolved(150, 900, 16, 64), loss, lambda batch: (torch.randn(batch, 150, 16), torch.randn(batch, 150, 8)), "adam")


class Attending(nn.Module):
    """Attention over a graph's edges, read off at the nodes of a batch."""

    def __init__(self, nodes: int, edges: int, inputs: int, width: int) -> None:
        super().__init__()
        self.register_buffer("features", torch.randn(nodes, inputs))
        self.register_buffer("edges", torch.randint(0, nodes, (2, edges)))
        self.turn, self.near, self.far = nn.Linear(inputs, width), nn.Linear(width, 1), nn.Linear(width, 1)
        self.head = nn.Linear(width, 7)

    def forward(self, seeds):
        x, (source, target) = self.turn(self.features), self.edges
        score = F.leaky_relu(self.near(x)[target] + self.far(x)[source], 0.2).exp()
        whole = torch.zeros(x.shape[0], 1, device=x.device, dtype=score.dtype).index_add(0, target, score)
        mixed = torch.zeros_like(x).index_add(0, target, x[source] * (score / whole[target]).to(x.dtype))
        return self.head(F.elu(mixed))[seeds]


@case(batch=64)
def graph_attention() -> Case:
    """One fixed graph; the batch is of its nodes."""
    return Case(Attending(1200, 6000, 64, 32), classified, lambda batch: (labels(1200, batch), labels(7, batch)), "adam")


class Residual(nn.Module):
    """Two convolutions with an added time embedding."""

    def __init__(self, before: int, after: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))
        self.moved = nn.Sequential(nn.SiLU(), nn.Linear(time, after))
        self.second = nn.Sequential(nn.GroupNorm(8, after), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(after, after, 3, padding=1))
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.moved(time)[:, :, None, None])


class Denoiser(nn.Module):
    """A U-Net of a diffusion model (DDPM), with attention in the middle."""

    def __init__(self, width: int) -> None:
        super().__init__()
        time = 4 * width
        self.width, self.time = width, nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.begin = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, time), Residual(width, 2 * width, time)])
        self.smaller = nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(2 * width, 2 * width, 3, 2, 1)])
        self.middle = nn.ModuleList([Residual(2 * width, 2 * width, time), Residual(2 * width, 2 * width, time)])
        self.norm, self.qkv, self.out = nn.GroupNorm(8, 2 * width), nn.Conv2d(2 * width, 6 * width, 1), nn.Conv2d(2 * width, 2 * width, 1)
        self.up = nn.ModuleList([Residual(4 * width, width, time), Residual(2 * width, width, time)])
        self.end = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def attend(self, x):
        batch, width, high, wide = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, 3, 4, width // 4, high * wide).transpose(3, 4).unbind(1)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(mixed.transpose(2, 3).reshape(batch, width, high, wide))

    def forward(self, x, when):
        rates = torch.exp(torch.arange(self.width // 2, device=x.device) * (-math.log(10000) / (self.width // 2)))
        angles = when[:, None].float() * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        x, kept = self.begin(x), []
        for block, smaller in zip(self.down, self.smaller):
            x = block(x, time)
            kept.append(x)
            x = smaller(x)
        x = self.middle[1](self.attend(self.middle[0](x, time)), time)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), kept.pop()], dim=1), time)
        return self.end(x)


@case(batch=8, images=True, removed={"aten::dropout": ["down.*.second.2", "middle.*.second.2", "up.*.second.2"]})
def ddpm() -> Case:
    def loss(net, x, noise, when):
        level = torch.cos(when.float() / 1000 * math.pi / 2)[:, None, None, None]
        return F.mse_loss(net(level * x + (1 - level * level).sqrt() * noise, when), noise)

    return Case(Denoiser(32), loss, lambda batch: (torch.randn(batch, 3, 32, 32), torch.randn(batch, 3, 32, 32), labels(1000, batch)), "adam")


def _twice(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(*(part for a, b in ((before, after), (after, after)) for part in (nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())))


class Segmenter(nn.Module):
    """A U-Net as for medical images."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([_twice(1, width), _twice(width, 2 * width), _twice(2 * width, 4 * width)])
        self.larger = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.up = nn.ModuleList([_twice(4 * width, 2 * width), _twice(2 * width, width)])
        self.end = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x if not kept else F.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for larger, block in zip(self.larger, self.up):
            x = block(torch.cat([kept.pop(), larger(x)], dim=1))
        return self.end(x)


@case(batch=8, images=True)
def unet() -> Case:
    def loss(net, x, mask):
        return F.binary_cross_entropy_with_logits(net(x), mask)

    return Case(Segmenter(16), loss, lambda batch: (torch.randn(batch, 1, 48, 48), torch.rand(batch, 1, 48, 48)), "adam", ["down.*", "up.*"], rows=False)


class Conformer(nn.Module):
    """Half a feed-forward, attention, a convolution over time, half a feed-forward."""

    def __init__(self, width: int) -> None:
        super().__init__()
        wide = lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * width, width), nn.Dropout(0.1))  # noqa: E731
        self.before, self.after = wide(), wide()
        self.norm, self.mix = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, dropout=0.1, batch_first=True)
        self.gate = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, 15, padding=7, groups=width), nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))
        self.middle, self.last = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        query = self.norm(x)
        x = x + self.mix(query, query, query, need_weights=False)[0]
        x = x + self.gate(self.middle(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x + 0.5 * self.after(x))


class Speech(nn.Module):
    """Strided convolutions over a spectrogram, conformer blocks, a score for each sound."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cut = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.narrow, self.blocks, self.head = nn.Linear(width * 19, width), nn.ModuleList([Conformer(width) for _ in range(2)]), nn.Linear(width, 64)

    def forward(self, x):
        x = self.cut(x.unsqueeze(1))
        x = self.narrow(x.transpose(1, 2).flatten(2))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@case(batch=6, removed={"aten::dropout": ["blocks.*.before.3", "blocks.*.before.5", "blocks.*.after.3", "blocks.*.after.5"]})
def conformer() -> Case:
    def loss(net, x, sounds):
        return F.cross_entropy(net(x).flatten(0, 1), sounds.flatten())

    return Case(Speech(64), loss, lambda batch: (torch.randn(batch, 163, 80), labels(64, batch, 40)), "adamw", ["blocks.*"])


class Waves(nn.Module):
    """Convolutions over a waveform, and a transformer over their outputs (wav2vec)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        cuts = ((1, 64, 10, 5), (64, 64, 3, 2), (64, 64, 3, 2), (64, width, 2, 2))
        self.cut = nn.Sequential(*(nn.Sequential(nn.Conv1d(a, b, size, step, bias=False), nn.GroupNorm(b, b) if a == 1 else nn.Identity(), nn.GELU()) for a, b, size, step in cuts))
        self.place = nn.Conv1d(width, width, 16, padding=8, groups=4)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True)
        self.mix, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 32)

    def forward(self, wave):
        x = self.cut(wave.unsqueeze(1))
        x = x + F.gelu(self.place(x)[:, :, :-1])
        return self.head(self.mix(x.transpose(1, 2)))


@case(batch=5, removed={"aten::dropout": ["mix.layers.*.dropout*"]})
def wav2vec() -> Case:
    def loss(net, wave, sounds):
        return F.cross_entropy(net(wave).mean(1), sounds)

    return Case(Waves(96), loss, lambda batch: (torch.randn(batch, 4000), labels(32, batch)), "adamw", ["mix.layers.*"])


class Points(nn.Module):
    """An MLP on each point of a cloud, then a maximum over all points (PointNet)."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 64, 128, 256)
        self.each = nn.Sequential(*(part for a, b in zip(widths, widths[1:]) for part in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())))
        self.head = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 40))

    def forward(self, x):
        return self.head(self.each(x).amax(dim=2))


@case(batch=16, removed={"aten::dropout": ["head.3"]})
def pointnet() -> Case:
    return Case(Points(), classified, lambda batch: (torch.randn(batch, 3, 256), labels(40, batch)), "adam")


@case(batch=128, sizes={"layers[0].width=1024": {"hidden": 1024}}, removed={"aten::relu": ["1", "3"]})
def perceptron(hidden: int = 256) -> Case:
    """Linear layers alone; the batch is twice as wide as one of them."""
    return Case(mlp(64, hidden, 64, 10), classified, lambda batch: (torch.randn(batch, 64), labels(10, batch)), "momentum")


@case(batch=64)
def square() -> Case:
    """A model as wide as its batch."""
    return Case(mlp(64, 64, 64, 64), classified, lambda batch: (torch.randn(batch, 64), labels(64, batch)), "adam")


class Variational(nn.Module):
    """Variational autoencoder: an encoder to a normal distribution, and a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.LeakyReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.LeakyReLU(), nn.Flatten(), nn.Linear(32 * 49, 32))
        self.up = nn.Sequential(nn.Linear(16, 32 * 49), nn.Unflatten(1, (32, 7, 7)), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.LeakyReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        mean, spread = self.down(x).chunk(2, dim=1)
        return self.up(mean + torch.exp(0.5 * spread) * torch.randn_like(spread)), mean, spread


@case(batch=32, images=True)
def vae() -> Case:
    def loss(net, x):
        back, mean, spread = net(x)
        return F.mse_loss(back, x) - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()

    return Case(Variational(), loss, lambda batch: (torch.rand(batch, 1, 28, 28),), "adam")
