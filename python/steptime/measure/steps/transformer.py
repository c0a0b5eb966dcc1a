"""Transformers: encoders that classify, decoders that predict the next token, and both together."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steptime.measure.draw import Draw
from steptime.measure.steps.attention import Block, Style, make_norm
from steptime.measure.steps.model import Model, optimizer
from steptime.measure.steps.plan import Limits


class Transformer(nn.Module):
    """Embeddings, blocks, and an output layer; `form` is `classify`, `tokens` or `both` (an encoder and a decoder)."""

    def __init__(self, style: Style, form: str, layers: int, vocab: int, seq: int, classes: int, tied: bool) -> None:
        super().__init__()
        self.form = form
        self.tokens = nn.Embedding(vocab, style.width)
        self.places = nn.Embedding(seq, style.width)
        self.register_buffer("order", torch.arange(seq))
        self.drop = nn.Dropout(style.dropout) if style.dropout else nn.Identity()
        self.blocks = nn.ModuleList(Block(style) for _ in range(layers if form != "both" else max(layers // 2, 1)))
        self.decoder = nn.ModuleList(Block(style, across=True) for _ in range(max(layers // 2, 1) if form == "both" else 0))
        self.norm = make_norm(style)
        self.out = nn.Linear(style.width, classes if form == "classify" else vocab, bias=form == "classify" or not tied)
        if tied and form != "classify":
            self.out.weight = self.tokens.weight

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings of tokens plus those of their positions."""
        return self.drop(self.tokens(tokens) + self.places(self.order[: tokens.shape[1]]))

    def forward(self, tokens: Tensor, *targets: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        if self.form == "both":
            y = self.embed(targets[0])
            for block in self.decoder:
                y = block(y, x)
            x = y
        x = self.norm(x)
        return self.out(x.mean(dim=1) if self.form == "classify" else x)


def build(rng: Draw, limits: Limits, device: str) -> Model:
    """Builds a transformer."""
    form = rng.weigh({"classify": 2, "tokens": 4, "both": 1})
    style, layers = _style(rng, limits), rng.pick(1, 2, 3, 4, 6)
    seq, vocab = min(_seq(rng), limits.seq), rng.size(min(500, limits.vocab), limits.vocab)
    outputs = vocab if form != "classify" else 0
    each = 2 * style.width * layers * (4 * style.width + 3 * style.inner) + 4 * style.width * seq * layers + 2 * style.width * outputs
    most = min(limits.activation(rng), style.width * limits.flops / each, style.width * 2 * limits.high / 4 / max(outputs, style.heads * seq))
    batch = limits.samples(rng, most, style.width * seq, 2, 64)
    classes, tied = rng.size(2, 200), rng.chance(0.5)
    with torch.device(device):
        module = Transformer(style, form, layers, vocab, seq, classes, tied)
    name, one = optimizer(rng, module.parameters(), {"adamw": 6, "adam": 2, "sgd": 1})

    def loss(labels: Tensor, *tokens: Tensor) -> Tensor:
        out = module(*tokens)
        return F.cross_entropy(out, labels) if form == "classify" else F.cross_entropy(out.reshape(-1, vocab), labels.reshape(-1))

    def sample() -> "tuple[Tensor, ...]":
        texts = [torch.randint(0, vocab, (batch, seq)) for _ in range(2 if form == "both" else 1)]
        labels = torch.randint(0, classes, (batch,)) if form == "classify" else torch.randint(0, vocab, (batch, seq))
        return (labels, *texts)

    half = torch.bfloat16 if rng.chance(0.2) else None
    clip = 1.0 if rng.chance(0.3) else None
    what = f"{form}, {layers} blocks of {style.width}, {style.heads} heads, {style.attention}, {batch} x {seq} tokens of {vocab}, {half or 'fp32'}, {name}"
    return Model(what, batch, module, loss, [one], [sample() for _ in range(2)], autocast=half, clip=clip, read=rng.chance(0.2))


def _style(rng: Draw, limits: Limits) -> Style:
    head = min(rng.pick(16, 32, 32, 64, 64, 64, 128), limits.width)
    heads = max(min(rng.log(96, 1024), limits.width) // head, 1)
    width = head * heads
    inner = max(int(width * rng.pick(1, 2, 2.5, 4, 4)) // 8 * 8, 8)
    return Style(
        width=width,
        heads=heads,
        inner=inner,
        attention=rng.pick("sdpa", "bmm", "matmul"),
        causal=rng.chance(0.4),
        fused=rng.chance(0.5),
        norm=rng.pick("layer", "layer", "rms"),
        pre=rng.chance(0.6),
        feed=rng.pick("gelu", "gelu", "tanh", "relu", "gated"),
        dropout=rng.pick(0.0, 0.1, 0.1, 0.2),
    )


def _seq(rng: Draw) -> int:
    return rng.pick(16, 32, 64, 128, 256, 512) if rng.chance(0.6) else rng.size(16, 512)
