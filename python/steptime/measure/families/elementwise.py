"""Elementwise operators: arithmetic, activations and their gradients, casts, copies, fills."""

from __future__ import annotations

import math
from typing import Tuple

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw

FLOATS = {"float32": 76, "bfloat16": 18, "float16": 6}
ANY = {"float32": 65, "bfloat16": 15, "float16": 5, "int64": 15}
LAYOUTS = {"plain": 82, "offset": 7, "sliced": 5, "transposed": 6}
UNARY = (
    "relu", "relu", "sigmoid", "sigmoid", "tanh", "silu", "exp", "log", "sqrt", "rsqrt", "neg", "abs", "hardswish", "hardtanh",
    "leaky_relu", "elu", "softplus", "sin", "cos", "erf", "reciprocal", "sign", "floor", "log1p", "logical_not", "isnan", "mish",
)  # fmt: skip
IN_INTEGERS = ("neg", "abs", "sign", "logical_not")
IN_PLACE = ("relu_", "sigmoid_", "tanh_", "sqrt_", "neg_", "abs_", "exp_", "hardtanh_", "silu_", "leaky_relu_", "clamp_min_")


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def shape(rng: Draw) -> Tuple[int, ...]:
    """A shape of 1 to 256 million elements in one to four dimensions."""
    count = rng.log(1e3, 3e7) if rng.chance(0.8) else rng.log(1, 256e6)
    rank = rng.weigh({1: 20, 2: 45, 3: 15, 4: 20})
    if rank == 1:
        return (rng.size(max(count // 2, 1), max(count, 1)),)
    if rank == 4:
        channels = rng.size(1, min(2048, count))
        side = max(int(math.sqrt(rng.log(1, max(count // channels, 1)))), 1)
        return (max(count // (channels * side * side), 1), channels, side, side)
    inner = [rng.size(1, max(min(count, 8192), 1))]
    if rank == 3:
        inner.insert(0, rng.size(1, max(min(count // inner[-1], 1024), 1)))
    return (max(count // math.prod(inner), 1), *inner)


def smaller(rng: Draw, of: Tuple[int, ...]) -> Tuple[int, ...]:
    """A shape that broadcasts to `of`: a bias, a factor per row or per channel, a single number."""
    if len(of) == 4 and rng.chance(0.6):
        return rng.pick((1, of[1], 1, 1), (of[0], of[1], 1, 1), (of[0], 1, of[2], of[3]))
    if len(of) >= 2:
        return rng.pick(of[-1:], of[-1:], (*of[:-1], 1), (1,) * len(of), (1, *of[1:]))
    return (1,)


def case(what, setup, dtype, of, reads, writes=1, more=0.0):
    moved = nbytes(dtype, of) * (reads + writes) + more
    return Case(f"{what} {list(of)} {dtype}", setup, moved, flops=0)


def _unary(rng: Draw) -> Case:
    name, of, dtype, layout = rng.pick(*UNARY, "gelu", "gelu tanh", "clamp_min", "clamp", "pow", "pow"), shape(rng), rng.dtype(FLOATS), rng.weigh(LAYOUTS)
    if name in IN_INTEGERS:
        dtype = rng.dtype(ANY)
    power = rng.pick(2, 2, 3, 0.5, -1, 1.7)

    def setup(make):
        x = make.laid(of, dtype, layout)
        if name in ("log", "sqrt", "rsqrt", "log1p"):
            x = x.abs_()
        if name.startswith("gelu"):
            return lambda: make.aten.gelu(x, approximate="tanh" if "tanh" in name else "none")
        if name == "clamp_min":
            return lambda: make.aten.clamp_min(x, 0)
        if name == "clamp":
            return lambda: make.aten.clamp(x, -1, 1)
        if name == "pow":
            return lambda: make.aten.pow(x, power)
        op = getattr(make.aten, name)
        return lambda: op(x)

    return case(f"{name} {layout}", setup, dtype, of, 1)


def _inplace_unary(rng: Draw) -> Case:
    name, of, dtype, layout = rng.pick(*IN_PLACE), shape(rng), rng.dtype(FLOATS), rng.weigh(LAYOUTS)

    def setup(make):
        x = make.laid(of, dtype, layout)
        op = getattr(make.aten, name)
        return (lambda: op(x, 0)) if name == "clamp_min_" else (lambda: op(x))

    return case(f"{name} {layout}", setup, dtype, of, 1)


def _binary(rng: Draw) -> Case:
    name = rng.weigh({"add": 34, "sub": 14, "mul": 34, "div": 14, "maximum": 2, "minimum": 2})
    of, dtype = shape(rng), rng.dtype(ANY)
    left, right = rng.weigh(LAYOUTS), rng.weigh(LAYOUTS)
    other = smaller(rng, of) if rng.chance(0.4) else of
    swap, mixed = rng.chance(0.2), rng.chance(0.05)

    def setup(make):
        a, b = make.laid(of, dtype, left), make.laid(other, "float32" if mixed else dtype, right if other == of else "plain")
        if swap:
            a, b = b, a
        op = getattr(make.aten, name)
        return lambda: op(a, b)

    return case(f"{name} with {list(other)} {left} {right}", setup, dtype, of, 2 if other == of else 1, more=nbytes(dtype, other))


def _scalar(rng: Draw) -> Case:
    name, of, dtype, layout = rng.pick("add", "sub", "mul", "mul", "div", "rsub"), shape(rng), rng.dtype(ANY), rng.weigh(LAYOUTS)
    if dtype == "int64":
        name = rng.pick("remainder", "remainder", "mul", "add", "div", "floor_divide", "bitwise_and")
    number = rng.pick(2, 3, 100)

    def setup(make):
        x = make.laid(of, dtype, layout)
        if name == "div" and dtype == "int64":
            return lambda: make.aten.div(x, number, rounding_mode="floor")
        op = getattr(make.aten, name)
        return lambda: op(x, number)

    return case(f"{name} scalar {layout}", setup, dtype, of, 1)


def _inplace(rng: Draw) -> Case:
    name, of, dtype, layout = rng.pick("add_", "add_", "mul_", "sub_", "div_"), shape(rng), rng.dtype(FLOATS), rng.weigh(LAYOUTS)
    operand = rng.weigh({"same": 50, "scalar": 30, "smaller": 20})
    other = {"same": of, "scalar": (), "smaller": smaller(rng, of)}[operand]

    def setup(make):
        x = make.laid(of, dtype, layout)
        op = getattr(make.aten, name)
        if operand == "scalar":
            return lambda: op(x, 1.0009765625)
        y = make.laid(other, dtype)
        if name in ("add_", "sub_"):
            return lambda: op(x, y, alpha=0.5)
        return lambda: op(x, y)

    return case(f"{name} {operand} {layout}", setup, dtype, of, 2 if operand == "same" else 1)


def _three(rng: Draw) -> Case:
    name, of, dtype = rng.pick("addcmul_", "addcdiv_", "lerp_", "addcmul", "addcdiv", "lerp"), shape(rng), rng.dtype(FLOATS)

    def setup(make):
        a, b, c = make.laid(of, dtype), make.laid(of, dtype), make.positive(of, dtype)
        op = getattr(make.aten, name)
        if name.startswith("lerp"):
            return lambda: op(a, b, 0.1)
        return lambda: op(a, b, c, value=0.1)

    return case(name, setup, dtype, of, 2 if name.startswith("lerp") else 3)


def _compare(rng: Draw) -> Case:
    name, of, dtype, layout = rng.pick("gt", "eq", "lt", "ge", "ne"), shape(rng), rng.dtype(ANY), rng.weigh(LAYOUTS)
    scalar = rng.chance(0.5)

    def setup(make):
        x = make.laid(of, dtype, layout)
        y = 0 if scalar else make.laid(of, dtype)
        op = getattr(make.aten, name)
        return lambda: op(x, y)

    return case(f"{name} {layout}", setup, dtype, of, 1 if scalar else 2)


def _where(rng: Draw) -> Case:
    name, of, dtype = rng.pick("where", "masked_fill", "masked_fill_"), shape(rng), rng.dtype(FLOATS)
    mask_shape = of if rng.chance(0.7) else smaller(rng, of)

    def setup(make):
        x, mask = make.laid(of, dtype), make.new(mask_shape, "bool")
        if name == "where":
            y = make.laid(of, dtype)
            return lambda: make.aten.where(mask, x, y)
        op = getattr(make.aten, name)
        return lambda: op(x, mask, -1.0)

    return case(f"{name} mask {list(mask_shape)}", setup, dtype, of, 2)


def _gradient(rng: Draw) -> Case:
    of, dtype = shape(rng), rng.dtype(FLOATS)
    name = rng.weigh({
        "threshold": 30, "sigmoid": 14, "tanh": 12, "gelu": 12, "silu": 8, "native_dropout": 12, "hardswish": 4, "leaky_relu": 4,
        "elu": 2, "hardtanh": 4, "softplus": 2, "mse_loss": 4,
    })  # fmt: skip
    tanh = rng.chance(0.5)

    def setup(make):
        grad, x = make.laid(of, dtype), make.positive(of, dtype)
        aten = make.aten
        if name == "native_dropout":
            mask = make.new(of, "bool")
            return lambda: aten.native_dropout_backward(grad, mask, 2.0)
        if name == "mse_loss":
            one = make.new((), dtype)
            return lambda: aten.mse_loss_backward(one, grad, x, 1)
        op = getattr(aten, name + "_backward")
        return {
            "threshold": lambda: op(grad, x, 0),
            "gelu": lambda: op(grad, x, approximate="tanh" if tanh else "none"),
            "leaky_relu": lambda: op(grad, x, 0.01, False),
            "elu": lambda: op(grad, 1, 1, 1, False, x),
            "hardtanh": lambda: op(grad, x, -1, 1),
            "softplus": lambda: op(grad, x, 1, 20),
        }.get(name, lambda: op(grad, x))

    return case(f"{name}_backward", setup, dtype, of, 2)


def _fill(rng: Draw) -> Case:
    name, of, dtype = rng.pick("zero_", "zero_", "fill_", "zeros", "ones_like", "full"), shape(rng), rng.dtype(ANY)

    def setup(make):
        aten, x = make.aten, make.laid(of, dtype)
        type = make.type(dtype)
        return {
            "zero_": lambda: aten.zero_(x),
            "fill_": lambda: aten.fill_(x, 3),
            "zeros": lambda: aten.zeros(of, dtype=type, device=make.device),
            "ones_like": lambda: aten.ones_like(x),
            "full": lambda: aten.full(of, 2, dtype=type, device=make.device),
        }[name]

    return case(name, setup, dtype, of, 0)


def _cast(rng: Draw) -> Case:
    of, layout = shape(rng), rng.weigh(LAYOUTS)
    source, target = rng.weigh({
        ("float32", "bfloat16"): 30, ("bfloat16", "float32"): 24, ("float32", "float16"): 10, ("float16", "float32"): 8, ("int64", "float32"): 8,
        ("int32", "int64"): 6, ("int64", "int32"): 4, ("bool", "float32"): 6, ("float32", "float64"): 3, ("float64", "float32"): 3, ("uint8", "float32"): 4,
    })  # fmt: skip

    def setup(make):
        x, type = make.laid(of, source, layout), make.type(target)
        return lambda: make.aten._to_copy(x, dtype=type)

    return case(f"cast to {target} {layout}", setup, source, of, 1, 0, more=nbytes(target, of))


def _copy(rng: Draw) -> Case:
    dtype = rng.weigh({"float32": 70, "bfloat16": 15, "float16": 5, "int64": 10})
    kind = rng.weigh({"transposed": 20, "to_nhwc": 12, "to_nchw": 12, "heads": 18, "rows": 14, "clone": 16, "into_slice": 8})
    of = shape(rng)
    if kind in ("to_nhwc", "to_nchw"):
        side = rng.size(1, 128)
        of = (rng.batch(1, 128), rng.size(1, 1024), side, side)
    elif kind == "heads":
        of = (rng.batch(1, 64), rng.batch(8, 2048), rng.pick(1, 4, 8, 12, 16), rng.pick(32, 64, 80, 128))
    elif kind == "transposed":
        of = (rng.size(1, 16384), rng.size(1, 16384))
    elif kind in ("rows", "into_slice"):
        of = (rng.batch(16, 65536), rng.size(1, 1024))
    pitch = rng.size(1, 1024)

    def setup(make):
        aten, torch = make.aten, make.torch
        if kind in ("transposed", "heads"):
            x = make.new(of, dtype).transpose(*((0, 1) if kind == "transposed" else (1, 2)))
            return lambda: aten.clone(x, memory_format=torch.contiguous_format)
        if kind == "to_nhwc":
            x = make.new(of, dtype)
            return lambda: aten.clone(x, memory_format=torch.channels_last)
        if kind == "to_nchw":
            x = make.laid(of, dtype, "channels_last")
            return lambda: aten.clone(x, memory_format=torch.contiguous_format)
        if kind == "rows":
            x = make.new((of[0], of[1] + pitch), dtype)[:, : of[1]]
            return lambda: aten.clone(x, memory_format=torch.contiguous_format)
        if kind == "into_slice":
            x, y = make.new((of[0], of[1] + pitch), dtype)[:, pitch:], make.new(of, dtype)
            return lambda: aten.copy_(x, y)
        x = make.new(of, dtype)
        return lambda: aten.clone(x)

    return case(f"copy {kind}", setup, dtype, of, 1)


def _whole(rng: Draw) -> Case:
    name, of = rng.pick("remainder", "mul", "add", "floor", "compare", "mod tensor"), shape(rng)

    def setup(make):
        aten, x, y = make.aten, make.new(of, "int64"), make.new(of, "int64")
        return {
            "remainder": lambda: aten.remainder(x, 1000),
            "mul": lambda: aten.mul(x, y),
            "add": lambda: aten.add(x, y),
            "floor": lambda: aten.div(x, 7, rounding_mode="floor"),
            "compare": lambda: aten.eq(x, y),
            "mod tensor": lambda: aten.remainder(x, y),
        }[name]

    return case(f"{name} whole numbers", setup, "int64", of, 2)


def _random(rng: Draw) -> Case:
    name, of, dtype = rng.pick("arange", "uniform_", "normal_", "bernoulli_", "rand", "randn", "randint", "native_dropout"), shape(rng), rng.dtype(FLOATS)

    def setup(make):
        torch, aten = make.torch, make.aten
        x, count, type = make.new(of, dtype), math.prod(of), make.type(dtype)
        return {
            "arange": lambda: torch.arange(count, device=make.device),
            "uniform_": lambda: aten.uniform_(x),
            "normal_": lambda: aten.normal_(x),
            "bernoulli_": lambda: aten.bernoulli_(x, 0.5),
            "rand": lambda: torch.rand(of, dtype=type, device=make.device),
            "randn": lambda: torch.randn(of, dtype=type, device=make.device),
            "randint": lambda: torch.randint(0, 1000, of, device=make.device),
            "native_dropout": lambda: aten.native_dropout(x, 0.1, True),
        }[name]

    return case(name, setup, dtype, of, 1)


def _logic(rng: Draw) -> Case:
    name, of = rng.pick("logical_and", "bitwise_or", "logical_not", "bitwise_and"), shape(rng)

    def setup(make):
        x, y = make.new(of, "bool"), make.new(of, "bool")
        op = getattr(make.aten, name)
        return (lambda: op(x)) if name == "logical_not" else (lambda: op(x, y))

    return case(name, setup, "bool", of, 2)


# Weights of the kinds of cases.
KINDS = {
    _unary: 22, _inplace_unary: 5, _binary: 22, _scalar: 10, _inplace: 12, _three: 6, _compare: 5, _where: 3,
    _gradient: 14, _fill: 6, _cast: 7, _copy: 11, _whole: 5, _random: 5, _logic: 2,
}  # fmt: skip
