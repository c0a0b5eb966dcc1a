"""Effects of memory formats: ops on channels-last images, and permuted copies."""

from __future__ import annotations

import math

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.conv import channels, extent

FLOATS = {"float32": 70, "bfloat16": 20, "float16": 10}
UNARY = ("relu", "silu", "sigmoid", "hardswish", "gelu", "tanh", "neg")


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def images(rng: Draw):
    """Shape of a batch of feature maps, typical of networks: many channels where sides are small."""
    side = extent(rng)
    most = max(min(int(6e7 / (side * side)), 1 << 17), 4)
    wide = min(channels(rng), most)
    count = min(rng.batch(1, 128), max(most // wide, 1))
    sides = (side, side) if rng.chance(0.9) else (side, min(extent(rng), 2 * side))
    return (count, wide, *sides)


def case(what, setup, dtype, of, times, more=0.0):
    moved = nbytes(dtype, of) * times + more
    return Case(f"{what} {list(of)} {dtype}", setup, moved, memory=1.5 * moved)


def last(make, of, dtype):
    return make.laid(of, dtype, "channels_last")


# Convolutions -------------------------------------------------------------------------------------------------------


def convolution(rng: Draw, of, cout, kernel, stride, padding, groups, dtype) -> Case:
    batch, cin = of[:2]
    out = tuple((n + 2 * p - k) // stride + 1 for n, p, k in zip(of[2:], padding, kernel))
    if min(out) < 1:
        return None
    w_shape, y_shape = (cout, cin // groups, *kernel), (batch, cout, *out)
    back, bias = rng.chance(0.6), rng.chance(0.5)
    mask = [rng.chance(0.9), True, bias]
    if rng.chance(0.3):
        mask = [True, False, False]
    elif rng.chance(0.4):
        mask[0] = False
    strides, ones, zeros = (stride, stride), (1, 1), (0, 0)

    def setup(make):
        x, w = last(make, of, dtype), last(make, w_shape, dtype)
        if back:
            grad = last(make, y_shape, dtype)
            sizes = [cout] if mask[2] else None
            return lambda: make.aten.convolution_backward(grad, x, w, sizes, strides, padding, ones, False, zeros, groups, mask)
        b = make.new((cout,), dtype) if bias else None
        return lambda: make.aten.convolution(x, w, b, strides, padding, ones, False, zeros, groups)

    passes = (mask[0] + mask[1]) if back else 1
    flops = 2.0 * math.prod(y_shape) * (cin // groups) * math.prod(kernel) * passes
    moved = nbytes(dtype, of, w_shape, y_shape) * (1 + 0.5 * (passes - 1))
    name = f"channels-last conv{' backward' if back else ''} {list(of)} {list(w_shape)} stride {stride} {dtype}"
    factor = 8 if groups == cin > 1 else 0.25 if dtype == "float32" else 1  # depthwise convolutions use no matrix units
    return Case(name, setup, bytes=moved, flops=flops * factor, dtype=dtype, memory=3 * moved)


def _conv(rng: Draw) -> Case:
    of, dtype, cout = images(rng), rng.dtype(FLOATS), channels(rng)
    kernel, stride = rng.weigh({(3, 3): 45, (1, 1): 38, (5, 5): 5, (7, 7): 7, (2, 2): 5}), rng.weigh({1: 75, 2: 25})
    padding = tuple(each // 2 for each in kernel) if rng.chance(0.85) else (0, 0)
    groups = rng.pick(2, 4, 8, 32) if rng.chance(0.08) else 1
    wide = math.ceil(of[1] / groups) * groups
    return convolution(rng, (of[0], wide, *of[2:]), math.ceil(cout / groups) * groups, kernel, stride, padding, groups, dtype)


def _depthwise(rng: Draw) -> Case:
    of, dtype = images(rng), rng.dtype(FLOATS)
    side, stride = rng.weigh({3: 45, 5: 15, 7: 40}), rng.weigh({1: 85, 2: 15})
    return convolution(rng, of, of[1], (side, side), stride, (side // 2, side // 2), of[1], dtype)


def _patches(rng: Draw) -> Case:
    """Convolutions that cut an image into patches."""
    side, dtype = rng.pick(2, 4, 8, 14, 16), rng.dtype(FLOATS)
    first = rng.chance(0.6)
    height = side * rng.size(2, 384 // side)
    of = (rng.batch(1, 128), 3 if first else channels(rng), height, height)
    return convolution(rng, of, channels(rng), (side, side), side, (0, 0), 1, dtype)


# One element at a time ----------------------------------------------------------------------------------------------


def _unary(rng: Draw) -> Case:
    of, dtype, name = images(rng), rng.dtype(FLOATS), rng.pick(*UNARY)
    return case(f"channels-last {name}", lambda make: _call(getattr(make.aten, name), last(make, of, dtype)), dtype, of, 2)


def _call(op, *args):
    return lambda: op(*args)


def _binary(rng: Draw) -> Case:
    of, dtype = images(rng), rng.dtype(FLOATS)
    name = rng.pick("add", "mul", "add_", "threshold_backward", "gelu_backward", "silu_backward")

    def setup(make):
        a, b = last(make, of, dtype), last(make, of, dtype)
        op = getattr(make.aten, name)
        return (lambda: op(a, b, 0)) if name == "threshold_backward" else (lambda: op(a, b))

    return case(f"channels-last {name}", setup, dtype, of, 3)


def _scaled(rng: Draw) -> Case:
    """A factor or summand per channel, per sample and channel, or per sample."""
    of, dtype, name, plain = images(rng), rng.dtype(FLOATS), rng.pick("mul", "add", "mul"), rng.chance(0.4)
    other = rng.pick((1, of[1], 1, 1), (of[1], 1, 1), (of[0], of[1], 1, 1), (of[0], 1, 1, 1))

    def setup(make):
        a, b = (make.new(of, dtype) if plain else last(make, of, dtype)), make.new(other, dtype)
        op = getattr(make.aten, name)
        return lambda: op(a, b)

    return case(f"{'plain' if plain else 'channels-last'} {name} with {list(other)}", setup, dtype, of, 2)


def _mixed(rng: Draw) -> Case:
    """One operand in each memory format."""
    of, dtype, name, swap = images(rng), rng.dtype(FLOATS), rng.pick("add", "mul", "add_", "threshold_backward"), rng.chance(0.5)

    def setup(make):
        a, b = last(make, of, dtype), make.new(of, dtype)
        a, b = (b, a) if swap else (a, b)
        op = getattr(make.aten, name)
        return (lambda: op(a, b, 0)) if name == "threshold_backward" else (lambda: op(a, b))

    return case(f"{name} of two memory formats", setup, dtype, of, 3)


# Copies -------------------------------------------------------------------------------------------------------------


def _copy(rng: Draw) -> Case:
    """Copies from one memory format to the other."""
    of, dtype, away, cast = images(rng), rng.dtype(FLOATS), rng.chance(0.5), rng.chance(0.15)

    def setup(make):
        torch = make.torch
        x = last(make, of, dtype) if away else make.new(of, dtype)
        into = torch.empty(
            of,
            dtype=make.type("bfloat16" if cast else dtype),
            device=make.device,
            memory_format=torch.contiguous_format if away else torch.channels_last,
        )
        return Op(lambda: make.aten.copy_(into, x), devices={"aten::copy_": ["cuda", "cuda", ""]})

    return case(f"copy {'from' if away else 'to'} channels-last", setup, dtype, of, 2)


ORDERS = {
    3: ((0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0)),
    4: ((0, 2, 1, 3), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (2, 0, 1, 3), (1, 0, 2, 3)),
    5: ((2, 0, 3, 1, 4), (0, 1, 3, 2, 4), (0, 1, 3, 2, 4), (0, 2, 4, 3, 1)),
}


def _permuted(rng: Draw) -> Case:
    rank, dtype = rng.weigh({3: 50, 4: 38, 5: 12}), rng.weigh({"float32": 70, "bfloat16": 15, "float16": 5, "int64": 10})
    order = rng.pick(*ORDERS[rank])
    count, sizes = rng.log(1e4, 5e7), []
    for _ in range(rank - 1):
        sizes.append(rng.size(2, max(min(2048, count), 2)))
        count = max(count // sizes[-1], 1)
    sizes.insert(0, min(count, 65536))
    if rng.chance(0.4):
        sizes = rng.sample(sizes, rank)
    form, cast = rng.pick("clone", "copy", "copy"), rng.chance(0.1)

    def setup(make):
        x = make.new(sizes, dtype).permute(order)
        if form == "clone":
            return lambda: make.aten.clone(x, memory_format=make.torch.contiguous_format)
        into = make.new(x.shape, "float32" if cast else dtype)
        return Op(lambda: make.aten.copy_(into, x), devices={"aten::copy_": ["cuda", "cuda", ""]})

    return case(f"permuted {list(order)}", setup, dtype, sizes, 2)


def _cat(rng: Draw) -> Case:
    of, dtype, count = images(rng), rng.dtype(FLOATS), rng.pick(2, 2, 2, 3, 4)

    def setup(make):
        parts = [last(make, of, dtype) for _ in range(count)]
        return Op(lambda: make.aten.cat(parts, 1), lists={"aten::cat": {0: parts}})

    return case(f"channels-last cat {count}", setup, dtype, of, 2 * count)


# Layers -------------------------------------------------------------------------------------------------------------


def _batch_norm(rng: Draw) -> Case:
    of, dtype, back = images(rng), rng.dtype(FLOATS), rng.chance(0.5)

    def setup(make):
        wide = of[1]
        x, (weight, bias, mean, spread) = last(make, of, dtype), (make.positive((wide,)) for _ in range(4))
        forward = lambda: make.torch.nn.functional.batch_norm(x, mean, spread, weight, bias, True, 0.1, 1e-5)  # noqa: E731
        if not back:
            return forward
        for each in (x, weight, bias):
            make.grad(each)
        return make.backward(forward(), [x, weight, bias])

    return case(f"channels-last batch_norm{' backward' if back else ''}", setup, dtype, of, 4)


def _group_norm(rng: Draw) -> Case:
    of, dtype, back, groups = images(rng), rng.dtype(FLOATS), rng.chance(0.5), rng.pick(1, 8, 16, 32)
    of = (of[0], math.ceil(of[1] / groups) * groups, *of[2:])

    def setup(make):
        x, weight, bias = last(make, of, dtype), make.new((of[1],), dtype), make.new((of[1],), dtype)
        forward = lambda: make.torch.nn.functional.group_norm(x, groups, weight, bias)  # noqa: E731
        if not back:
            return forward
        for each in (x, weight, bias):
            make.grad(each)
        return make.backward(forward(), [x, weight, bias])

    return case(f"channels-last group_norm {groups}{' backward' if back else ''}", setup, dtype, of, 4)


def _pool(rng: Draw) -> Case:
    of, dtype, back = images(rng), rng.dtype(FLOATS), rng.chance(0.5)
    kind, side = rng.pick("max", "average", "adaptive"), rng.pick(2, 3, 3)
    if min(of[2:]) < side:
        return None

    def setup(make):
        nn, x = make.torch.nn.functional, last(make, of, dtype)
        forward = {
            "max": lambda: nn.max_pool2d(x, side, 2, side // 2),
            "average": lambda: nn.avg_pool2d(x, side, 2, side // 2),
            "adaptive": lambda: nn.adaptive_avg_pool2d(x, 1),
        }[kind]
        if not back:
            return forward
        make.grad(x)
        out = forward()
        return make.backward(out, [x], make.torch.randn_like(out))

    return case(f"channels-last {kind} pool {side}{' backward' if back else ''}", setup, dtype, of, 1.5)


def _upsample(rng: Draw) -> Case:
    of, dtype, mode, plain = images(rng), rng.dtype(FLOATS), rng.pick("nearest", "bilinear"), rng.chance(0.4)

    def setup(make):
        x = make.new(of, dtype) if plain else last(make, of, dtype)
        return lambda: make.torch.nn.functional.interpolate(x, scale_factor=2, mode=mode)

    return case(f"upsample {mode}{'' if plain else ' channels-last'}", setup, dtype, of, 5)


def _reduce(rng: Draw) -> Case:
    """Sums over all dimensions but the channels (gradients of factors and biases), and over the image."""
    of, dtype, plain = images(rng), rng.dtype(FLOATS), rng.chance(0.35)
    dims, name = rng.pick([0, 2, 3], [0, 2, 3], [2, 3], [0]), rng.pick("sum", "sum", "mean")
    keep = rng.chance(0.5)

    def setup(make):
        x = make.new(of, dtype) if plain else last(make, of, dtype)
        op = getattr(make.aten, name)
        return lambda: op(x, dims, keep)

    return case(f"{'plain' if plain else 'channels-last'} {name} over {dims}", setup, dtype, of, 1.1)


def _layer_norm(rng: Draw) -> Case:
    """Layer norm over the channels of channels-last images, as a permuted view."""
    of, dtype, back = images(rng), rng.dtype(FLOATS), rng.chance(0.5)

    def setup(make):
        x, weight, bias = last(make, of, dtype).permute(0, 2, 3, 1), make.new((of[1],), dtype), make.new((of[1],), dtype)
        forward = lambda: make.torch.nn.functional.layer_norm(x, (of[1],), weight, bias)  # noqa: E731
        if not back:
            return forward
        x = make.grad(x.detach())
        inputs = [x, make.grad(weight), make.grad(bias)]
        return make.backward(make.torch.nn.functional.layer_norm(x, (of[1],), weight, bias), inputs)

    return case(f"layer_norm over channels{' backward' if back else ''}", setup, dtype, of, 3)


# Weights of the kinds of cases.
KINDS = {
    _conv: 22, _depthwise: 10, _patches: 4, _unary: 6, _binary: 8, _scaled: 6, _mixed: 5, _copy: 6, _permuted: 14, _cat: 4,
    _batch_norm: 6, _group_norm: 4, _pool: 5, _upsample: 3, _reduce: 8, _layer_norm: 4,
}  # fmt: skip
