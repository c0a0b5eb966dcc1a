"""Lookups, gathers, scatters and their gradients with skewed, padded, sorted or few distinct indices; each row of the sweep has their counts."""

from __future__ import annotations

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.embedding import many, rows, width
from steptime.measure.spread import Spread

FLOATS = {"float32": 80, "bfloat16": 12, "float16": 8}
PUTS = ("aten::_index_put_impl_", "aten::index_put_")


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def _sizes(rng: Draw):
    return rows(rng), width(rng), Spread.draw(rng), rng.dtype(FLOATS)


def _shape(rng: Draw):
    """Shape of the indices: single lookups, or sequences."""
    return (many(rng),) if rng.chance(0.4) else (rng.batch(16, 16384), rng.size(2, 200))


def _total(shape) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def _case(what, spread, shape, n, d, setup, moved, held) -> Case:
    return Case(f"{what}: {list(shape)} of {n}x{d} {spread}", setup, moved, memory=held + moved)


def _lookup(rng: Draw) -> Case:
    (n, d, spread, dtype), shape = _sizes(rng), _shape(rng)

    def setup(make):
        weight, index = make.new((n, d), dtype), spread.indices(make, shape, n)
        return Op(lambda: make.aten.embedding(weight, index), indices=spread.counts(make, index))

    moved = 2 * nbytes(dtype, (_total(shape), d)) + 8 * _total(shape)
    return _case("embedding", spread, shape, n, d, setup, moved, nbytes(dtype, (n, d)))


def _lookup_backward(rng: Draw) -> Case:
    (n, d, spread, dtype), shape = _sizes(rng), _shape(rng)
    padding = 0 if spread.padded and rng.chance(0.7) or rng.chance(0.1) else -1

    def setup(make):
        grad, index = make.new((*shape, d), dtype), spread.indices(make, shape, n)
        counts = spread.counts(make, index, padding)
        return Op(lambda: make.aten.embedding_dense_backward(grad, index, n, padding, False), indices=counts)

    count = _total(shape)
    moved = nbytes(dtype, (count, d), (n, d)) + 60 * count
    return _case(f"embedding backward, padding {padding}", spread, shape, n, d, setup, moved, 2 * moved)


def _bags(rng: Draw):
    return (rng.batch(16, 16384), 1 if rng.chance(0.2) else rng.size(2, 200))


def _bag(rng: Draw) -> Case:
    (n, d, spread, dtype), shape = _sizes(rng), _bags(rng)
    mode = rng.weigh({0: 75, 1: 25})

    def setup(make):
        weight, index = make.new((n, d), dtype), spread.indices(make, shape, n).reshape(-1)
        offsets = make.torch.arange(0, len(index), shape[1], device=make.device)
        counts = spread.counts(make, index)
        return Op(lambda: make.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False, -1), indices=counts)

    moved = nbytes(dtype, (_total(shape), d), (shape[0], d)) + 16 * _total(shape)
    return _case("embedding_bag", spread, shape, n, d, setup, moved, nbytes(dtype, (n, d)))


def _bag_backward(rng: Draw) -> Case:
    (n, d, spread, _), shape = _sizes(rng), _bags(rng)
    mode = rng.weigh({0: 75, 1: 25})

    def setup(make):
        weight, index = make.new((n, d)), spread.indices(make, shape, n).reshape(-1)
        offsets = make.torch.arange(0, len(index), shape[1], device=make.device)
        _, bag, size, most = make.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False, -1)
        grad, counts = make.new((shape[0], d)), spread.counts(make, index)
        return Op(lambda: make.aten._embedding_bag_dense_backward(grad, index, bag, size, most, n, False, mode, None, -1), indices=counts)

    moved = nbytes("float32", (_total(shape), d), (n, d), (n, d)) + 60 * _total(shape)
    return _case("embedding_bag dense backward", spread, shape, n, d, setup, moved, moved)


def _index_select(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)

    def setup(make):
        source, index = make.new((n, d), dtype), spread.indices(make, (count,), n)
        return Op(lambda: make.aten.index_select(source, 0, index), indices=spread.counts(make, index))

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return _case("index_select", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


def _gather(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)

    def setup(make):
        source, index = make.new((n, d), dtype), spread.indices(make, (count,), n)
        wide = index.unsqueeze(1).expand(count, d)
        return Op(lambda: make.aten.gather(source, 0, wide), indices=spread.counts(make, index))

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return _case("gather rows", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


def _index(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)

    def setup(make):
        source, index = make.new((n, d), dtype), [spread.indices(make, (count,), n)]
        return Op(lambda: make.aten.index(source, index), lists={"aten::index": {1: index}}, indices=spread.counts(make, index[0]))

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return _case("index", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


def _index_put(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)
    accumulate = rng.chance(0.9)

    def setup(make):
        target, index, values = make.new((n, d), dtype), [spread.indices(make, (count,), n)], make.new((count, d), dtype)
        run = lambda: make.aten._index_put_impl_(target, index, values, accumulate, True)  # noqa: E731
        return Op(run, lists={name: {1: index} for name in PUTS}, indices=spread.counts(make, index[0]))

    moved = 3 * nbytes(dtype, (count, d)) + 60 * count
    return _case(f"index_put_ accumulate {accumulate}", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


def _index_add(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)

    def setup(make):
        target, index, source = make.new((n, d), dtype), spread.indices(make, (count,), n), make.new((count, d), dtype)
        return Op(lambda: make.aten.index_add_(target, 0, index, source), indices=spread.counts(make, index))

    moved = 3 * nbytes(dtype, (count, d)) + 8 * count
    return _case("index_add_", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


def _scatter_add(rng: Draw) -> Case:
    (n, d, spread, dtype), count = _sizes(rng), many(rng)

    def setup(make):
        target, index, source = make.new((n, d), dtype), spread.indices(make, (count,), n), make.new((count, d), dtype)
        wide = index.unsqueeze(1).expand(count, d)
        return Op(lambda: make.aten.scatter_add_(target, 0, wide, source), indices=spread.counts(make, index))

    moved = 3 * nbytes(dtype, (count, d)) + 8 * count
    return _case("scatter_add_", spread, (count,), n, d, setup, moved, nbytes(dtype, (n, d)))


# Weights of the kinds of cases.
KINDS = {
    _lookup: 10, _lookup_backward: 22, _bag: 12, _bag_backward: 8, _index_select: 6, _gather: 8, _index: 8, _index_add: 12,
    _scatter_add: 10, _index_put: 12,
}  # fmt: skip
