"""Matrix products: linear layers and their gradients, batched products, attention and interaction shapes."""

from __future__ import annotations

from steptime.measure.case import LARGEST, Case, nbytes
from steptime.measure.draw import Draw

TYPES = {"float32": 38, "bfloat16": 34, "float16": 12, "tf32": 16}
GATE_TYPES = {"float32": 55, "tf32": 10, "bfloat16": 20, "float16": 15}


def draw(rng: Draw) -> Case:
    dtype = rng.dtype(TYPES)
    return rng.weigh(KINDS)(rng, dtype)


def feature(rng: Draw) -> int:
    return rng.pick(1, 2, 3, 8, 13, 16, 1) if rng.chance(0.12) else rng.size(4, 4096, nice=0.55, awkward=0.15)


def batch(rng: Draw) -> int:
    return rng.batch(32, 16384) if rng.chance(0.85) else rng.size(1, 64)


def case(what, dtype, setup, m, n, k, times=1, more=0.0):
    moved = nbytes(dtype, (times, m, k), (times, k, n), (times, m, n)) + more
    return Case(what, setup, bytes=moved, flops=2.0 * times * m * n * k, dtype=dtype)


def _linear(rng: Draw, dtype: str) -> Case:
    m, n, k = batch(rng), feature(rng), feature(rng)
    form = rng.weigh({"bias": 78, "matrix": 8, "plain weight": 8, "activation": 6})
    gelu = rng.chance(0.5)

    def setup(make):
        x = make.new((m, k), dtype)
        weight = make.matrix(k, n, dtype, transposed=form != "plain weight")
        bias = make.new((m, n) if form == "matrix" else (n,), dtype)
        if form == "activation":
            return lambda: make.aten._addmm_activation(bias, x, weight, use_gelu=gelu)
        return lambda: make.aten.addmm(bias, x, weight)

    return case(f"linear ({form}) {m}x{k} to {n}", dtype, setup, m, n, k)


def _wgrad(rng: Draw, dtype: str) -> Case:
    rows, n, k = batch(rng), feature(rng), feature(rng)

    def setup(make):
        grad, x = make.new((rows, n), dtype), make.new((rows, k), dtype)
        return lambda: make.aten.mm(grad.t(), x)

    return case(f"weight gradient {n}x{rows} {rows}x{k}", dtype, setup, n, k, rows)


def _dgrad(rng: Draw, dtype: str) -> Case:
    rows, n, k = batch(rng), feature(rng), feature(rng)

    def setup(make):
        grad, weight = make.new((rows, n), dtype), make.new((n, k), dtype)
        return lambda: make.aten.mm(grad, weight)

    return case(f"input gradient {rows}x{n} {n}x{k}", dtype, setup, rows, k, n)


def _mm(rng: Draw, dtype: str) -> Case:
    m, n, k = (rng.size(1, 16384) for _ in range(3))
    if rng.chance(0.3):
        m = n = k = rng.size(16, 8192, nice=0.8, awkward=0.1)
    left, right = rng.chance(0.5), rng.chance(0.5)

    def setup(make):
        a, b = make.matrix(m, k, dtype, left), make.matrix(k, n, dtype, right)
        return lambda: make.aten.mm(a, b)

    return case(f"mm {m}x{k} {k}x{n}", dtype, setup, m, n, k)


def _vector(rng: Draw, dtype: str) -> Case:
    m, n, k = rng.size(1, 16384), 1, rng.size(1, 16384)
    if rng.chance(0.4):
        m, n = n, m

    def setup(make):
        a, b = make.new((m, k), dtype), make.matrix(k, n, dtype, transposed=True)
        return lambda: make.aten.mm(a, b)

    return case(f"mm {m}x{k} {k}x{n}", dtype, setup, m, n, k)


def batched(rng: Draw):
    """(batch, m, n, k, whether the second operand is the transposed first)."""
    kind = rng.weigh({"interaction": 35, "scores": 20, "values": 20, "any": 25})
    if kind == "interaction":
        count, width = rng.size(2, 64), rng.size(4, 256, nice=0.7)
        if rng.chance(0.5):
            return rng.batch(32, 16384), count, count, width, True
        return rng.batch(32, 16384), count, width, count, False
    if kind in ("scores", "values"):
        heads, length, width = rng.batch(1, 1024), rng.batch(8, 2048), rng.pick(16, 32, 64, 64, 80, 96, 128)
        return (heads, length, length, width, False) if kind == "scores" else (heads, length, width, length, False)
    return rng.size(1, 4096), rng.size(1, 512), rng.size(1, 512), rng.size(1, 512), False


