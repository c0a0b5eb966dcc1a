"""Sparse gradients and matrices; ops that sort, count and select. Sizes that arguments lack are appended to them in a row of the sweep."""

from __future__ import annotations

import math

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.embedding import rows, width
from steptime.measure.families.skewed import FLOATS
from steptime.measure.spread import Spread

# Operators that multiply by a sparse matrix: position after their arguments.
PRODUCTS = {"aten::_sparse_mm": 2, "aten::mm": 2, "aten::addmm": 5, "aten::_sparse_addmm": 5}


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def _parts(sparse, behind: int):
    """Indices and values of a sparse tensor, as further arguments."""
    return {behind: sparse._indices(), behind + 1: sparse._values()}


def _gradient(make, spread, n, d, count):
    """The sparse gradient of a table's lookups, with one row per lookup, and its counts."""
    index = spread.indices(make, (1, count), n)
    return make.torch.sparse_coo_tensor(index, make.new((count, d)), (n, d), check_invariants=False), spread.counts(make, index)


def _coalesce(rng: Draw) -> Case:
    n, d, spread, count, graph = rows(rng), width(rng), Spread.draw(rng), rng.batch(64, 1 << 19), rng.chance(0.2)

    def setup(make):
        if graph:
            index, values = make.torch.cat([spread.indices(make, (1, count), n), make.indices((1, count), n)]), make.new((count,))
            sparse = make.torch.sparse_coo_tensor(index, values, (n, n), check_invariants=False)
            counts = spread.counts(make, index[0] * n + index[1])
        else:
            sparse, counts = _gradient(make, spread, n, d, count)
        return Op(lambda: make.aten._coalesce(sparse), lists={"aten::_coalesce": _parts(sparse, 1)}, indices=counts)

    moved = 3 * nbytes("float32", (count, 1 if graph else d)) + 100.0 * count
    return Case(f"coalesce {count} of {n}x{d}{' edges' if graph else ''} {spread}", setup, moved)


