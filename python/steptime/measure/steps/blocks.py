"""Blocks of convolutional networks."""

from __future__ import annotations

from typing import Callable, List

import torch
from torch import Tensor, nn

Act = Callable[[], nn.Module]


def conv(fan_in: int, fan_out: int, kernel: int, stride: int = 1, groups: int = 1, act: Act = nn.Identity, norm: bool = True) -> nn.Sequential:
    """Convolution, batch norm, activation."""
    layers: List[nn.Module] = [nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, groups=groups, bias=not norm)]
    if norm:
        layers.append(nn.BatchNorm2d(fan_out))
    made = act()
    if not isinstance(made, nn.Identity):
        layers.append(made)
    return nn.Sequential(*layers)


def plain(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """A 3x3 convolution, sometimes without a norm."""
    return conv(fan_in, fan_out, 3, stride, act=act, norm=wide != 0)


class Residual(nn.Module):
    """A path with a residual connection, which is a 1x1 convolution if shapes differ."""

    def __init__(self, path: nn.Module, fan_in: int, fan_out: int, stride: int, after: nn.Module) -> None:
        super().__init__()
        same = fan_in == fan_out and stride == 1
        self.path, self.after = path, after
        self.around = nn.Identity() if same else conv(fan_in, fan_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.path(x) + self.around(x))


def residual(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """Two 3x3 convolutions."""
    path = nn.Sequential(conv(fan_in, fan_out, 3, stride, act=act), conv(fan_out, fan_out, 3))
    return Residual(path, fan_in, fan_out, stride, act())


def bottleneck(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """Residual block of 1x1, 3x3 and 1x1 convolutions, narrow in the middle."""
    thin = max(fan_out // (wide or 4), 4)
    path = nn.Sequential(conv(fan_in, thin, 1, act=act), conv(thin, thin, 3, stride, act=act), conv(thin, fan_out, 1))
    return Residual(path, fan_in, fan_out, stride, act())


def separable(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """A depthwise convolution and a 1x1 convolution."""
    return nn.Sequential(conv(fan_in, fan_in, 5 if wide == 2 else 3, stride, groups=fan_in, act=act), conv(fan_in, fan_out, 1, act=act))


def inverted(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """Inverted bottleneck: 1x1, depthwise and 1x1 convolutions, wide in the middle."""
    inside = fan_in * (wide or 3)
    path = nn.Sequential(conv(fan_in, inside, 1, act=act), conv(inside, inside, 3, stride, groups=inside, act=act), conv(inside, fan_out, 1))
    return Residual(path, fan_in, fan_out, 1, nn.Identity()) if fan_in == fan_out and stride == 1 else path


class Branches(nn.Module):
    """Parallel paths with concatenated channels."""

    def __init__(self, paths: List[nn.Module]) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([path(x) for path in self.paths], dim=1)


def branches(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """Four parallel paths: 1x1; 1x1 then 3x3; 1x1 then 5x5 (or 1x7 and 7x1); a pool then 1x1."""
    part, thin = max(fan_out // 4, 1), max(fan_out // 8, 1)
    last = fan_out - 3 * part
    if wide % 2:
        third = nn.Sequential(nn.Conv2d(thin, thin, (1, 7), padding=(0, 3)), nn.Conv2d(thin, part, (7, 1), stride, padding=(3, 0)), act())
    else:
        third = conv(thin, part, 5, stride, act=act)
    pool = nn.AvgPool2d(3, stride, 1) if wide > 2 else nn.MaxPool2d(3, stride, 1)
    return Branches(
        [
            conv(fan_in, part, 1, stride, act=act),
            nn.Sequential(conv(fan_in, thin, 1, act=act), conv(thin, part, 3, stride, act=act)),
            nn.Sequential(conv(fan_in, thin, 1, act=act), third),
            nn.Sequential(pool, conv(fan_in, last, 1, act=act)),
        ]
    )


class Dense(nn.Module):
    """Layers that each take the outputs of all earlier ones, then a 1x1 convolution and a pool."""

    def __init__(self, fan_in: int, fan_out: int, stride: int, act: Act, layers: int) -> None:
        super().__init__()
        growth = max(fan_out // 4, 4)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(fan_in + i * growth), act(), nn.Conv2d(fan_in + i * growth, growth, 3, padding=1, bias=False))
            for i in range(layers)
        )
        down = [nn.AvgPool2d(2, 2, ceil_mode=True)] if stride == 2 else []
        self.last = nn.Sequential(conv(fan_in + layers * growth, fan_out, 1, act=act), *down)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return self.last(x)


def dense(fan_in: int, fan_out: int, stride: int, act: Act, wide: int) -> nn.Module:
    """Densely connected layers."""
    return Dense(fan_in, fan_out, stride, act, max(wide, 2))


BLOCKS = {
    "plain": plain,
    "residual": residual,
    "bottleneck": bottleneck,
    "separable": separable,
    "inverted": inverted,
    "branches": branches,
    "dense": dense,
}
