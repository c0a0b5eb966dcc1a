"""Softmax, layer and group norms, losses and dropout, forward and backward."""

from __future__ import annotations

from steptime.measure.case import LARGEST, Case, nbytes
from steptime.measure.draw import MOSTLY_FLOAT32, OFTEN_HALF, Draw
from steptime.measure.families.elementwise import shape

FLOATS = {"float32": 70, "bfloat16": 20, "float16": 10}
# Rows up to this length are held in the registers of a warp.
SHORT = 1024


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def rows(rng: Draw) -> int:
    return rng.batch(1, 65536) if rng.chance(0.7) else rng.size(1, 65536)


def case(what, setup, dtype, of, times, back=False):
    """A case whose forward pass moves the tensor `times` times, and whose backward pass moves 1.5 times as much."""
    moved = nbytes(dtype, of) * times * (1.5 if back else 1)
    return Case(f"{what}{' backward' if back else ''} {list(of)} {dtype}", setup, moved, memory=2.5 * moved)


def either(make, forward, inputs, back):
    """The forward pass, or the backward pass of a forward pass that is run now."""
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


# Rare shapes ---------------------------------------------------------------------------------------------------------


def narrow_layer_norm(rng: Draw) -> Case:
    """Layer norm over many narrow rows: sequences of small vectors."""
    of, back, dtype = (rng.log(64, 1 << 20), rng.size(8, 1024, nice=0.8)), rng.chance(0.6), rng.dtype(MOSTLY_FLOAT32)
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


def softmax_across(rng: Draw) -> Case:
    """Softmax over a dimension that is not the last, and over a short last one."""
    name, back, dtype = rng.pick("_softmax", "_log_softmax", "_log_softmax"), rng.chance(0.5), rng.dtype(MOSTLY_FLOAT32)
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


def classes_first(rng: Draw) -> Case:
    """Softmax over many classes that precede the positions of a sequence: each thread processes a column."""
    name, back, dtype = rng.pick("_softmax", "_log_softmax", "_log_softmax"), rng.chance(0.5), rng.dtype(OFTEN_HALF)
    of = (rng.batch(1, 128), rng.size(64, 65536, nice=0.5), rng.size(2, 4096, nice=0.6))
    if of[0] * of[1] * of[2] > LARGEST:
        return None

    def setup(make):
        x, op = make.new(of, dtype), getattr(make.aten, name)
        if not back:
            return lambda: op(x, 1, False)
        y, grad, gradient = op(x, 1, False), make.new(of, dtype), getattr(make.aten, name + "_backward_data")
        return lambda: gradient(grad, y, 1, x.dtype)

    return case(f"{name} over classes first", setup, dtype, of, 2, back)


def long_rows(rng: Draw) -> Case:
    """Softmax along long rows that vector loads cannot read whole: it uses other kernels, which read each row three times."""
    name, back, dtype = rng.pick("_softmax", "_softmax", "_log_softmax"), rng.chance(0.4), rng.dtype({"float32": 40, "bfloat16": 40, "float16": 20})
    length = int(rng.log(SHORT + 1, 24000))
    if length % (4 if dtype == "float32" else 8) == 0:
        length += 1
    most = max(1.0, 4e8 / length)  # elements
    of = (int(rng.log(1, most)), length)

    def setup(make):
        x = make.new(of, dtype)
        op = getattr(make.aten, name)
        if back:
            y, grad = op(x, 1, False), make.new(of, dtype)
            gradient = getattr(make.aten, name + "_backward_data")
            return lambda: gradient(grad, y, 1, x.dtype)
        return lambda: op(x, 1, False)

    return case(name, setup, dtype, of, 2, back)


def group_norm_of_maps(rng: Draw) -> Case:
    """Group norm of images and sequences."""
    groups, back, dtype = rng.pick(1, 2, 4, 8, 16, 32, 32), rng.chance(0.6), rng.dtype(MOSTLY_FLOAT32)
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


def nll_of_positions(rng: Draw) -> Case:
    """Loss of every position of a sequence or image."""
    classes, back = rng.size(2, 512), rng.chance(0.5)
    side = rng.side(2, 128)
    of = (rng.batch(1, 64), classes, side, side)

    def setup(make):
        x, target = make.new(of), make.indices((of[0], *of[2:]), classes)
        return either(make, lambda: make.torch.nn.functional.nll_loss(x, target), [x], back)

    return case("nll_loss2d", setup, "float32", of, 1, back)


def dropout_backward(rng: Draw) -> Case:
    """Backward pass of dropout."""
    of, dtype = (rng.log(64, 1 << 17), rng.size(8, 4096, nice=0.8)), rng.dtype(MOSTLY_FLOAT32)

    def setup(make):
        x, mask = make.new(of, dtype), make.new(of, "bool")
        return lambda: make.aten.native_dropout_backward(x, mask, 1.25)

    return case("dropout backward", setup, dtype, of, 2.25)


# Weights of the kinds of cases.
KINDS = {
    _softmax: 22, _layer_norm: 22, _rms_norm: 6, _group_norm: 7, _nll: 9, _cross_entropy: 6, _mse: 6, _bce: 8, _bce_logits: 7,
    _dropout: 5, _smooth_l1: 2,
}  # fmt: skip
