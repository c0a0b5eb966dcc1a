"""Optimizer steps over lists of tensors: the ops of PyTorch's optimizers, and the fused steps."""

from __future__ import annotations

from typing import List, Tuple

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw

# name: approximate number of lists that it reads or writes
FOREACH = {
    "add_ scalar": 2, "add_ list": 3, "mul_ scalar": 2, "mul_ list": 3, "addcmul_": 4, "addcdiv_": 4, "addcdiv_ scalars": 4, "sqrt": 2,
    "sqrt_": 2, "div_ scalar": 2, "div_ list": 3, "div_ scalars": 2, "lerp_": 3, "neg": 2, "norm": 1, "zero_": 1, "add_ steps": 2,
    "maximum_": 3, "copy_": 2,
}  # fmt: skip
FUSED = {"adam": 8, "adamw": 8, "sgd": 3, "sgd momentum": 5, "adagrad": 5}


def draw(rng: Draw) -> Case:
    shapes = parameters(rng)
    dtype = rng.weigh({"float32": 92, "bfloat16": 8})
    if rng.chance(0.36):
        name = rng.weigh({"adam": 40, "adamw": 25, "sgd": 8, "sgd momentum": 17, "adagrad": 10})
        return Case(f"fused {name}, {len(shapes)} tensors", lambda make: _fused(make, name, shapes, dtype), nbytes(dtype, *shapes) * FUSED[name])
    name = rng.pick(*FOREACH)
    if name == "add_ steps":  # the counters of steps
        shapes, dtype = [()] * len(shapes), "float32"
    moved = nbytes(dtype, *shapes) * FOREACH[name]
    return Case(f"foreach {name}, {len(shapes)} tensors", lambda make: _foreach(make, name, shapes, dtype), moved, seconds=1e-6)


def parameters(rng: Draw) -> List[Tuple[int, ...]]:
    """Shapes of weights and biases typical of models, 1 to 400 tensors."""
    count = rng.log(1, 400)
    largest = rng.log(64, 16e6)
    shapes: List[Tuple[int, ...]] = []
    total = 0
    while len(shapes) < count and total < 250e6:
        n = rng.log(1, largest)
        kind = rng.weigh({"weight": 45, "bias": 45, "convolution": 10})
        if kind == "bias":
            shapes.append((rng.size(1, min(4096, largest)),))
        elif kind == "weight":
            columns = rng.size(1, max(min(n, 4096), 1), nice=0.6)
            shapes.append((max(n // columns, 1), columns))
        else:
            channels = rng.pick(16, 32, 64, 128, 256)
            shapes.append((channels, max(n // (9 * channels), 1), 3, 3))
        size = 1
        for each in shapes[-1]:
            size *= each
        total += size
    return shapes


def _foreach(make, name, shapes, dtype) -> Op:
    a = [make.positive(each, dtype) for each in shapes]
    lists = FOREACH[name]
    b = [make.positive(each, dtype) for each in shapes] if lists >= 3 or name == "copy_" else []
    c = [make.positive(each, dtype) for each in shapes] if lists >= 4 else []
    scalars = [0.9 + 0.0001 * i for i in range(len(shapes))]
    base = name.split()[0]
    op = getattr(make.aten, "_foreach_" + base)
    # Overloads by name: overload resolution would inspect the tensors.
    run = {
        "add_ scalar": lambda: op.Scalar(a, 0.5),
        "add_ steps": lambda: op.Scalar(a, 1),
        "add_ list": lambda: op.List(a, b, alpha=0.5),
        "mul_ scalar": lambda: op.Scalar(a, 0.999),
        "mul_ list": lambda: op.List(a, b),
        "addcmul_": lambda: op.Scalar(a, b, c, 0.001),
        "addcdiv_": lambda: op.Scalar(a, b, c, -0.001),
        "addcdiv_ scalars": lambda: op.ScalarList(a, b, c, scalars),
        "div_ scalar": lambda: op.Scalar(a, 1.001),
        "div_ list": lambda: op.List(a, b),
        "div_ scalars": lambda: op.ScalarList(a, scalars),
        "lerp_": lambda: op.Scalar(a, b, 0.1),
        "norm": lambda: op.Scalar(a, 2),
        "maximum_": lambda: op.List(a, b),
        "copy_": lambda: op(a, b),
    }.get(name, lambda: op(a))
    args = {i: each for i, each in enumerate((a, b, c)) if each}
    return Op(run, lists={f"aten::_foreach_{base}": args})


def _fused(make, name, shapes, dtype) -> Op:
    torch = make.torch
    params, grads, first, second = ([make.positive(each, dtype) for each in shapes] for _ in range(4))
    steps = [torch.ones((), device=make.device) for _ in shapes]
    base = name.split()[0]
    op = getattr(torch.ops.aten, f"_fused_{base}_").default
    if base in ("adam", "adamw"):
        options = dict(lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
        args = (params, grads, first, second, [], steps)
    elif base == "adagrad":
        options = dict(lr=1e-3, lr_decay=0.0, weight_decay=0.0, eps=1e-10, maximize=False)
        args = (params, grads, second, steps)
    else:
        momentum = 0.9 if name == "sgd momentum" else 0.0
        options = dict(weight_decay=0.0, momentum=momentum, lr=1e-3, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)
        args = (params, grads, first if momentum else [])
    return Op(lambda: op(*args, **options), lists={f"aten::_fused_{base}_": dict(enumerate(args))})
