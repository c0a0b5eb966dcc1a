"""Calls that the other families draw seldom and models make often: narrow rows, odd sizes, masks, dilation, many inputs.

A share of the cases is drawn by the other families: what is taught of the corners must not bend what is known of the rest.
"""

from __future__ import annotations

import importlib
import math

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.softmax_norm_loss import either

FLOATS = {"float32": 80, "bfloat16": 13, "float16": 7}
KINDS = {
    "usual": 34, "conv1d": 12, "odd_conv": 7, "transposed_conv": 7, "layer_norm": 7, "attention": 9, "softmax": 7, "group_norm": 6,
    "bmm": 6, "cat": 5, "bag": 4, "lookup": 3, "gather": 4, "linear_backward": 5, "bias_gradient": 4, "nll": 1, "dropout": 1, "triangle": 1,
}  # fmt: skip
USUAL = {
    "gemm": 22, "conv": 20, "elementwise": 20, "reduce": 10, "softmax_norm_loss": 8, "batch_norm": 4, "pool": 2, "concat_index": 6,
    "embedding": 8, "attention": 5, "optimizer": 8,
}  # fmt: skip


def draw(rng: Draw) -> Case:
    return globals()["_" + rng.weigh(KINDS)](rng)


def usual(rng: Draw) -> Case:
    """What the other families draw."""
    return importlib.import_module(f"steptime.measure.families.{rng.weigh(USUAL)}").draw(rng)


_usual = usual


def case(what, setup, dtype, of, times, back=False):
    moved = nbytes(dtype, of) * times * (1.5 if back else 1)
    return Case(f"{what}{' backward' if back else ''} {list(of)} {dtype}", setup, moved, memory=2.5 * moved)


# Convolutions -------------------------------------------------------------------------------------------------------


def convolution(rng: Draw, what, x_shape, w_shape, y_shape, stride, padding, dilation, groups, dtype, more=None) -> Case:
    """`more`: the output padding of a transposed convolution."""
    if min(y_shape) < 1:
        return None
    back, bias, rank = rng.chance(0.6), rng.chance(0.5), len(x_shape) - 2
    mask = rng.pick([True, True, bias], [True, True, bias], [True, False, False], [False, True, False])
    strides, pads, gaps, extra = ((each,) * rank for each in (stride, padding, dilation, more or 0))
    transposed = more is not None

    def setup(make):
        x, w = make.new(x_shape, dtype), make.new(w_shape, dtype)
        if back:
            grad, sizes = make.new(y_shape, dtype), [y_shape[1]] if mask[2] else None
            return lambda: make.aten.convolution_backward(grad, x, w, sizes, strides, pads, gaps, transposed, extra, groups, mask)
        b = make.new((y_shape[1],), dtype) if bias else None
        return lambda: make.aten.convolution(x, w, b, strides, pads, gaps, transposed, extra, groups)

    passes = mask[0] + mask[1] if back else 1
    positions = math.prod(x_shape[2:]) * x_shape[0] if transposed else y_shape[0] * math.prod(y_shape[2:])
    flops = 2.0 * positions * math.prod(w_shape) * passes * (0.25 if dtype == "float32" else 1)
    moved = nbytes(dtype, x_shape, w_shape, y_shape) * (1 + 0.5 * (passes - 1))
    name = f"{what}{' backward' if back else ''} {list(x_shape)} {list(w_shape)} stride {stride} dilation {dilation} {dtype}"
    return Case(name, setup, bytes=moved, flops=flops, dtype=dtype, memory=3 * moved)


def some_channels(rng: Draw) -> int:
    return rng.size(1, 512, nice=0.7) if rng.chance(0.7) else 2 ** rng.pick(4, 5, 6, 7, 8, 9)


