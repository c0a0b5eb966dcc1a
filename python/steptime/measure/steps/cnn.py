"""Convolutional networks that classify images."""

from __future__ import annotations

from typing import List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steptime.measure.draw import Draw
from steptime.measure.steps.blocks import BLOCKS, conv
from steptime.measure.steps.model import Model, activation, optimizer
from steptime.measure.steps.plan import Limits


def build(rng: Draw, limits: Limits, device: str) -> Model:
    """Builds a convolutional network; one in five mixes several kinds of blocks."""
    act = activation(rng, "relu", "relu", "silu", "relu6")
    image = _image(rng, limits)
    first = max(min(_channels(rng.log(16, 96)), limits.width), 4)
    stem, pooled = rng.pick(1, 2, 2), rng.chance(0.4)
    side = max(image // stem // (2 if pooled else 1), 4)
    batch = limits.samples(rng, limits.activation(rng), first * side * side, 4, 64)
    names = [rng.pick(*BLOCKS) for _ in range(3)] if rng.chance(0.2) else [rng.pick(*BLOCKS)]
    stages = min(rng.pick(2, 3, 4, 4), max(side.bit_length() - 2, 1))
    wide, classes, drop = rng.pick(0, 2, 3, 4), rng.size(2, 1000), rng.pick(0, 0, 0, 0.2, 0.5)
    with torch.device(device):
        layers: List[nn.Module] = [conv(3, first, rng.pick(3, 3, 5, 7), stem, act=act)]
        if pooled:
            layers.append(nn.MaxPool2d(3, 2, 1) if rng.chance(0.8) else nn.AvgPool2d(2, 2))
        channels = first
        for stage in range(stages):
            wider = min(max(_channels(channels * rng.pick(1, 1.5, 2, 2, 2)), 4), limits.width)
            for index in range(rng.pick(1, 2, 2, 3, 4)):
                stride = 2 if index == 0 and stage > 0 else 1
                layers.append(BLOCKS[names[(stage + index) % len(names)]](channels, wider, stride, act, wide))
                channels = wider
        features, layers = _head(rng, channels, layers)
        if drop:
            layers.append(nn.Dropout(drop))
        module = nn.Sequential(*layers, nn.Linear(features, classes))
    name, one = optimizer(rng, module.parameters(), {"momentum": 4, "adam": 2, "adamw": 2, "sgd": 1})

    def loss(images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(module(images), labels)

    batches = [(torch.rand(batch, 3, image, image), torch.randint(0, classes, (batch,))) for _ in range(2)]
    what = f"{'/'.join(names)}, {first} to {channels} channels, {batch} images of {image}, {name}"
    return Model(what, batch, module, loss, [one], batches, read=rng.chance(0.2))


def _head(rng: Draw, channels: int, layers: List[nn.Module]) -> "tuple[int, List[nn.Module]]":
    if rng.chance(0.75):
        return channels, [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    side = rng.pick(2, 4, 7)
    return channels * side * side, [*layers, nn.AdaptiveAvgPool2d(side), nn.Flatten()]


def _image(rng: Draw, limits: Limits) -> int:
    common = rng.pick(32, 64, 96, 112, 128, 160, 192, 224, 256, 0, 0)
    return min(common or rng.log(32, 256), limits.image)


def _channels(value: float) -> int:
    return max(round(value / 8) * 8, 8)
