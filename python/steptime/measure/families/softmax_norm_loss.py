"""Softmax, layer and group norms, losses and dropout, forward and backward."""

from __future__ import annotations

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.elementwise import shape

FLOATS = {"float32": 70, "bfloat16": 20, "float16": 10}
KINDS = {
    "softmax": 22, "layer_norm": 22, "rms_norm": 6, "group_norm": 7, "nll": 9, "cross_entropy": 6, "mse": 6, "bce": 8, "bce_logits": 7,
    "dropout": 5, "smooth_l1": 2,
}  # fmt: skip


def draw(rng: Draw) -> Case:
    return globals()["_" + rng.weigh(KINDS)](rng)


def rows(rng: Draw) -> int:
    return rng.batch(1, 65536) if rng.chance(0.7) else rng.size(1, 65536)


def case(what, setup, dtype, of, times, back):
    """`times`: how often the forward pass moves the tensor; the backward pass half as often again."""
    moved = nbytes(dtype, of) * times * (1.5 if back else 1)
    return Case(f"{what}{' backward' if back else ''} {list(of)} {dtype}", setup, moved, memory=2.5 * moved)


def either(make, forward, inputs, back):
    """The forward pass, or the backward pass of one forward pass run beforehand."""
    if not back:
        return forward
    for each in inputs:
        make.grad(each)
    out = forward()
    return make.backward(out[0] if isinstance(out, tuple) else out, inputs)


def _softmax(rng: Draw) -> Case:
    name, back, dtype = rng.pick("_softmax", "_softmax", "_log_softmax"), rng.chance(0.5), rng.dtype(FLOATS)
    of, dim = (rows(rng), rng.size(2, 50000)), 1
    if rng.chance(0.35):
        of, dim = (rng.batch(1, 128), rng.pick(1, 4, 8, 12, 16), rng.batch(4, 1024), rng.batch(4, 1024)), rng.weigh({3: 75, 1: 25})

    def setup(make):
        x = make.new(of, dtype)
        op = getattr(make.aten, name)
        if back:
            y, grad = op(x, dim, False), make.new(of, dtype)
            gradient = getattr(make.aten, name + "_backward_data")
            return lambda: gradient(grad, y, dim, x.dtype)
        return lambda: op(x, dim, False)

    return case(f"{name} {dim}", setup, dtype, of, 2, back)


def _layer_norm(rng: Draw) -> Case:
    of, back, dtype = (rows(rng), rng.size(1, 8192, nice=0.6)), rng.chance(0.5), rng.dtype(FLOATS)
    affine, bias = rng.chance(0.9), rng.chance(0.9)
    mask = [rng.chance(0.95), affine, affine and bias]

    def setup(make):
        x = make.new(of, dtype)
        weight = make.new(of[-1:], dtype) if affine else None
        shift = make.new(of[-1:], dtype) if affine and bias else None
        if not back:
            return lambda: make.aten.native_layer_norm(x, of[-1:], weight, shift, 1e-5)
        _, mean, scale = make.aten.native_layer_norm(x, of[-1:], weight, shift, 1e-5)
        grad = make.new(of, dtype)
        return lambda: make.aten.native_layer_norm_backward(grad, x, of[-1:], mean, scale, weight, shift, mask)

    return case("layer_norm", setup, dtype, of, 2, back)


def _rms_norm(rng: Draw) -> Case:
    of, back, dtype = (rows(rng), rng.size(1, 8192, nice=0.6)), rng.chance(0.4), rng.dtype(FLOATS)

    def setup(make):
        x, weight = make.new(of, dtype), make.new(of[-1:], dtype)
        return either(make, lambda: make.torch.nn.functional.rms_norm(x, of[-1:], weight), [x, weight], back)

    return case("rms_norm", setup, dtype, of, 2, back)


def _group_norm(rng: Draw) -> Case:
    groups, side, back, dtype = rng.pick(1, 4, 8, 16, 32), rng.size(1, 128), rng.chance(0.5), rng.dtype(FLOATS)
    of = (rng.batch(1, 128), groups * rng.size(1, 64), side, side)
    n, c, area = of[0], of[1], side * side

    def setup(make):
        x, weight, bias = make.new(of, dtype), make.new((c,), dtype), make.new((c,), dtype)
        if not back:
            return lambda: make.aten.native_group_norm(x, weight, bias, n, c, area, groups, 1e-5)
        _, mean, scale = make.aten.native_group_norm(x, weight, bias, n, c, area, groups, 1e-5)
        grad = make.new(of, dtype)
        return lambda: make.aten.native_group_norm_backward(grad, x, mean, scale, weight, n, c, area, groups, [True, True, True])

    return case(f"group_norm {groups}", setup, dtype, of, 2, back)


