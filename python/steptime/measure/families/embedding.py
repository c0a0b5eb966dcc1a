"""Embedding tables: bags, lookups, their gradients (dense, sparse), and similar gathers and scatters."""

from __future__ import annotations

import math

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw



def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def spread(rng: Draw) -> str:
    return rng.weigh({"uniform": 60, "zipf:1.05": 25, "zipf:1.2": 15})


def rows(rng: Draw) -> int:
    return rng.log(10, 10_000_000)


def width(rng: Draw) -> int:
    return rng.weigh({1: 4, 4: 5, 8: 8, 13: 2, 16: 16, 32: 16, 64: 20, 100: 2, 128: 15, 256: 6, 512: 3, 1024: 1, 48: 3, 96: 3})


def table(rng: Draw):
    return rows(rng), width(rng), spread(rng), rng.weigh({"float32": 85, "bfloat16": 8, "float16": 7})


def bags(rng: Draw):
    """Number of bags, and of rows in each: often one, as for one-hot features."""
    count = rng.batch(16, 16384) if rng.chance(0.85) else rng.size(1, 16384)
    return count, 1 if rng.chance(0.3) else rng.size(1, 100)


def many(rng: Draw) -> int:
    return rng.batch(64, 1 << 20) if rng.chance(0.7) else rng.size(1, 1 << 20)


def describe(what, count, n, d, spread):
    return f"{what}: {count} of {n}x{d} {spread}"


def _bag(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    count, each = bags(rng)
    mode = rng.weigh({0: 70, 1: 22, 2: 8})
    weighted = mode == 0 and rng.chance(0.2)
    last = rng.chance(0.2)

    def setup(make):
        weight = make.new((n, d), dtype)
        index = make.indices((count * each,), n, how)
        offsets = make.torch.arange(0, count * each + (1 if last else 0), each, device=make.device)
        scale = make.new((count * each,), dtype) if weighted else None
        return lambda: make.aten._embedding_bag(weight, index, offsets, False, mode, False, scale, last, -1)

    moved = nbytes(dtype, (count * each, d), (count, d)) + 8 * count * each * 2
    return Case(
        describe("embedding_bag", f"{count} bags of {each}", n, d, how), setup, moved, memory=nbytes(dtype, (n, d)) + moved, indices=how
    )


def _bag_dense_backward(rng: Draw) -> Case:
    n, d, how, _ = table(rng)
    count, each = bags(rng)
    mode = rng.weigh({0: 75, 1: 20, 2: 5})

    def setup(make):
        weight = make.new((n, d))
        index = make.indices((count * each,), n, how)
        offsets = make.torch.arange(0, count * each, each, device=make.device)
        _, bag, size, maximum = make.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False, -1)
        grad = make.new((count, d))
        return lambda: make.aten._embedding_bag_dense_backward(grad, index, bag, size, maximum, n, False, mode, None, -1)

    moved = nbytes("float32", (count * each, d), (n, d), (n, d)) + 60 * count * each
    return Case(describe("embedding_bag dense backward", f"{count}x{each}", n, d, how), setup, moved, memory=2 * moved, indices=how)


def _bag_sparse_step(rng: Draw) -> Case:
    n, d, how, _ = table(rng)
    count, each = bags(rng)
    mode = rng.pick("sum", "sum", "mean")

    def setup(make):
        torch = make.torch
        layer = torch.nn.EmbeddingBag(n, d, mode=mode, sparse=True, device=make.device)
        index = make.indices((count * each,), n, how)
        offsets = torch.arange(0, count * each, each, device=make.device)
        return _step(make, layer, (index, offsets), torch.optim.SGD(layer.parameters(), lr=1e-3), (count, d))

    moved = nbytes("float32", (count * each, d), (count, d)) * 4
    return Case(
        describe("embedding_bag sparse step", f"{count}x{each}", n, d, how),
        setup,
        moved,
        memory=nbytes("float32", (n, d)) + 2 * moved,
        indices=how,
    )


def _step(make, layer, inputs, optimizer, shape) -> Op:
    """The backward pass and the optimizer's step, after a forward pass that is not timed."""
    grad, held = make.new(shape), {}

    def before():
        optimizer.zero_grad(set_to_none=True)
        held["out"] = layer(*inputs)

    def run():
        held.pop("out").backward(grad)
        optimizer.step()

    return Op(run, before)


def _lookup_sparse_step(rng: Draw) -> Case:
    n, d, how, _ = table(rng)
    count = many(rng)

    def setup(make):
        torch = make.torch
        layer = torch.nn.Embedding(n, d, sparse=True, device=make.device)
        return _step(make, layer, (make.indices((count,), n, how),), torch.optim.SGD(layer.parameters(), lr=1e-3), (count, d))

    moved = nbytes("float32", (count, d)) * 4
    return Case(describe("embedding sparse step", count, n, d, how), setup, moved, memory=nbytes("float32", (n, d)) + moved, indices=how)


def _adagrad_step(rng: Draw) -> Case:
    n, d, how, _ = table(rng)
    count = rng.batch(64, 1 << 18)

    def setup(make):
        torch = make.torch
        layer = torch.nn.Embedding(n, d, sparse=True, device=make.device)
        return _step(make, layer, (make.indices((count,), n, how),), torch.optim.Adagrad(layer.parameters(), lr=1e-3), (count, d))

    moved = nbytes("float32", (count, d)) * 12
    return Case(describe("embedding Adagrad step", count, n, d, how), setup, moved, memory=2 * nbytes("float32", (n, d)) + moved, indices=how)