def _conv1d(rng: Draw) -> Case:
    """Over sequences: of waves, words and events, often with gaps between the taps, and as wide as the input or causal."""
    dtype, batch, length = rng.dtype(FLOATS), rng.batch(1, 128), rng.size(8, 32768, nice=0.7)
    cin = some_channels(rng)
    cout = cin if rng.chance(0.4) else cin * 2 if rng.chance(0.3) else some_channels(rng)
    taps, stride = rng.weigh({1: 18, 2: 22, 3: 34, 5: 12, 7: 8, 9: 6}), 2 if rng.chance(0.08) else 1
    dilation = 2 ** int(rng.uniform(0, 10)) if taps > 1 and rng.chance(0.7) else 1
    reach = dilation * (taps - 1)
    padding = rng.pick(0, reach // 2, reach // 2, reach)
    groups = cin if rng.chance(0.08) else 1
    cout = cin if groups > 1 else cout
    out = (length + 2 * padding - reach - 1) // stride + 1
    return convolution(
        rng, "conv1d", (batch, cin, length), (cout, cin // groups, taps), (batch, cout, out), stride, padding, dilation, groups, dtype
    )


def _odd_conv(rng: Draw) -> Case:
    """Channels that fill no vectors, so that kernels which change the layout run around the convolution; and dilated ones."""
    dtype, side = rng.dtype(FLOATS), rng.side(4, 256)
    wide = lambda: rng.pick(1, 3, 5, 6, 7, 9, 10, 12, 17, 20, 27, 30, 33, 50, 63, 65, 100) if rng.chance(0.6) else rng.size(1, 512)  # noqa: E731
    cin, cout, batch, taps = wide(), wide(), rng.batch(1, 128), rng.weigh({1: 25, 3: 55, 5: 12, 7: 8})
    dilation = rng.pick(2, 2, 4, 6, 12) if taps > 1 and rng.chance(0.3) else 1
    stride, padding = rng.weigh({1: 80, 2: 20}), dilation * (taps // 2) if rng.chance(0.85) else 0
    out = (side + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    x, w, y = (batch, cin, side, side), (cout, cin, taps, taps), (batch, cout, out, out)
    return convolution(rng, "odd conv", x, w, y, stride, padding, dilation, 1, dtype)


def _transposed_conv(rng: Draw) -> Case:
    dtype, rank = rng.dtype(FLOATS), 1 if rng.chance(0.15) else 2
    side = rng.size(16, 8192, nice=0.7) if rank == 1 else rng.side(2, 128)
    cin, batch = some_channels(rng), rng.batch(1, 128)
    cout = max(cin // 2, 1) if rng.chance(0.6) else some_channels(rng)
    taps, stride, padding, more = rng.weigh({(2, 2, 0, 0): 45, (4, 2, 1, 0): 28, (3, 2, 1, 1): 17, (3, 1, 1, 0): 6, (4, 4, 0, 0): 4})
    out = (side - 1) * stride - 2 * padding + taps + more
    x, w, y = (batch, cin, *(side,) * rank), (cin, cout, *(taps,) * rank), (batch, cout, *(out,) * rank)
    return convolution(rng, "transposed conv", x, w, y, stride, padding, 1, 1, dtype, more)


# Rows ---------------------------------------------------------------------------------------------------------------


def _layer_norm(rng: Draw) -> Case:
    """Narrow rows, and many: sequences of small vectors."""
    of, back, dtype = (rng.log(64, 1 << 20), rng.size(8, 1024, nice=0.8)), rng.chance(0.6), rng.dtype(FLOATS)
    if rng.chance(0.6):
        of = (rng.batch(1, 4096), rng.size(4, 512), rng.pick(16, 32, 48, 50, 64, 64, 96, 100, 128, 192, 256, 384, 512, 768))
    wide = of[-1:]

    def setup(make):
        x, weight, shift = make.new(of, dtype), make.new(wide, dtype), make.new(wide, dtype)
        if not back:
            return lambda: make.aten.native_layer_norm(x, wide, weight, shift, 1e-5)
        _, mean, scale = make.aten.native_layer_norm(x, wide, weight, shift, 1e-5)
        grad = make.new(of, dtype)
        return lambda: make.aten.native_layer_norm_backward(grad, x, wide, mean, scale, weight, shift, [True, True, True])

    return case("layer_norm", setup, dtype, of, 2, back)


def _softmax(rng: Draw) -> Case:
    """Over a dimension that is not the last, and over short last ones."""
    name, back, dtype = rng.pick("_softmax", "_log_softmax", "_log_softmax"), rng.chance(0.5), rng.dtype(FLOATS)
    classes = rng.size(2, 512, nice=0.6)
    form = rng.weigh({"sequence": 45, "image": 30, "last": 15, "first": 10})
    if form == "sequence":
        of, dim = (rng.batch(1, 128), classes, rng.size(16, 16384)), 1
    elif form == "image":
        side = rng.side(4, 256)
        of, dim = (rng.batch(1, 64), classes, side, side), 1
    elif form == "first":
        of, dim = (classes, rng.size(8, 65536)), 0
    else:
        of, dim = (rng.batch(1, 512), rng.pick(1, 2, 4, 8), rng.size(8, 512), rng.size(8, 512)), 3

    def setup(make):
        x, op = make.new(of, dtype), getattr(make.aten, name)
        if not back:
            return lambda: op(x, dim, False)
        y, grad, gradient = op(x, dim, False), make.new(of, dtype), getattr(make.aten, name + "_backward_data")
        return lambda: gradient(grad, y, dim, x.dtype)

    return case(f"{name} over {dim}", setup, dtype, of, 2, back)


def _group_norm(rng: Draw) -> Case:
    groups, back, dtype = rng.pick(1, 2, 4, 8, 16, 32, 32), rng.chance(0.6), rng.dtype(FLOATS)
    side = rng.side(2, 256)
    n, c, area = rng.batch(1, 128), groups * rng.size(1, 64, nice=0.7), side * side
    if rng.chance(0.15):  # every channel by itself
        groups = c
    if rng.chance(0.15):
        of = (n, c, rng.size(16, 8192))
        area = of[2]
    else:
        of = (n, c, side, side)

    def setup(make):
        x, weight, bias = make.new(of, dtype), make.new((c,), dtype), make.new((c,), dtype)
        if not back:
            return lambda: make.aten.native_group_norm(x, weight, bias, n, c, area, groups, 1e-5)
        _, mean, scale = make.aten.native_group_norm(x, weight, bias, n, c, area, groups, 1e-5)
        grad = make.new(of, dtype)
        return lambda: make.aten.native_group_norm_backward(grad, x, mean, scale, weight, n, c, area, groups, [True, True, True])

    return case(f"group_norm {groups}", setup, dtype, of, 2, back)


# Attention ----------------------------------------------------------------------------------------------------------


def _attention(rng: Draw) -> Case:
    """Short and narrow heads, with a mask added or without, in the kernels that take one."""
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
            # Rows begin at multiples of 16 elements, as the kernels ask for.
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


# Products -----------------------------------------------------------------------------------------------------------


def _bmm(rng: Draw) -> Case:
    """Many small products whose sizes fill no tile."""
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


def _linear_backward(rng: Draw) -> Case:
    """Gradients of linear layers of one size after another."""
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


def _bias_gradient(rng: Draw) -> Case:
    """Sums over the rows of a matrix, or over batch and time."""
    dtype, keep = rng.dtype(FLOATS), rng.chance(0.5)
    of, dims = (rng.log(32, 1 << 19), rng.size(1, 4096, nice=0.8)), [0]
    if rng.chance(0.35):
        of, dims = (rng.batch(1, 1024), rng.size(4, 512), rng.size(8, 4096, nice=0.8)), [0, 1]
    return case(f"sum over {dims}", lambda make: _sum(make, of, dtype, dims, keep), dtype, of, 1.1)


def _sum(make, of, dtype, dims, keep):
    x = make.new(of, dtype)
    return lambda: make.aten.sum(x, dims, keep)


# Lookups and pieces -------------------------------------------------------------------------------------------------


def _cat(rng: Draw) -> Case:
    """Many narrow inputs, as a recommender's features."""
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


def small_table(rng: Draw):
    """One that the cache holds, or nearly so."""
    wide = rng.pick(8, 16, 16, 32, 32, 64, 64, 128, 256)
    return rng.log(100, 2e7 / (4 * wide)), wide, rng.weigh({"uniform": 65, "zipf:1.05": 25, "zipf:1.2": 10})


def _bag(rng: Draw) -> Case:
    n, d, how = small_table(rng)
    count, each, mode = rng.batch(64, 16384), 1 if rng.chance(0.3) else rng.size(1, 100), rng.weigh({0: 70, 1: 30})

    def setup(make):
        weight, index = make.new((n, d)), make.indices((count * each,), n, how)
        offsets = make.torch.arange(0, count * each, each, device=make.device)
        return lambda: make.aten._embedding_bag(weight, index, offsets, False, mode, False, None, False, -1)

    moved = nbytes("float32", (count * each, d), (count, d)) + 16 * count * each
    return Case(f"bags of a small table: {count} of {each}, {n}x{d} {how}", setup, moved, memory=nbytes("float32", (n, d)) + moved, indices=how)


def _lookup(rng: Draw) -> Case:
    n, d, how = small_table(rng)
    of = (rng.log(64, 1 << 18),) if rng.chance(0.4) else (rng.batch(16, 4096), rng.size(2, 200))

    def setup(make):
        weight, index = make.new((n, d)), make.indices(of, n, how)
        return lambda: make.aten.embedding(weight, index)

    moved = 2 * nbytes("float32", (*of, d)) + 8 * math.prod(of)
    return Case(f"lookups in a small table: {list(of)} of {n}x{d} {how}", setup, moved, memory=nbytes("float32", (n, d)) + moved, indices=how)


def _gather(rng: Draw) -> Case:
    """Positions of sequences, one a row, and whole vectors at positions."""
    dtype, batch, length = rng.dtype(FLOATS), rng.batch(1, 4096), rng.size(2, 1024)
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


# Others -------------------------------------------------------------------------------------------------------------


def _nll(rng: Draw) -> Case:
    """The loss of every position of a sequence or image."""
    classes, back = rng.size(2, 512), rng.chance(0.5)
    side = rng.side(2, 128)
    of = (rng.batch(1, 64), classes, side, side)

    def setup(make):
        x, target = make.new(of), make.indices((of[0], *of[2:]), classes)
        return either(make, lambda: make.torch.nn.functional.nll_loss(x, target), [x], back)

    return case("nll_loss2d", setup, "float32", of, 1, back)


def _dropout(rng: Draw) -> Case:
    of, dtype = (rng.log(64, 1 << 17), rng.size(8, 4096, nice=0.8)), rng.dtype(FLOATS)

    def setup(make):
        x, mask = make.new(of, dtype), make.new(of, "bool")
        return lambda: make.aten.native_dropout_backward(x, mask, 1.25)

    return case("dropout backward", setup, dtype, of, 2.25)


def _triangle(rng: Draw) -> Case:
    side, name, dtype = rng.size(8, 4096), rng.pick("triu", "tril"), rng.pick("float32", "bool")
    return case(name, lambda make: _triangular(make, name, side, dtype), dtype, (side, side), 2)


def _triangular(make, name, side, dtype):
    x, op = make.new((side, side), dtype), getattr(make.aten, name)
    return lambda: op(x, 1)
