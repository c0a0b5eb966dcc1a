"""Smaller models of other kinds: MLPs, autoencoders, recurrent taggers and 1-D convolutions."""

from __future__ import annotations

from typing import Callable, List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steptime.measure.draw import Draw
from steptime.measure.steps.model import Model, activation, optimizer
from steptime.measure.steps.plan import Limits

OPTIMIZERS = {"sgd": 2, "momentum": 1, "adam": 3, "adagrad": 2, "adamw": 1, "rmsprop": 1}


def build(rng: Draw, limits: Limits, device: str) -> Model:
    """Builds a model of a random kind."""
    return rng.pick(_mlp, _autoencoder, _tagger, _tagger, _waves)(rng, limits, device)


def _layers(rng: Draw, sizes: List[int], act: Callable[[], nn.Module]) -> List[nn.Module]:
    norm = rng.pick(None, nn.BatchNorm1d, nn.LayerNorm)
    drop = rng.pick(0, 0, 0.1, 0.5)
    layers: List[nn.Module] = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), *([norm(fan_out)] if norm else []), act(), *([nn.Dropout(drop)] if drop else [])]
    return layers


def _act(rng: Draw) -> Callable[[], nn.Module]:
    return activation(rng, "tanh", "softplus", "gelu", "sigmoid", "leaky", "elu", "silu")


def _wide(limits: Limits) -> int:
    return 4 * limits.width


def _mlp(rng: Draw, limits: Limits, device: str) -> Model:
    sizes = [rng.size(8, _wide(limits), nice=0.8) for _ in range(rng.log(2, 6))]
    batch = limits.samples(rng, limits.activation(rng) / 2, max(sizes), 64, 1 << 16)
    classes = rng.size(2, 1000)
    with torch.device(device):
        module = nn.Sequential(*_layers(rng, sizes, _act(rng)), nn.Linear(sizes[-1], classes))
    batches = [(torch.randn(batch, sizes[0]), torch.randint(0, classes, (batch,))) for _ in range(2)]

    def loss(x: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(module(x), label)

    return _model(rng, f"mlp {sizes}, {classes} classes", batch, module, loss, batches)


def _autoencoder(rng: Draw, limits: Limits, device: str) -> Model:
    sizes = sorted({rng.size(16, _wide(limits), nice=0.8) for _ in range(rng.log(2, 4))}, reverse=True)
    sizes = sizes if len(sizes) > 1 else [2 * sizes[0], *sizes]
    batch = limits.samples(rng, limits.activation(rng) / 2, sizes[0], 64, 1 << 16)
    act = _act(rng)
    with torch.device(device):
        down, up = _layers(rng, sizes, act), _layers(rng, sizes[:0:-1], act)
        module = nn.Sequential(*down, *up, nn.Linear(sizes[1], sizes[0]))
    distance = rng.pick(F.mse_loss, F.smooth_l1_loss, F.l1_loss)
    batches = [(torch.randn(batch, sizes[0]),) for _ in range(2)]

    def loss(x: Tensor) -> Tensor:
        return distance(module(x), x)

    return _model(rng, f"autoencoder {sizes}, {distance.__name__}", batch, module, loss, batches)


def _tagger(rng: Draw, limits: Limits, device: str) -> Model:
    width, inner = limits.size(rng, 32, 512), limits.size(rng, 32, 1024)
    seq, vocab, tags = rng.log(8, min(128, limits.seq)), rng.size(min(500, limits.vocab), limits.vocab), rng.size(2, 100)
    both, layers, cell = rng.chance(0.4), rng.pick(1, 1, 2, 3), rng.pick(nn.LSTM, nn.GRU)
    batch = limits.samples(rng, limits.activation(rng), seq * inner, 8, 512)
    with torch.device(device):
        tokens = nn.Embedding(vocab, width)
        recurrent = cell(width, inner, layers, batch_first=rng.chance(0.7), bidirectional=both, dropout=0.2 if layers > 1 else 0)
        out = nn.Linear(inner * (2 if both else 1), tags)
    module = nn.ModuleList([tokens, recurrent, out])
    first = recurrent.batch_first
    shape = (batch, seq) if first else (seq, batch)
    batches = [(torch.randint(0, vocab, shape), torch.randint(0, tags, shape)) for _ in range(2)]

    def loss(words: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(out(recurrent(tokens(words))[0]).reshape(-1, tags), labels.reshape(-1))

    name = f"{layers} x {cell.__name__.lower()} {width} to {inner}{' both ways' if both else ''}, {seq} tokens"
    return _model(rng, name, batch, module, loss, batches)


def _waves(rng: Draw, limits: Limits, device: str) -> Model:
    length = min(rng.size(64, 4096), limits.image * 16)
    channels = [rng.log(1, 8), *(limits.size(rng, 8, 512) for _ in range(rng.log(2, 4)))]
    batch = limits.samples(rng, limits.activation(rng), length * channels[1], 8, 512)
    act, classes = _act(rng), rng.size(2, 100)
    pool = rng.pick(nn.MaxPool1d, nn.AvgPool1d)
    with torch.device(device):
        layers: List[nn.Module] = []
        for fan_in, fan_out in zip(channels, channels[1:]):
            kernel = rng.pick(3, 3, 5, 7, 9)
            layers += [nn.Conv1d(fan_in, fan_out, kernel, padding=kernel // 2), nn.BatchNorm1d(fan_out), act(), pool(2)]
        module = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels[-1], classes))
    batches = [(torch.randn(batch, channels[0], length), torch.randint(0, classes, (batch,))) for _ in range(2)]

    def loss(x: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(module(x), label)

    return _model(rng, f"1-d convolutions {channels}, length {length}", batch, module, loss, batches)


def _model(rng: Draw, name: str, batch: int, module: nn.Module, loss: Callable[..., Tensor], batches: list) -> Model:
    kind, one = optimizer(rng, module.parameters(), OPTIMIZERS)
    return Model(f"{name}, batch {batch}, {kind}", batch, module, loss, [one], batches, read=rng.chance(0.2))