def _operands(rng: Draw, dtype: str):
    times, m, n, k, own = batched(rng)
    left, right = rng.chance(0.25), rng.chance(0.5)

    def operands(make):
        if own:
            a = make.new((times, m, k), dtype)
            return a, a.transpose(1, 2)
        return (
            make.laid((times, m, k), dtype, "transposed" if left else "plain"),
            make.laid((times, k, n), dtype, "transposed" if right else "plain"),
        )

    return times, m, n, k, operands


def _bmm(rng: Draw, dtype: str) -> Case:
    times, m, n, k, operands = _operands(rng, dtype)

    def setup(make):
        a, b = operands(make)
        return lambda: make.aten.bmm(a, b)

    return case(f"bmm {times} of {m}x{k} {k}x{n}", dtype, setup, m, n, k, times)


def _baddbmm(rng: Draw, dtype: str) -> Case:
    times, m, n, k, operands = _operands(rng, dtype)
    whole = rng.chance(0.6)

    def setup(make):
        a, b = operands(make)
        added = make.new((times, m, n) if whole else (times, 1, n), dtype)
        return lambda: make.aten.baddbmm(added, a, b)

    return case(f"baddbmm {times} of {m}x{k} {k}x{n}", dtype, setup, m, n, k, times)


# Rare shapes ---------------------------------------------------------------------------------------------------------


def small_products(rng: Draw) -> Case:
    """Many small products whose sizes do not fill a tile."""
    dtype = rng.weigh({"float32": 70, "bfloat16": 20, "float16": 10})
    small = lambda: rng.size(1, 128, nice=0.25, awkward=0.4)  # noqa: E731
    times, m, n, k = rng.batch(1, 16384), small(), small(), small()
    if rng.chance(0.25):
        m, n, k = (rng.size(1, 512, nice=0.2, awkward=0.4) for _ in range(3))
    left, right = rng.chance(0.3), rng.chance(0.5)

    def setup(make):
        a = make.laid((times, m, k), dtype, "transposed" if left else "plain")
        b = make.laid((times, k, n), dtype, "transposed" if right else "plain")
        return lambda: make.aten.bmm(a, b)

    moved = nbytes(dtype, (times, m, k), (times, k, n), (times, m, n))
    return Case(f"bmm {times} of {m}x{k} {k}x{n} {dtype}", setup, moved, flops=2.0 * times * m * n * k, dtype=dtype)


def linear_backward(rng: Draw) -> Case:
    """Weight and input gradients of linear layers."""
    dtype, rows = rng.weigh({"float32": 60, "tf32": 15, "bfloat16": 25}), rng.batch(64, 32768)
    n, k = (rng.size(8, 4096, nice=0.8, awkward=0.08) for _ in range(2))
    weight_gradient = rng.chance(0.5)

    def setup(make):
        grad = make.new((rows, n), dtype)
        other = make.new((rows, k) if weight_gradient else (n, k), dtype)
        left = grad.t() if weight_gradient else grad
        return lambda: make.aten.mm(left, other)

    moved = nbytes(dtype, (rows, n), (rows, k), (n, k))
    name = f"linear's {'weight' if weight_gradient else 'input'} gradient {rows} rows {k} to {n} {dtype}"
    return Case(name, setup, moved, flops=2.0 * rows * n * k, dtype=dtype)


def gates(rng: Draw) -> Case:
    """A batch of products with a vector or a number as one operand: gates of experts, attention of one query."""
    dtype, times, wide = rng.weigh(GATE_TYPES), rng.batch(64, 65536), rng.size(8, 1024, nice=0.7)
    few = rng.pick(1, 1, 2, 3, 4, 8, 16, 50)
    m, n, k = rng.pick((1, wide, few), (1, few, wide), (wide, 1, few), (few, 1, wide), (few, wide, 1), (wide, few, 1))
    if times * (m * k + k * n + m * n) > LARGEST:
        return None
    left, right = rng.chance(0.3), rng.chance(0.4)

    def setup(make):
        a = make.laid((times, m, k), dtype, "transposed" if left else "plain")
        b = make.laid((times, k, n), dtype, "transposed" if right else "plain")
        return lambda: make.aten.bmm(a, b)

    moved = nbytes(dtype, (times, m, k), (times, k, n), (times, m, n))
    return Case(f"bmm {times} of {m}x{k} {k}x{n} {dtype}", setup, moved, flops=2.0 * times * m * n * k, dtype=dtype)


# Weights of the kinds of cases.
KINDS = {_linear: 35, _wgrad: 18, _dgrad: 12, _mm: 15, _bmm: 13, _baddbmm: 4, _vector: 3}
