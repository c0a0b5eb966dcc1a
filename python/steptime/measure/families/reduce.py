"""Reductions, scans, sorting and searching."""

from __future__ import annotations

import math

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import MOSTLY_FLOAT32, Draw
from steptime.measure.families.elementwise import shape
from steptime.measure.families.softmax_norm_loss import case as moved_case

FLOATS = {"float32": 76, "bfloat16": 18, "float16": 6}
SIMPLE = {"sum": 40, "mean": 20, "amax": 8, "max": 6, "norm": 8, "argmax": 4, "var": 6, "any": 3, "logsumexp": 2, "prod": 1, "var_mean": 3}


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def _reduce(rng: Draw) -> Case:
    name, of, dtype = rng.weigh(SIMPLE), shape(rng), rng.dtype(FLOATS)
    where = rng.weigh({"last": 35, "first": 30, "middle": 12, "all": 23})
    layout = rng.weigh({"plain": 90, "transposed": 5, "sliced": 5})
    dims = {"last": [len(of) - 1], "first": [0], "middle": [len(of) // 2], "all": list(range(len(of)))}[where]
    if len(of) == 4 and rng.chance(0.4):
        dims = rng.pick([0, 2, 3], [2, 3])
    keep = rng.chance(0.3)

    def setup(make):
        aten, x = make.aten, make.laid(of, "bool" if name == "any" else dtype, layout)
        if name in ("sum", "mean", "amax", "var", "var_mean"):
            op = getattr(aten, name)
            return lambda: op(x, dims, keepdim=keep)
        if name == "logsumexp":
            return lambda: aten.logsumexp(x, dims, keep)
        if name == "norm":
            return lambda: aten.linalg_vector_norm(x, 2, dims, keep)
        op = getattr(aten, name)
        return (lambda: op(x)) if where == "all" and name != "argmax" else (lambda: op(x, dims[0]))

    return Case(f"{name} {where} {list(of)} {dtype} {layout}", setup, nbytes(dtype, of))


def _bias_gradient(rng: Draw) -> Case:
    rows, columns, dtype = rng.batch(1, 65536), rng.size(1, 8192), rng.dtype(FLOATS)

    def setup(make):
        x = make.new((rows, columns), dtype)
        return lambda: make.aten.sum(x, [0], True)

    return Case(f"bias gradient {rows}x{columns} {dtype}", setup, nbytes(dtype, (rows, columns)))


def _scan(rng: Draw) -> Case:
    of, dtype = shape(rng), rng.weigh({"float32": 50, "int64": 50})
    dim = rng.pick(len(of) - 1, 0)

    def setup(make):
        x = make.new(of, dtype)
        return lambda: make.aten.cumsum(x, dim)

    return Case(f"cumsum {dim} {list(of)} {dtype}", setup, 2 * nbytes(dtype, of))


def _topk(rng: Draw) -> Case:
    rows, columns = rng.size(1, 16384), rng.size(2, 100000)
    count, dtype = rng.size(1, min(columns, 512)), rng.dtype(FLOATS)

    def setup(make):
        x = make.new((rows, columns), dtype)
        return lambda: make.aten.topk(x, count)

    return Case(f"topk {count} of {rows}x{columns}", setup, 3 * nbytes(dtype, (rows, columns)))


def _sort(rng: Draw) -> Case:
    dtype, flat = rng.weigh({"int64": 55, "float32": 35, "int32": 10}), rng.chance(0.65)
    of = (rng.size(1, 1 << 23),) if flat else (rng.size(1, 16384), rng.size(2, 4096))
    stable = rng.chance(0.3)

    def setup(make):
        x = make.indices(of, 10 * math.prod(of), dtype=dtype) if dtype != "float32" else make.new(of)
        return lambda: make.aten.sort(x, stable=stable, dim=-1, descending=False)

    return Case(f"sort {list(of)} {dtype}", setup, 12 * nbytes(dtype, of))


def _unique(rng: Draw) -> Case:
    count, kinds, kind = rng.log(1, 1 << 22), rng.log(2, 1 << 20), rng.weigh({"flat": 75, "dim": 10, "consecutive": 15})
    inverse, counts = rng.chance(0.5), rng.chance(0.4)

    def setup(make):
        x = make.indices((count,), kinds)
        if kind == "flat":
            return lambda: make.aten._unique2(x, True, inverse, counts)
        if kind == "consecutive":
            return lambda: make.aten.unique_consecutive(x, inverse, counts)
        y = make.indices((max(count // 64, 1), 4), 3)
        return lambda: make.aten.unique_dim(y, 0, True, inverse, counts)

    return Case(f"unique {kind} {count} of {kinds}", setup, 120.0 * count)


def _nonzero(rng: Draw) -> Case:
    of, dtype = shape(rng), rng.pick("bool", "float32", "int64")

    def setup(make):
        x = make.new(of, dtype)
        return lambda: make.aten.nonzero(x)

    return Case(f"nonzero {list(of)} {dtype}", setup, nbytes(dtype, of) * 2 + 8.0 * math.prod(of) * len(of))


def _bincount(rng: Draw) -> Case:
    count, bins = rng.log(1, 1 << 23), rng.log(2, 1 << 20)

    def setup(make):
        x = make.indices((count,), bins)
        return lambda: make.aten.bincount(x, minlength=bins)

    return Case(f"bincount {count} into {bins}", setup, 24.0 * count)


def _searchsorted(rng: Draw) -> Case:
    count, bins = rng.log(1, 1 << 23), rng.log(2, 1 << 20)

    def setup(make):
        x, edges = make.new((count,)), make.new((bins,)).sort().values
        return lambda: make.aten.searchsorted(edges, x)

    return Case(f"searchsorted {count} in {bins}", setup, 30.0 * count)


# Rare shapes ---------------------------------------------------------------------------------------------------------


def sums_of_rows(rng: Draw) -> Case:
    """Sums over the rows of a matrix, or over batch and time."""
    dtype, keep = rng.dtype(MOSTLY_FLOAT32), rng.chance(0.5)
    of, dims = (rng.log(32, 1 << 19), rng.size(1, 4096, nice=0.8)), [0]
    if rng.chance(0.35):
        of, dims = (rng.batch(1, 1024), rng.size(4, 512), rng.size(8, 4096, nice=0.8)), [0, 1]
    return moved_case(f"sum over {dims}", lambda make: _sum(make, of, dtype, dims, keep), dtype, of, 1.1)


def _sum(make, of, dtype, dims, keep):
    x = make.new(of, dtype)
    return lambda: make.aten.sum(x, dims, keep)


# Weights of the kinds of cases.
KINDS = {
    _reduce: 62, _bias_gradient: 12, _scan: 6, _topk: 4, _sort: 6, _unique: 4, _nonzero: 2, _bincount: 2, _searchsorted: 2,
}  # fmt: skip
