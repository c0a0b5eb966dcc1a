"""Attention with heads wider than 128, which only the memory-efficient kernels support."""

from __future__ import annotations

from steptime.measure.case import Case
from steptime.measure.draw import Draw
from steptime.measure.families import attention

MOST = 1.5e8  # elements of a tensor


def draw(rng: Draw) -> Case:
    dtype = rng.weigh({"bfloat16": 45, "float16": 25, "float32": 30})
    batch, heads, length = rng.batch(1, 64), rng.pick(1, 1, 1, 2, 4, 8), rng.size(16, 2048)
    keys = length if rng.chance(0.5) else rng.size(16, 4096)
    width = rng.pick(144, 160, 192, 192, 256, 256, 320, 384, 384, 448, 512, 640, 768)
    if batch * heads * max(length, keys) * width > MOST:
        return None
    causal, back, drop = rng.chance(0.3) and keys == length, rng.chance(0.6), 0.1 if rng.chance(0.15) else 0.0
    return attention.fused("efficient", dtype, (batch, heads, length, width), keys, causal, back, rng.chance(0.5), drop)
