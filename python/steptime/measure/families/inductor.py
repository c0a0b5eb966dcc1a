"""Kernels of torch.compile: pointwise, reductions, moves and foreach, fused at random.

A case is one compiled function of one large region or of several small independent ones. Each region becomes one or two
kernels; times of its library calls (matrix products) are not kept.
"""

from __future__ import annotations

import math
import types
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch
from torch.nn import functional

from steptime.measure.case import ITEM, Case
from steptime.measure.draw import Draw

DTYPES = {"float32": 62, "bfloat16": 32, "float16": 6}
UNARY = ("relu", "relu", "sigmoid", "tanh", "gelu", "silu", "exp", "neg", "rsqrt", "abs", "square", "half")
BINARY = ("add", "add", "add", "mul", "mul", "sub", "maximum", "div", "mask")
SMALL, LARGE = 1e6, 4e7  # largest number of elements of a region among others, and alone
SECONDS = 1.2  # approximate time to compile a case


@dataclass(frozen=True)
class Region:
    """A part of a compiled function: a maker of its input tensors, and the function of them."""

    what: str
    moved: float  # bytes, approximately
    tensors: Callable[[Any], List[Any]]
    run: Callable[..., Any]


def draw(rng: Draw) -> Case:
    alone = rng.chance(0.3)
    regions = [_region(rng, LARGE if alone else SMALL) for _ in range(1 if alone else rng.pick(5, 6, 8, 10))]

    def setup(make):
        given = [region.tensors(make) for region in regions]
        runs = [region.run for region in regions]
        return compiled(runs, given)

    moved = sum(region.moved for region in regions)
    what = "; ".join(region.what for region in regions)
    return Case(what, setup, moved, memory=3 * moved + 1e6, ops="triton_", prepare=SECONDS)


def compiled(runs: Sequence[Callable[..., Any]], given: List[List[Any]]) -> Callable[[], Any]:
    """A function that calls all regions as one compiled function."""

    def step(given):
        return [run(*tensors) for run, tensors in zip(runs, given)]

    # Compiled code is cached by code object, so each case gets its own one.
    own = types.FunctionType(step.__code__.replace(), step.__globals__, "step", None, step.__closure__)
    function = torch.compile(own, dynamic=False)

    def call():
        with torch.no_grad():
            return function(given)

    return call


def _region(rng: Draw, most: float) -> Region:
    return rng.weigh(KINDS)(rng, most)


# Shapes -------------------------------------------------------------------------------------------------------------


