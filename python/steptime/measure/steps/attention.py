"""Blocks of transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Style:
    """Variant of the blocks.

    attention: `sdpa`, `bmm` (three dimensions) or `matmul` (four).
    fused: whether query, key and value are one layer.
    norm: `layer` or `rms`; before the block if `pre`, else after it.
    feed: `gelu`, `tanh` (its approximation), `relu` or `gated`.
    """

    width: int
    heads: int
    inner: int
    attention: str
    causal: bool
    fused: bool
    norm: str
    pre: bool
    feed: str
    dropout: float


class RmsNorm(nn.Module):
    """Root-mean-square norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def make_norm(style: Style) -> nn.Module:
    """The style's norm."""
    return nn.LayerNorm(style.width) if style.norm == "layer" else RmsNorm(style.width)


class Attention(nn.Module):
    """Attention of a sequence to itself or to another."""

    def __init__(self, style: Style, across: bool) -> None:
        super().__init__()
        self.style, self.causal = style, style.causal and not across
        width = style.width
        self.one = nn.Linear(width, 3 * width) if style.fused and not across else None
        self.three = None if self.one is not None else nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, other: Optional[Tensor]) -> Tensor:
        source = x if other is None else other
        if self.one is not None:
            q, k, v = self.one(x).chunk(3, dim=-1)
        else:
            q, k, v = (layer(each) for layer, each in zip(self.three, (x, source, source)))
        q, k, v = (each.reshape(x.shape[0], each.shape[1], self.style.heads, -1).transpose(1, 2) for each in (q, k, v))
        mixed = self.attend(q, k, v).transpose(1, 2).reshape(x.shape)
        return self.out(mixed)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention of tensors [batch, head, token, feature]; the result has the same shape."""
        dropout = self.style.dropout if self.training else 0.0
        if self.style.attention == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=self.causal)
        shape = q.shape
        if self.style.attention == "bmm":
            q, k, v = (each.reshape(-1, each.shape[2], each.shape[3]) for each in (q, k, v))
            scores = torch.bmm(q, k.transpose(1, 2)) * (1 / math.sqrt(shape[-1]))
        else:
            scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(shape[-1])
        if self.causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        weights = F.dropout(F.softmax(scores, dim=-1), dropout) if dropout else F.softmax(scores, dim=-1)
        return torch.matmul(weights, v).view(shape)


class Feed(nn.Module):
    """The two layers after attention, gated or not."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self.kind = style.feed
        self.first = nn.Linear(style.width, style.inner)
        self.gate = nn.Linear(style.width, style.inner) if style.feed == "gated" else None
        self.second = nn.Linear(style.inner, style.width)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is not None:
            return self.second(F.silu(self.gate(x)) * self.first(x))
        inner = self.first(x)
        inner = F.relu(inner) if self.kind == "relu" else F.gelu(inner, approximate="tanh" if self.kind == "tanh" else "none")
        return self.second(inner)


class Block(nn.Module):
    """Self-attention (and cross-attention if `across`) and a feed-forward part, each with a norm and a residual connection."""

    def __init__(self, style: Style, across: bool = False) -> None:
        super().__init__()
        self.pre = style.pre
        parts = [Attention(style, False), *([Attention(style, True)] if across else []), Feed(style)]
        self.parts = nn.ModuleList(parts)
        self.norms = nn.ModuleList(make_norm(style) for _ in parts)
        self.drop = nn.Dropout(style.dropout) if style.dropout else nn.Identity()

    def forward(self, x: Tensor, other: Optional[Tensor] = None) -> Tensor:
        for index, (part, norm) in enumerate(zip(self.parts, self.norms)):
            inside = norm(x) if self.pre else x
            if isinstance(part, Feed):
                made = part(inside)
            else:
                made = part(inside, other if index == 1 else None)
            x = x + self.drop(made)
            x = x if self.pre else norm(x)
        return x