def _lookup(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    shape = (many(rng),) if rng.chance(0.5) else (rng.batch(16, 16384), rng.size(1, 128))
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)

    def setup(make):
        weight, index = make.new((n, d), dtype), make.indices(shape, n, how)
        return lambda: make.aten.embedding(weight, index)

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return Case(describe("embedding", shape, n, d, how), setup, moved, memory=nbytes(dtype, (n, d)) + moved, indices=how)


def _lookup_backward(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    shape = (many(rng),) if rng.chance(0.6) else (rng.batch(16, 16384), rng.size(1, 128))
    count = shape[0] * (shape[1] if len(shape) > 1 else 1)
    padding = 0 if rng.chance(0.3) else -1

    def setup(make):
        grad, index = make.new((*shape, d), dtype), make.indices(shape, n, how)
        return lambda: make.aten.embedding_dense_backward(grad, index, n, padding, False)

    moved = nbytes(dtype, (count, d), (n, d), (n, d)) + 60 * count
    return Case(describe("embedding backward", shape, n, d, how), setup, moved, memory=2 * moved, indices=how)


def _index_select(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    count, dim = many(rng), 0 if rng.chance(0.8) else 1
    if dim == 1:
        n, d, count = rng.size(1, 4096), rng.batch(16, 16384), rng.size(1, 1024)

    def setup(make):
        source = make.new((n, d) if dim == 0 else (d, n), dtype)
        index = make.indices((count,), n, how)
        return lambda: make.aten.index_select(source, dim, index)

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return Case(describe(f"index_select {dim}", count, n, d, how), setup, moved, memory=nbytes(dtype, (n, d)) + moved, indices=how)


def _gather(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    count = many(rng)
    expanded = rng.chance(0.65)

    def setup(make):
        if expanded:
            source, index = make.new((n, d), dtype), make.indices((count,), n, how).unsqueeze(1).expand(count, d)
            return lambda: make.aten.gather(source, 0, index)
        source, index = make.new((count, d), dtype), make.indices((count, max(d // 2, 1)), d, how)
        return lambda: make.aten.gather(source, 1, index)

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count * (1 if expanded else d)
    held = moved + (nbytes(dtype, (n, d)) if expanded else 0)
    return Case(describe(f"gather {'rows' if expanded else 'within rows'}", count, n, d, how), setup, moved, memory=held, indices=how)


def _index_add(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    count = many(rng)

    def setup(make):
        target, index, source = make.new((n, d), dtype), make.indices((count,), n, how), make.new((count, d), dtype)
        return lambda: make.aten.index_add_(target, 0, index, source)

    moved = 3 * nbytes(dtype, (count, d)) + 8 * count
    return Case(describe("index_add_", count, n, d, how), setup, moved, memory=nbytes(dtype, (n, d)) + moved, indices=how)


def _scatter_add(rng: Draw) -> Case:
    n, d, how, dtype = table(rng)
    count = many(rng)
    expanded = rng.chance(0.6)

    def setup(make):
        source = make.new((count, d), dtype)
        if expanded:
            target, index = make.new((n, d), dtype), make.indices((count,), n, how).unsqueeze(1).expand(count, d)
            return lambda: make.aten.scatter_add_(target, 0, index, source)
        target, index = make.new((count, d), dtype), make.indices((count, d), d, how)
        return lambda: make.aten.scatter_add_(target, 1, index, source)

    moved = 3 * nbytes(dtype, (count, d)) + 8 * count * (1 if expanded else d)
    held = moved + (nbytes(dtype, (n, d)) if expanded else 0)
    return Case(describe("scatter_add_", count, n, d, how), setup, moved, memory=held, indices=how)


# Rare shapes ---------------------------------------------------------------------------------------------------------


def small_table(rng: Draw):
    """Rows, columns and index distribution of a table that fits the cache, or nearly so."""
    wide = rng.pick(8, 16, 16, 32, 32, 64, 64, 128, 256)
    return rng.log(100, 2e7 / (4 * wide)), wide, rng.weigh({"uniform": 65, "zipf:1.05": 25, "zipf:1.2": 10})


def bags_of_small_table(rng: Draw) -> Case:
    """Embedding bags of a small table."""
    n, d, how = small_table(rng)
    count, each, mode = rng.batch(64, 16384), 1 if rng.chance(0.3) else rng.size(1, 100), rng.weigh({0: 70, 1: 30})

    def setup(make):
        weight, index = make.new((n, d)), make.indices((count * each,), n, how)
        offsets = make.torch.arange(0, count * each, each, device=make.device)
        return lambda: make.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False, -1)

    moved = nbytes("float32", (count * each, d), (count, d)) + 16 * count * each
    return Case(f"bags of a small table: {count} of {each}, {n}x{d} {how}", setup, moved, memory=nbytes("float32", (n, d)) + moved, indices=how)


def lookups_of_small_table(rng: Draw) -> Case:
    """Lookups in a small table."""
    n, d, how = small_table(rng)
    of = (rng.log(64, 1 << 18),) if rng.chance(0.4) else (rng.batch(16, 4096), rng.size(2, 200))

    def setup(make):
        weight, index = make.new((n, d)), make.indices(of, n, how)
        return lambda: make.aten.embedding(weight, index)

    moved = 2 * nbytes("float32", (*of, d)) + 8 * math.prod(of)
    return Case(f"lookups in a small table: {list(of)} of {n}x{d} {how}", setup, moved, memory=nbytes("float32", (n, d)) + moved, indices=how)


# Weights of the kinds of cases.
KINDS = {
    _bag: 26, _bag_dense_backward: 10, _bag_sparse_step: 10, _lookup: 12, _lookup_backward: 10,
    _lookup_sparse_step: 4, _adagrad_step: 4, _index_select: 6, _gather: 8, _index_add: 5, _scatter_add: 5,
}  # fmt: skip