def _nll(rng: Draw) -> Case:
    of, back, reduction = (rows(rng), rng.size(2, 50000)), rng.chance(0.5), rng.weigh({1: 80, 2: 10, 0: 10})

    def setup(make):
        x, target = make.new(of), make.indices(of[:1], of[1])
        if not back:
            return lambda: make.aten.nll_loss_forward(x, target, None, reduction, -100)
        out, total = make.aten.nll_loss_forward(x, target, None, reduction, -100)
        grad = make.torch.ones_like(out)
        return lambda: make.aten.nll_loss_backward(grad, x, target, None, reduction, -100, total)

    moved = 40.0 * of[0] + (nbytes("float32", of) if back else 0)
    return Case(f"nll_loss{' backward' if back else ''} {list(of)}", setup, moved, memory=2 * nbytes("float32", of) + moved)


def _cross_entropy(rng: Draw) -> Case:
    of, back, dtype = (rows(rng), rng.size(2, 50000)), rng.chance(0.5), rng.dtype(FLOATS)

    def setup(make):
        x, target = make.new(of, dtype), make.indices(of[:1], of[1])
        return either(make, lambda: make.torch.nn.functional.cross_entropy(x, target), [x], back)

    return case("cross_entropy", setup, dtype, of, 3, back)


def _losses(rng: Draw):
    of = (rng.size(1, 1 << 20),) if rng.chance(0.5) else shape(rng)
    return (*of, 1) if len(of) == 1 and rng.chance(0.3) else of


def _mse(rng: Draw) -> Case:
    of, back, dtype, reduction = _losses(rng), rng.chance(0.5), rng.dtype(FLOATS), rng.weigh({1: 90, 0: 10})

    def setup(make):
        x, y = make.new(of, dtype), make.new(of, dtype)
        if not back:
            return lambda: make.aten.mse_loss(x, y, reduction)
        grad = make.new(() if reduction else of, dtype)
        return lambda: make.aten.mse_loss_backward(grad, x, y, reduction)

    return case("mse_loss", setup, dtype, of, 2, back)


def _bce(rng: Draw) -> Case:
    of, back, reduction = _losses(rng), rng.chance(0.5), rng.weigh({1: 90, 0: 10})

    def setup(make):
        x, y = make.positive(of), make.positive(of)
        if not back:
            return lambda: make.aten.binary_cross_entropy(x, y, None, reduction)
        grad = make.new(() if reduction else of)
        return lambda: make.aten.binary_cross_entropy_backward(grad, x, y, None, reduction)

    return case("binary_cross_entropy", setup, "float32", of, 2, back)


def _bce_logits(rng: Draw) -> Case:
    of, back, dtype = _losses(rng), rng.chance(0.5), rng.dtype(FLOATS)

    def setup(make):
        x, y = make.new(of, dtype), make.positive(of, dtype)
        return either(make, lambda: make.torch.nn.functional.binary_cross_entropy_with_logits(x, y), [x], back)

    return case("binary_cross_entropy_with_logits", setup, dtype, of, 6, back)


def _dropout(rng: Draw) -> Case:
    of, back, dtype, share = shape(rng), rng.chance(0.4), rng.dtype(FLOATS), rng.pick(0.1, 0.5, 0.2)

    def setup(make):
        x = make.new(of, dtype)
        if back:
            mask = make.new(of, "bool")
            return lambda: make.aten.native_dropout_backward(x, mask, 1 / (1 - share))
        return lambda: make.aten.native_dropout(x, share, True)

    return case("native_dropout", setup, dtype, of, 2.25, back)


def _smooth_l1(rng: Draw) -> Case:
    of, back, dtype = _losses(rng), rng.chance(0.5), rng.dtype(FLOATS)

    def setup(make):
        x, y = make.new(of, dtype), make.new(of, dtype)
        if not back:
            return lambda: make.aten.smooth_l1_loss(x, y, 1, 1.0)
        grad = make.new((), dtype)
        return lambda: make.aten.smooth_l1_loss_backward(grad, x, y, 1, 1.0)

    return case("smooth_l1_loss", setup, dtype, of, 2, back)
