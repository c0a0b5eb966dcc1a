"""Calls of models that nobody had in mind: images cut into patches, classes before positions, products of vectors, parts of tensors joined.

A share of the cases is drawn by the other families: what is taught of these must not bend what is known of the rest.
"""

from __future__ import annotations

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families import corners
from steptime.measure.families.softmax_norm_loss import case

FLOATS = {"float32": 60, "bfloat16": 20, "float16": 20}
PRODUCTS = {"float32": 55, "tf32": 10, "bfloat16": 20, "float16": 15}
KINDS = {"usual": 30, "patches": 26, "classes_first": 18, "vectors": 14, "parts_joined": 12}
MOST = 3e8  # elements of a tensor


def draw(rng: Draw) -> Case:
    return globals()["_" + rng.weigh(KINDS)](rng)


_usual = corners.usual


def _patches(rng: Draw) -> Case:
    """The first layer of transformers on images and spectrograms: filters that do not overlap, over one channel to four."""
    dtype, batch = rng.weigh({"float32": 35, "tf32": 15, "bfloat16": 25, "float16": 25}), rng.batch(1, 512)
    patch = rng.weigh({2: 8, 4: 26, 8: 16, 14: 10, 16: 34, 32: 6})
    cin, cout = rng.weigh({1: 15, 3: 70, 4: 15}), rng.size(32, 1280, nice=0.9)
    high = patch * rng.pick(2, 4, 7, 8, 12, 14, 14, 16, 16, 20, 24, 28, 32, 48, 56)
    wide = high if rng.chance(0.85) else patch * rng.pick(2, 4, 8, 16, 32)
    if batch * max(cin * high * wide, cout * (high // patch) * (wide // patch)) > MOST:
        return None
    x, w, y = (batch, cin, high, wide), (cout, cin, patch, patch), (batch, cout, high // patch, wide // patch)
    return corners.convolution(rng, "patches", x, w, y, patch, 0, 1, 1, dtype)


def _classes_first(rng: Draw) -> Case:
    """Softmax over many classes that stand before the positions of a sequence: each thread goes through a column."""
    name, back, dtype = rng.pick("_softmax", "_log_softmax", "_log_softmax"), rng.chance(0.5), rng.dtype(FLOATS)
    of = (rng.batch(1, 128), rng.size(64, 65536, nice=0.5), rng.size(2, 4096, nice=0.6))
    if of[0] * of[1] * of[2] > MOST:
        return None

    def setup(make):
        x, op = make.new(of, dtype), getattr(make.aten, name)
        if not back:
            return lambda: op(x, 1, False)
        y, grad, gradient = op(x, 1, False), make.new(of, dtype), getattr(make.aten, name + "_backward_data")
        return lambda: gradient(grad, y, 1, x.dtype)

    return case(f"{name} over classes first", setup, dtype, of, 2, back)


def _vectors(rng: Draw) -> Case:
    """A batch of products in which one side is a vector or a number: gates of experts, attention of one query."""
    dtype, times, wide = rng.weigh(PRODUCTS), rng.batch(64, 65536), rng.size(8, 1024, nice=0.7)
    few = rng.pick(1, 1, 2, 3, 4, 8, 16, 50)
    m, n, k = rng.pick((1, wide, few), (1, few, wide), (wide, 1, few), (few, 1, wide), (few, wide, 1), (wide, few, 1))
    if times * (m * k + k * n + m * n) > MOST:
        return None
    left, right = rng.chance(0.3), rng.chance(0.4)

    def setup(make):
        a = make.laid((times, m, k), dtype, "transposed" if left else "plain")
        b = make.laid((times, k, n), dtype, "transposed" if right else "plain")
        return lambda: make.aten.bmm(a, b)

    moved = nbytes(dtype, (times, m, k), (times, k, n), (times, m, n))
    return Case(f"bmm {times} of {m}x{k} {k}x{n} {dtype}", setup, moved, flops=2.0 * times * m * n * k, dtype=dtype)


def _parts_joined(rng: Draw) -> Case:
    """Slices of tensors put together again, as scans and shifted windows do; the parts lie apart in memory, or not."""
    dtype, outer, length, inner = rng.dtype(FLOATS), rng.batch(1, 64), rng.size(4, 1024, nice=0.7), rng.size(1, 16384, nice=0.7)
    if outer * length * inner > MOST:
        return None
    cut, apart, fresh = rng.log(1, length - 1), rng.chance(0.6), rng.chance(0.5)

    def setup(make):
        whole = make.new((outer, length, inner), dtype)
        first, second = whole[:, :cut], whole[:, cut:]
        parts = [first, second] if apart else [first.contiguous(), second.contiguous()]
        if fresh:
            parts[1] = parts[1].contiguous()
        return Op(lambda: make.aten.cat(parts, 1), lists={"aten::cat": {0: parts}})

    how = "lie apart" if apart else "are whole"
    return Case(f"cat of {cut} and {length - cut} of [{outer}, {length}, {inner}] {dtype} that {how}", setup, 2 * nbytes(dtype, (outer, length, inner)))
