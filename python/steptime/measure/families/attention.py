"""Scaled dot-product attention by its fused kernels, forward and backward."""

from __future__ import annotations

import math
from typing import Tuple

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw


def draw(rng: Draw) -> Case:
    dtype = rng.weigh({"bfloat16": 45, "float16": 25, "float32": 30})
    kind = "efficient" if dtype == "float32" or rng.chance(0.3) else "flash"
    if rng.chance(0.06):
        kind = "math"
    batch, heads, length = rng.batch(1, 64), rng.pick(1, 2, 4, 8, 12, 16, 32), rng.batch(16, 4096) if rng.chance(0.7) else rng.size(16, 4096)
    keys = length if rng.chance(0.85) else rng.size(16, 4096)
    width, causal, back = rng.pick(32, 64, 64, 80, 96, 128, 128), rng.chance(0.4), rng.chance(0.5)
    apart = rng.chance(0.5)
    drop = 0.1 if rng.chance(0.15) and kind != "math" else 0.0
    return fused(kind, dtype, (batch, heads, length, width), keys, causal and keys == length, back, apart, drop)


def fused(kind: str, dtype: str, q_shape: Tuple[int, int, int, int], keys: int, causal: bool, back: bool, apart: bool, drop: float) -> Case:
    """Attention of queries `(batch, heads, length, width)`; `apart`: heads are a transposed view, as of one projection."""
    batch, heads, length, width = q_shape
    k_shape = (batch, heads, keys, width)

    def setup(make):
        aten = make.aten

        def tensor(of):
            return make.new((of[0], of[2], of[1], of[3]), dtype).transpose(1, 2) if apart else make.new(of, dtype)

        q, k, v = tensor(q_shape), tensor(k_shape), tensor(k_shape)
        if back:
            q, k, v = (make.grad(each) for each in (q, k, v))
        forward = {
            "flash": lambda: aten._scaled_dot_product_flash_attention(q, k, v, drop, causal),
            "efficient": lambda: aten._scaled_dot_product_efficient_attention(q, k, v, None, back, drop, causal),
            "math": lambda: aten._scaled_dot_product_attention_math(q, k, v, None, drop, causal),
        }[kind]
        if not back:
            return forward
        out = forward()[0]
        grad = make.new((batch, length, heads, width), dtype).transpose(1, 2)
        return make.backward(out, [q, k, v], grad)

    flops = 4.0 * batch * heads * length * keys * width * (0.5 if causal else 1) * (2.5 if back else 1)
    moved = nbytes(dtype, q_shape, q_shape, k_shape, k_shape) * (2 if back else 1)
    scores = nbytes(dtype, (batch, heads, length, keys)) * (4 if kind == "math" else 0)
    name = f"{kind} attention{' backward' if back else ''} {list(q_shape)} {keys} keys{' causal' if causal else ''} {dtype}"
    return Case(name, setup, moved + scores, flops=flops, dtype=dtype, memory=2 * moved + 3 * scores)


# Rare shapes ---------------------------------------------------------------------------------------------------------


def short_heads(rng: Draw) -> Case:
    """Short and narrow heads, with or without an added mask, in the kernels that support masks."""
    dtype, back = rng.weigh({"float32": 72, "bfloat16": 18, "float16": 10}), rng.chance(0.55)
    batch, heads = rng.batch(1, 1024), rng.pick(1, 1, 2, 4, 8, 12)
    length = rng.size(4, 512, nice=0.6) if rng.chance(0.85) else rng.size(16, 2048)
    keys = length if rng.chance(0.85) else rng.size(4, 1024)
    width = rng.pick(8, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128)
    mask = rng.weigh({"none": 30, "all heads": 40, "each": 20, "one": 10})
    causal, drop = mask == "none" and keys == length and rng.chance(0.4), rng.weigh({0.0: 75, 0.1: 15, 0.2: 10})
    q_shape, k_shape = (batch, heads, length, width), (batch, heads, keys, width)

    def setup(make):
        aten = make.aten

        def tensor(of):
            return make.new((of[0], of[2], of[1], of[3]), dtype).transpose(1, 2)

        q, k, v = tensor(q_shape), tensor(k_shape), tensor(k_shape)
        bias = None
        if mask != "none":
            # Rows begin at multiples of 16 elements, as the kernels require.
            some = {"all heads": (batch, 1), "each": (batch, heads), "one": (1, 1)}[mask]
            wide = math.ceil(keys / 16) * 16
            bias = make.new((*some, length, wide), dtype)[..., :keys].expand(batch, heads, length, keys)
        if back:
            q, k, v = (make.grad(each) for each in (q, k, v))
        forward = lambda: aten._scaled_dot_product_efficient_attention(q, k, v, bias, back, drop, causal)  # noqa: E731
        if not back:
            return forward
        out = forward()[0]
        return make.backward(out, [q, k, v], make.new((batch, length, heads, width), dtype).transpose(1, 2))

    flops = 4.0 * batch * heads * length * keys * width * (2.5 if back else 1)
    moved = nbytes(dtype, q_shape, q_shape, k_shape, k_shape) * (2 if back else 1)
    scores = 0 if mask == "none" else nbytes(dtype, (batch, heads if mask == "each" else 1, length, keys))
    name = f"efficient attention{' backward' if back else ''} {list(q_shape)} {keys} keys, mask {mask} {dtype}"
    return Case(name, setup, moved + scores, flops=flops, dtype=dtype, memory=2 * moved + 2 * scores)