def _graph_product(rng: Draw) -> Case:
    n, d, spread = rng.size(100, 500_000), width(rng), Spread.draw(rng)
    edges, compressed = rng.log(n // 2, n * 60), rng.chance(0.25)
    square = rng.chance(0.7)
    m = n if square else rng.size(100, 500_000)

    def setup(make):
        torch = make.torch
        index = torch.cat([spread.indices(make, (1, edges), m), make.indices((1, edges), n)])
        sparse = torch.sparse_coo_tensor(index, make.new((edges,)), (m, n), check_invariants=False).coalesce()
        counts = spread.counts(make, sparse._indices()[0])
        lists = {name: _parts(sparse, behind) for name, behind in PRODUCTS.items()}
        matrix = sparse.to_sparse_csr() if compressed else sparse
        x = make.new((n, d))
        return Op(lambda: make.aten._sparse_mm(matrix, x), lists=lists, indices=counts)

    moved = nbytes("float32", (edges, d), (m, d)) + 30.0 * edges
    return Case(f"{'CSR' if compressed else 'COO'} {m}x{n} of {edges} times {n}x{d} {spread}", setup, moved, flops=2.0 * edges * d)


def _sparse_mask(rng: Draw) -> Case:
    n, d, spread, count = rng.log(10, 2_000_000), width(rng), Spread.draw(rng), rng.batch(64, 1 << 18)

    def setup(make):
        sparse, counts = _gradient(make, spread, n, d, count)
        sparse, dense = sparse.coalesce(), make.new((n, d))
        return Op(lambda: dense.sparse_mask(sparse), indices=counts)

    moved = 4 * nbytes("float32", (count, d)) + 30.0 * count
    return Case(f"sparse_mask {count} of {n}x{d} {spread}", setup, moved, memory=nbytes("float32", (n, d)) + moved)


def _step(rng: Draw, name: str, times: float) -> Case:
    n, d, spread, count = rng.log(10, 2_000_000), width(rng), Spread.draw(rng), rng.batch(64, 1 << 18)

    def setup(make):
        torch = make.torch
        weight = torch.nn.Parameter(make.new((n, d)))
        kind = torch.optim.SparseAdam if name == "SparseAdam" else torch.optim.Adagrad
        optimizer = kind([weight], lr=1e-3)
        gradient, counts = _gradient(make, spread, n, d, count)

        def before():
            weight.grad = gradient

        return Op(optimizer.step, before, lists={"aten::_coalesce": _parts(gradient, 1)}, indices=counts)

    moved = times * nbytes("float32", (count, d)) + 100.0 * count
    return Case(f"{name} of {count} in {n}x{d} {spread}", setup, moved, memory=3 * nbytes("float32", (n, d)) + moved)


def _adam_step(rng: Draw) -> Case:
    return _step(rng, "SparseAdam", 24)


def _adagrad_step(rng: Draw) -> Case:
    return _step(rng, "Adagrad", 12)


def _unique(rng: Draw) -> Case:
    high, spread, count = rows(rng), Spread.draw(rng), rng.log(16, 1 << 22)
    dtype, inverse, counted = rng.weigh({"int64": 80, "int32": 20}), rng.chance(0.6), rng.chance(0.4)

    def setup(make):
        index = spread.indices(make, (count,), high, dtype)
        found = make.aten._unique2(index, True, inverse, counted)[0]
        run = lambda: make.aten._unique2(index, True, inverse, counted)  # noqa: E731
        return Op(run, lists={"aten::_unique2": {4: found}}, indices=spread.counts(make, index))

    return Case(f"unique {count} below {high} {dtype} {spread}", setup, 100.0 * count)


def _bincount(rng: Draw) -> Case:
    bins, spread, count = rng.log(2, 1 << 20), Spread.draw(rng), rng.log(16, 1 << 22)

    def setup(make):
        index = spread.indices(make, (count,), bins)
        run = lambda: make.aten.bincount(index, None, bins)  # noqa: E731
        return Op(run, lists={"aten::bincount": {3: run()}}, indices=spread.counts(make, index))

    return Case(f"bincount {count} into {bins} {spread}", setup, 16.0 * count + 8 * bins)


def _shape(rng: Draw):
    """Shape of a mask: a vector, or rows."""
    return (rng.log(16, 1 << 24),) if rng.chance(0.5) else (rng.batch(4, 16384), rng.size(2, 2048))


def _mask(make, of, share):
    return make.torch.rand(of, device=make.device) < share


def _nonzero(rng: Draw) -> Case:
    of, share, kind = _shape(rng), rng.pick(0.01, 0.1, 0.5, 0.9), rng.weigh({"bool": 70, "int64": 15, "float32": 15})

    def setup(make):
        mask = _mask(make, of, share).to(make.type(kind))
        return Op(lambda: make.aten.nonzero(mask), lists={"aten::nonzero": {1: make.aten.nonzero(mask)}})

    return Case(f"nonzero {list(of)} {kind} {share:.0%}", setup, math.prod(of) * (2 + 16.0 * share * len(of)))


def _masked_select(rng: Draw) -> Case:
    of, share, dtype = _shape(rng), rng.pick(0.01, 0.1, 0.5, 0.9), rng.dtype({"float32": 70, "bfloat16": 15, "int64": 15})

    def setup(make):
        mask, x = _mask(make, of, share), make.new(of, dtype)
        lists = {"aten::nonzero": {1: make.aten.nonzero(mask)}, "aten::masked_select": {2: make.aten.masked_select(x, mask)}}
        return Op(lambda: make.aten.masked_select(x, mask), lists=lists)

    return Case(f"masked_select {list(of)} {dtype} {share:.0%}", setup, math.prod(of) * (8 + 24.0 * share))


def _topk(rng: Draw) -> Case:
    of = (rng.batch(1, 4096), rng.size(8, 1 << 17)) if rng.chance(0.8) else (rng.log(16, 1 << 22),)
    k, dtype = min(rng.size(1, 1000, nice=0.6), of[-1]), rng.dtype(FLOATS)

    def setup(make):
        x = make.new(of, dtype)
        return lambda: make.aten.topk(x, k, -1, True, True)

    return Case(f"topk {k} of {list(of)} {dtype}", setup, 3 * nbytes(dtype, of))


def _sort(rng: Draw) -> Case:
    of = (rng.batch(1, 8192), rng.size(2, 1 << 14)) if rng.chance(0.6) else (rng.log(16, 1 << 23),)
    dtype, down = rng.dtype({"float32": 55, "int64": 30, "bfloat16": 10, "int32": 5}), rng.chance(0.4)

    def setup(make):
        x = make.new(of, dtype)
        return lambda: make.aten.sort.stable(x, stable=False, dim=-1, descending=down)

    return Case(f"sort {list(of)} {dtype}", setup, 6 * nbytes(dtype, of) + 40.0 * math.prod(of))


# Weights of the kinds of cases.
KINDS = {
    _coalesce: 16, _graph_product: 14, _sparse_mask: 7, _adam_step: 8, _adagrad_step: 6, _unique: 9, _bincount: 5, _nonzero: 6,
    _masked_select: 7, _topk: 12, _sort: 12,
}  # fmt: skip
