"""Matrix products of 8-bit floats, with scales per tensor, or per row and column."""

from __future__ import annotations

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw

KIND = "float8_e4m3fn"


def size(rng: Draw, low: int, high: int) -> int:
    """A size that is a multiple of 16, as the kernels require."""
    return max(round(rng.size(low, high, nice=0.7, awkward=0.1) / 16), 1) * 16


def draw(rng: Draw) -> Case:
    m = rng.batch(16, 16384) if rng.chance(0.5) else rng.size(1, 16384, nice=0.5)
    n, k = size(rng, 16, 16384), size(rng, 16, 16384)
    if rng.chance(0.2):
        m = n = k = size(rng, 256, 8192)
    rows, biased, fast = rng.chance(0.3), rng.chance(0.2), rng.chance(0.5)
    wide = "bfloat16" if rows or rng.chance(0.8) else rng.pick("float16", "float32")
    biased = biased and wide != "float32"

    def setup(make):
        x = make.new((m, k), "bfloat16").to(make.type(KIND))
        weight = make.new((n, k), "bfloat16").to(make.type(KIND)).t()
        of_x, of_weight = ((m, 1), (1, n)) if rows else ((), ())
        scales = make.positive(of_x), make.positive(of_weight)
        bias = make.new((n,), wide) if biased else None
        return lambda: make.aten._scaled_mm(x, weight, *scales, bias, None, make.type(wide), fast)

    moved = nbytes("uint8", (m, k), (k, n)) + nbytes(wide, (m, n))
    scaled = "rows" if rows else "tensors"
    return Case(f"scaled {m}x{k} {k}x{n} by {scaled}", setup, bytes=moved, flops=2.0 * m * n * k, dtype=KIND, memory=3 * moved)