def shape(rng: Draw, most: float) -> Tuple[int, ...]:
    """A shape of up to `most` elements in one to four dimensions."""
    count = rng.log(256, most)
    rank = rng.weigh({1: 10, 2: 55, 3: 20, 4: 15})
    if rank == 1:
        return (rng.size(max(count // 2, 1), count),)
    if rank == 4:
        side = max(int(math.sqrt(rng.log(1, max(count // 64, 1)))), 1)
        channels = rng.size(1, max(min(count // (side * side), 1024), 1))
        return (max(count // (channels * side * side), 1), channels, side, side)
    inner = [rng.size(1, max(min(count, 4096), 1))]
    if rank == 3:
        inner.insert(0, rng.size(1, max(min(count // inner[-1], 512), 1)))
    return (max(count // math.prod(inner), 1), *inner)


def matrix(rng: Draw, most: float) -> Tuple[int, int]:
    """Rows and columns, of up to `most` elements."""
    columns = rng.size(2, min(int(most // 4), 32768), nice=0.6)
    return max(rng.batch(1, max(int(most // columns), 1)), 1), columns


def other(rng: Draw, of: Tuple[int, ...]) -> Tuple[int, ...]:
    """A shape that broadcasts to `of`; mostly `of` itself."""
    kind = rng.weigh({"same": 60, "last": 25, "rows": 10, "one": 5})
    if kind == "last" or (kind == "rows" and len(of) < 2):
        return (1, of[1], 1, 1) if len(of) == 4 else of[-1:]
    return {"same": of, "rows": (*of[:-1], 1), "one": ()}[kind]


def moved(dtype: str, *shapes: Sequence[int]) -> float:
    return float(ITEM[dtype] * sum(math.prod(each) for each in shapes))


# Steps of a chain ---------------------------------------------------------------------------------------------------


def one(name: str) -> Callable[[Any], Any]:
    """A function of one tensor."""
    known: Dict[str, Callable[[Any], Any]] = {
        "gelu": functional.gelu,
        "silu": functional.silu,
        "rsqrt": lambda x: torch.rsqrt(x * x + 1e-6),
        "half": lambda x: 0.5 * x + 1.0,
    }
    return known.get(name) or getattr(torch, name)


def two(name: str) -> Callable[[Any, Any], Any]:
    """A function of two tensors."""
    known: Dict[str, Callable[[Any, Any], Any]] = {
        "div": lambda x, y: x / (y * y + 1.0),
        "mask": lambda x, y: torch.where(y > 0, x, 0.0),
    }
    return known.get(name) or getattr(torch, name)


def steps(rng: Draw, others: int, most: int) -> List[Tuple[str, int]]:
    """Names of steps, each with the index of its second tensor, or -1; every other tensor is used once."""
    chosen = [(rng.pick(*BINARY), at) for at in range(others)]
    chosen += [(rng.pick(*UNARY), -1) for _ in range(rng.log(1, most) - (1 if others else 0))]
    rng.shuffle(chosen)
    return chosen


def apply(chain: Sequence[Tuple[str, int]]) -> Callable[..., Any]:
    """The chain as a function of a tensor and the others."""
    made = [(one(name), -1) if at < 0 else (two(name), at) for name, at in chain]

    def run(x, others):
        for function, at in made:
            x = function(x) if at < 0 else function(x, others[at])
        return x

    return run


# Regions ------------------------------------------------------------------------------------------------------------


def _chain(rng: Draw, most: float) -> Region:
    """Pointwise chain; sometimes a mask or an intermediate value is also returned, or the result has another type."""
    of, dtype = shape(rng, most), rng.dtype(DTYPES)
    shapes = [other(rng, of) for _ in range(rng.pick(0, 1, 1, 2, 2, 3))]
    layout = rng.weigh({"plain": 80, "transposed": 8, "sliced": 7, "channels_last": 5})
    chain = steps(rng, len(shapes), 5)
    kept = rng.weigh({"": 65, "mask": 15, "middle": 10, "cast": 10})

    def tensors(make):
        return [make.laid(of, dtype, layout), *(make.new(each, dtype) for each in shapes)]

    def run(x, *others):
        y = apply(chain)(x, others)
        if kept == "mask":
            return y, y > 0
        if kept == "middle":
            return y, torch.tanh(y) * x
        return y.to(torch.bfloat16 if dtype == "float32" else torch.float32) if kept == "cast" else y

    return Region(f"chain of {len(chain)} {layout} {kept} {list(of)} {dtype}", moved(dtype, of, of, *shapes), tensors, run)


def _linear(rng: Draw, most: float) -> Region:
    """A matrix product of a library, and the pointwise ops that are fused after it."""
    (rows, columns), dtype = matrix(rng, most), rng.dtype(DTYPES)
    inner, act = rng.size(8, 256), rng.pick("relu", "gelu", "silu", "sigmoid")
    ways = rng.pick("act", "act", "mask", "around")

    def tensors(make):
        shapes = ((rows, inner), (inner, columns), (columns,), (rows, columns))
        return [*(make.new(each, dtype) for each in shapes)]

    def run(x, weight, bias, around):
        y = x @ weight + bias
        if ways == "around":
            return one(act)(y) + around
        y = one(act)(y)
        return (y, y <= 0) if ways == "mask" else y

    return Region(f"linear {act} {ways} {[rows, columns]} {dtype}", moved(dtype, (rows, columns)) * 3, tensors, run)


def _reduce(rng: Draw, most: float) -> Region:
    """A reduction of a chain, over rows, columns, a middle dimension or all."""
    (rows, columns), dtype = matrix(rng, most), rng.dtype(DTYPES)
    name, dim = rng.pick("sum", "sum", "sum", "mean", "amax", "var"), rng.weigh({"last": 40, "first": 35, "middle": 10, "all": 15})
    of = (rows, columns)
    if dim == "middle":
        inner = rng.pick(4, 8, 16, 64, 128)
        of = (max(rows // inner, 1), inner, columns)
    shapes = [other(rng, of) for _ in range(rng.pick(0, 0, 1, 2))]
    chain = steps(rng, len(shapes), 3)
    kept, wide = rng.chance(0.3), rng.chance(0.5)
    dims = {"last": len(of) - 1, "first": 0, "middle": 1, "all": tuple(range(len(of)))}[dim]

    def tensors(make):
        return [*(make.new(each, dtype) for each in (of, *shapes))]

    def run(x, *others):
        y = apply(chain)(x, others)
        made = getattr(torch, name)(y.float() if wide else y, dim=dims)
        return (made, y) if kept else made

    return Region(f"{name} {dim} {list(of)} {dtype}", moved(dtype, of, *shapes) + kept * moved(dtype, of), tensors, run)


def _norm(rng: Draw, most: float) -> Region:
    """Norms, softmax and losses, which reduce along rows."""
    of, dtype = matrix(rng, most), rng.dtype(DTYPES)
    name, around = rng.pick("layer", "layer", "rms", "softmax", "log_softmax", "loss"), rng.chance(0.4)

    def tensors(make):
        labels = make.indices((of[0],), of[1])
        return [*(make.new(each, dtype) for each in (of, of, of[1:], of[1:])), labels]

    def run(x, y, weight, bias, labels):
        x = x + y if around else x
        if name == "layer":
            return functional.layer_norm(x, x.shape[-1:], weight, bias), x
        if name == "rms":
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight
        if name == "loss":
            return functional.cross_entropy(x, labels)
        return getattr(torch, name)(x, dim=-1)

    return Region(f"{name} {list(of)} {dtype}", moved(dtype, of) * (3 if around else 2), tensors, run)


def _gradient(rng: Draw, most: float) -> Region:
    """A gradient through an activation or a norm, and the bias gradient: the sum over rows."""
    of, dtype = matrix(rng, most), rng.dtype(DTYPES)
    name, summed = rng.pick("relu", "relu", "sigmoid", "gelu", "layer"), rng.chance(0.6)

    def tensors(make):
        return [*(make.new(each, dtype) for each in (of, of, of[1:]))]

    def run(grad, y, weight):
        if name == "relu":
            made = torch.where(y <= 0, 0.0, grad)
        elif name == "sigmoid":
            made = grad * y * (1 - y)
        elif name == "gelu":
            made = torch.ops.aten.gelu_backward(grad, y)
        else:
            wide = grad.float() * weight
            made = (wide - wide.mean(-1, keepdim=True) - y * (wide * y).mean(-1, keepdim=True)).to(grad.dtype)
        return (made, made.sum(0)) if summed else made

    return Region(f"gradient of {name} {list(of)} {dtype}", moved(dtype, of) * 3, tensors, run)


def _move(rng: Draw, most: float) -> Region:
    """Concatenations, stacks, transposes and padding, with pointwise ops."""
    (rows, columns), dtype = matrix(rng, most), rng.dtype(DTYPES)
    kind, count = rng.weigh({"cat": 35, "stack": 20, "transpose": 25, "pad": 10, "split": 10}), rng.pick(2, 3, 4, 8)
    columns = max(columns // count, 1)
    inner = rng.pick(1, 2, 4, 8, 16, 32)
    outer = max(rows // inner, 1)

    def tensors(make):
        if kind == "transpose":
            return [make.new((outer, inner, columns), dtype), make.new((outer, columns, inner), dtype)]
        if kind in ("pad", "split"):
            return [make.new((rows, columns * 2), dtype)]
        return [*(make.new((rows, columns), dtype) for _ in range(count))]

    def run(x, *others):
        if kind == "transpose":
            return (x.transpose(1, 2) + others[0]).contiguous()
        if kind == "pad":
            return functional.pad(torch.relu(x), (1, 3))
        if kind == "split":
            half = x.shape[1] // 2
            return functional.silu(x[:, :half]) * x[:, half:]
        if kind == "stack":
            return torch.stack([torch.relu(each) for each in (x, *others)], dim=1)
        return torch.cat([x, *(2 * each for each in others)], dim=1)

    return Region(f"{kind} {[rows, columns]} {dtype}", moved(dtype, (rows, columns)) * 2 * count, tensors, run)


def _rows(rng: Draw, most: float) -> Region:
    """Rows of a table by index: read, read and summed, or accumulated."""
    rows, columns = rng.log(64, max(most / 8, 65)), rng.pick(8, 16, 32, 64, 128, 256)
    bags, many = max(int(min(rows, most // columns)) // 4, 1), rng.pick(1, 1, 4, 10)
    dtype, kind = rng.dtype(DTYPES), rng.weigh({"take": 45, "sum": 25, "put": 30})
    table = max(int(rng.log(16, 4 * rows) if most > SMALL else rng.log(16, rows)), 1)

    def tensors(make):
        at = make.indices((bags, many), table)
        return [make.new((table, columns), dtype), at, make.new((bags, many, columns), dtype)]

    def run(weight, at, values):
        if kind == "take":
            return weight[at] + 1.0
        if kind == "sum":
            return weight[at].sum(1)
        return torch.zeros_like(weight).index_put((at,), values, accumulate=True)

    return Region(f"{kind} {[bags, many, columns]} of {table} {dtype}", moved(dtype, (bags, many, columns)) * 2, tensors, run)


def _foreach(rng: Draw, most: float) -> Region:
    """An optimizer's step over a list of tensors."""
    count, name = rng.pick(2, 4, 8, 16, 32), rng.pick("sgd", "momentum", "adam")
    shapes = [shape(rng, max(most / count, 300)) for _ in range(count)]
    lists = {"sgd": 2, "momentum": 3, "adam": 4}[name]

    def tensors(make):
        return [*(make.positive(each) for _ in range(lists) for each in shapes)]

    def run(*given):
        weights, grads = list(given[:count]), list(given[count : 2 * count])
        if name == "momentum":
            grads = torch._foreach_add(torch._foreach_mul(list(given[2 * count :]), 0.9), grads)
        if name == "adam":
            first, second = list(given[2 * count : 3 * count]), list(given[3 * count :])
            first = torch._foreach_lerp(first, grads, 0.1)
            second = torch._foreach_addcmul(torch._foreach_mul(second, 0.999), grads, grads, value=0.001)
            root = torch._foreach_add(torch._foreach_sqrt(second), 1e-8)
            return torch._foreach_addcdiv(weights, first, root, value=-0.001), first, second
        return torch._foreach_add(weights, grads, alpha=-0.01), grads

    return Region(f"foreach {name} of {count}", moved("float32", *shapes) * (lists + 1), tensors, run)


def _dropout(rng: Draw, most: float) -> Region:
    of, dtype, rate = shape(rng, most), rng.dtype(DTYPES), rng.pick(0.1, 0.2, 0.5)

    def tensors(make):
        return [make.new(of, dtype), make.new(of, dtype)]

    def run(x, y):
        return functional.dropout(x, rate) + y

    return Region(f"dropout {list(of)} {dtype}", moved(dtype, of) * 3, tensors, run)


# Weights of the kinds of cases.
KINDS = {_chain: 34, _linear: 8, _reduce: 22, _norm: 10, _gradient: 10, _move: 12, _rows: 6, _foreach: 6, _dropout: 4}
