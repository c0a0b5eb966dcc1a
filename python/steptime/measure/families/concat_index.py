"""Concatenation, indexing and other moves of elements."""

from __future__ import annotations

import math

from steptime.measure.case import LARGEST, Case, Op, nbytes
from steptime.measure.draw import MOSTLY_FLOAT32, OFTEN_HALF, Draw
from steptime.measure.families.elementwise import shape
from steptime.measure.families.softmax_norm_loss import case as moved_case

ANY = {"float32": 75, "bfloat16": 13, "float16": 4, "int64": 8}


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def _cat(rng: Draw) -> Case:
    count = rng.size(2, 64) if rng.chance(0.5) else rng.pick(2, 2, 2, 3, 4, 8, 27)
    dtype, kind = rng.dtype(ANY), rng.weigh({"columns": 60, "rows": 12, "channels": 18, "middle": 10})
    batch, width, equal = rng.batch(1, 65536), rng.size(1, 1024), rng.chance(0.5)
    widths = [width if equal else rng.size(1, 1024) for _ in range(count)]
    if kind == "channels":
        side = rng.size(1, 128)
        dim = 1
        images = rng.batch(1, 128)
        shapes = [(images, each, side, side) for each in widths]
    elif kind == "middle":
        shapes, dim = [(batch, max(each // 8, 1), width) for each in widths], 1
    else:
        dim = 0 if kind == "rows" else 1
        shapes = [(each, width) if dim == 0 else (batch, each) for each in widths]
    layout = rng.weigh({"plain": 92, "sliced": 8})
    if rng.chance(0.2) and dim == 1 and len(shapes[0]) == 2:
        dim = -1

    def setup(make):
        parts = [make.laid(each, dtype, layout) for each in shapes]
        return Op(lambda: make.aten.cat(parts, dim), lists={"aten::cat": {0: parts}})

    return Case(f"cat {count} along {dim} of {list(shapes[0])} {dtype}", setup, 2 * nbytes(dtype, *shapes))


def _stack(rng: Draw) -> Case:
    count, of, dtype, dim = rng.size(2, 64), (rng.batch(1, 16384), rng.size(1, 512)), rng.dtype(ANY), rng.pick(0, 1, 1, 2)

    def setup(make):
        parts = [make.new(of, dtype) for _ in range(count)]
        flat = [each.unsqueeze(dim) for each in parts]
        return Op(lambda: make.aten.stack(parts, dim), lists={"aten::cat": {0: flat}, "aten::stack": {0: parts}})

    return Case(f"stack {count} of {list(of)} {dtype}", setup, 2 * nbytes(dtype, of) * count)


def _split_copy(rng: Draw) -> Case:
    count, rows, width, dtype = rng.pick(2, 3, 4), rng.batch(1, 16384), rng.size(1, 1024), rng.dtype(ANY)

    def setup(make):
        parts = make.new((rows, width * count), dtype).split(width, 1)
        return lambda: [each.contiguous() for each in parts]

    return Case(f"copies of {count} slices {rows}x{width}", setup, 2 * nbytes(dtype, (rows, width * count)))


def _pairs(make, count):
    """Rows and columns of the lower triangle."""
    index = make.torch.tril_indices(count, count, -1, device=make.device)
    return index[0], index[1]


def _interaction(rng: Draw):
    return rng.batch(32, 16384), rng.size(2, 64), rng.weigh({"float32": 80, "bfloat16": 12, "float16": 8})


def _index_pairs(rng: Draw) -> Case:
    batch, count, dtype = _interaction(rng)

    def setup(make):
        x, (rows, columns) = make.new((batch, count, count), dtype), _pairs(make, count)
        return Op(lambda: make.aten.index(x, [None, rows, columns]), lists={"aten::index": {1: [None, rows, columns]}})

    return Case(f"index pairs of {batch}x{count}x{count} {dtype}", setup, 1.5 * nbytes(dtype, (batch, count, count)), indices="uniform")


def _index_pairs_backward(rng: Draw) -> Case:
    batch, count, dtype = _interaction(rng)

    def setup(make):
        x, (rows, columns) = make.new((batch, count, count), dtype), _pairs(make, count)
        grad, index = make.new((batch, len(rows)), dtype), [None, rows, columns]
        names = ("aten::_index_put_impl_", "aten::index_put_")
        return Op(lambda: make.aten._index_put_impl_(x, index, grad, True, True), lists={name: {1: index} for name in names})

    moved = 3 * nbytes(dtype, (batch, count, count)) + 20.0 * batch * count
    return Case(f"index pairs backward {batch}x{count}x{count} {dtype}", setup, moved, indices="uniform")


def _rows(rng: Draw):
    how = rng.weigh({"uniform": 75, "zipf:1.05": 15, "zipf:1.2": 10})
    return rng.log(1, 1 << 20), rng.size(1, 512), rng.batch(1, 1 << 18), rng.dtype(ANY), how


def _index_rows(rng: Draw) -> Case:
    n, d, count, dtype, how = _rows(rng)

    def setup(make):
        x, index = make.new((n, d), dtype), [make.indices((count,), n, how)]
        return Op(lambda: make.aten.index(x, index), lists={"aten::index": {1: index}})

    moved = 2 * nbytes(dtype, (count, d)) + 8 * count
    return Case(f"index {count} rows of {n}x{d} {dtype}", setup, moved, memory=moved + nbytes(dtype, (n, d)), indices=how)


def _index_put(rng: Draw) -> Case:
    n, d, count, dtype, how = _rows(rng)
    accumulate = rng.chance(0.7)

    def setup(make):
        x, index, values = make.new((n, d), dtype), [make.indices((count,), n, how)], make.new((count, d), dtype)
        names = ("aten::_index_put_impl_", "aten::index_put_")
        return Op(lambda: make.aten._index_put_impl_(x, index, values, accumulate, True), lists={name: {1: index} for name in names})

    moved = 3 * nbytes(dtype, (count, d)) + 60 * count
    return Case(f"index_put_ {count} rows of {n}x{d} {dtype}", setup, moved, memory=moved + nbytes(dtype, (n, d)), indices=how)


def _masked_select(rng: Draw) -> Case:
    of, dtype = shape(rng), rng.dtype(ANY)

    def setup(make):
        x, mask = make.new(of, dtype), make.new(of, "bool")
        return lambda: make.aten.masked_select(x, mask)

    return Case(f"masked_select {list(of)} {dtype}", setup, nbytes(dtype, of) * 3 + 8.0 * math.prod(of))


def _simple(rng: Draw, what, call, times=2.0, of=None) -> Case:
    of, dtype = of or shape(rng), rng.dtype(ANY)

    def setup(make):
        x = make.new(of, dtype)
        return lambda: call(make, x)

    return Case(f"{what} {list(of)} {dtype}", setup, times * nbytes(dtype, of))


def _roll(rng: Draw) -> Case:
    return _simple(rng, "roll", lambda make, x: make.aten.roll(x, [1], [0]))


def _flip(rng: Draw) -> Case:
    last = rng.chance(0.5)
    return _simple(rng, "flip", lambda make, x: make.aten.flip(x, [x.dim() - 1 if last else 0]))


def _repeat(rng: Draw) -> Case:
    times = rng.pick(2, 3, 4, 8)
    return _simple(rng, f"repeat {times}", lambda make, x: x.repeat(times, *(1,) * (x.dim() - 1)), times + 1.0)


def _expand(rng: Draw) -> Case:
    times = rng.size(2, 64)
    return _simple(rng, f"expand {times}", lambda make, x: x.unsqueeze(0).expand(times, *x.shape).contiguous(), times + 1.0)


def _tril(rng: Draw) -> Case:
    return _simple(rng, "tril", lambda make, x: make.aten.tril(x), of=(rng.batch(1, 256), rng.size(2, 1024), rng.size(2, 1024)))


def _one_hot(rng: Draw) -> Case:
    count, kinds = rng.size(1, 1 << 18), rng.size(2, 1000)

    def setup(make):
        x = make.indices((count,), kinds)
        return lambda: make.torch.nn.functional.one_hot(x, kinds)

    return Case(f"one_hot {count} of {kinds}", setup, 16.0 * count * kinds)


def _pad(rng: Draw) -> Case:
    amounts = rng.pick([0, 1], [1, 1], [1, 1, 1, 1], [0, 1, 0, 1], [3, 3])
    side = rng.size(1, 256)
    of = (rng.batch(1, 128), rng.size(1, 512), side, side) if len(amounts) == 4 else None
    return _simple(rng, f"pad {amounts}", lambda make, x: make.aten.constant_pad_nd(x, amounts), of=of)


def _slice_backward(rng: Draw) -> Case:
    rows, width, dtype = rng.batch(1, 65536), rng.size(2, 2048), rng.weigh({"float32": 80, "bfloat16": 12, "float16": 8})
    start = rng.size(1, width) - 1
    end = min(start + rng.size(1, width), width)

    def setup(make):
        grad = make.new((rows, end - start), dtype)
        return lambda: make.aten.slice_backward(grad, [rows, width], 1, start, end, 1)

    return Case(f"slice_backward {rows}x{width} from {start} to {end} {dtype}", setup, 2 * nbytes(dtype, (rows, width)))


def _take(rng: Draw) -> Case:
    n, count, dtype = rng.log(1, 1 << 22), rng.log(1, 1 << 22), rng.dtype(ANY)

    def setup(make):
        x, index = make.new((n,), dtype), make.indices((count,), n)
        return lambda: make.aten.take(x, index)

    return Case(f"take {count} of {n} {dtype}", setup, 48.0 * count, memory=48.0 * count + 8 * n, indices="uniform")


# Rare shapes ---------------------------------------------------------------------------------------------------------


def narrow_cat(rng: Draw) -> Case:
    """Concatenation of many narrow inputs, such as a recommender's features."""
    dtype, count, batch = rng.weigh({"float32": 85, "bfloat16": 15}), rng.size(2, 256, nice=0.5), rng.batch(16, 65536)
    width = rng.weigh({1: 12, 4: 8, 8: 14, 10: 5, 16: 18, 20: 3, 32: 18, 64: 14, 128: 8})
    widths = [width] * count
    if rng.chance(0.45):
        widths = [rng.size(1, 2 * width) for _ in range(count)]
    elif rng.chance(0.4):
        widths[0] = rng.size(1, 512)
    between = rng.chance(0.2)
    shapes = [(batch, rng.pick(1, 2, 4), width) for _ in widths] if between else [(batch, each) for each in widths]

    def setup(make):
        parts = [make.new(each, dtype) for each in shapes]
        return Op(lambda: make.aten.cat(parts, 1), lists={"aten::cat": {0: parts}})

    return Case(f"cat of {count} narrow ones {list(shapes[0])} {dtype}", setup, 2 * nbytes(dtype, *shapes))


def parts_joined(rng: Draw) -> Case:
    """Concatenated slices, as in scans and shifted windows; the parts are views of one tensor or copies."""
    dtype, outer, length, inner = rng.dtype(OFTEN_HALF), rng.batch(1, 64), rng.size(4, 1024, nice=0.7), rng.size(1, 16384, nice=0.7)
    if outer * length * inner > LARGEST:
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


def positions(rng: Draw) -> Case:
    """Gather of positions of sequences, one per row, and of whole vectors at positions."""
    dtype, batch, length = rng.dtype(MOSTLY_FLOAT32), rng.batch(1, 4096), rng.size(2, 1024)
    form = rng.weigh({"vectors": 40, "classes": 30, "one": 30})
    wide, taken = rng.size(4, 1024, nice=0.8), 1 if rng.chance(0.4) else rng.size(1, 64)

    def setup(make):
        if form == "vectors":
            x, index = make.new((batch, length, wide), dtype), make.indices((batch, taken, 1), length).expand(batch, taken, wide)
            return lambda: make.aten.gather(x, 1, index)
        if form == "classes":
            x, index = make.new((batch, length, wide), dtype), make.indices((batch, length, 1), wide)
            return lambda: make.aten.gather(x, 2, index)
        x, index = make.new((batch, length), dtype), make.indices((batch, taken), length)
        return lambda: make.aten.gather(x, 1, index)

    held = nbytes(dtype, (batch, length, 1 if form == "one" else wide))
    count = batch * (length if form == "classes" else taken) * (wide if form == "vectors" else 1)
    return Case(f"gather {form} {batch}x{length}x{wide} {dtype}", setup, 48.0 * count, memory=held + 48.0 * count, indices="uniform")


def triangle(rng: Draw) -> Case:
    """Triangles of square matrices."""
    side, name, dtype = rng.size(8, 4096), rng.pick("triu", "tril"), rng.pick("float32", "bool")
    return moved_case(name, lambda make: _triangular(make, name, side, dtype), dtype, (side, side), 2)


def _triangular(make, name, side, dtype):
    x, op = make.new((side, side), dtype), getattr(make.aten, name)
    return lambda: op(x, 1)


# Weights of the kinds of cases.
KINDS = {
    _cat: 34, _stack: 8, _split_copy: 5, _index_pairs: 8, _index_pairs_backward: 6, _index_rows: 8, _index_put: 8, _masked_select: 2,
    _roll: 2, _flip: 2, _repeat: 3, _expand: 3, _tril: 2, _one_hot: 2, _pad: 3, _slice_backward: 6, _take: 2,
}  # fmt: skip
