"""Convolutions: forward and backward, as networks for images and sequences have them."""

from __future__ import annotations

import math

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw

KERNELS = {
    (3, 3): 38, (1, 1): 32, (5, 5): 6, (7, 7): 5, (1, 7): 3, (7, 1): 3, (1, 3): 3, (3, 1): 3, (11, 11): 1, (2, 2): 2,
}  # fmt: skip
MASKS = {(True, True, False): 8, (False, True, False): 46, (True, False, False): 42, (True, True, True): 4}


def channels(rng: Draw) -> int:
    if rng.chance(0.12):
        return rng.size(1, 160, nice=0, awkward=0.8)
    if rng.chance(0.4):
        return 2 ** round(rng.uniform(4, 11))
    step = rng.pick(8, 16, 16, 32, 64)
    return max(round(rng.log(16, 2048) / step), 1) * step


def extent(rng: Draw) -> int:
    return rng.side(2, 384) if rng.chance(0.85) else rng.size(4, 384)


def draw(rng: Draw) -> Case:
    dtype = rng.weigh({"float32": 80, "bfloat16": 10, "float16": 10})
    length = rng.chance(0.05)  # a convolution over a sequence
    batch = rng.batch(1, 128) if rng.chance(0.8) else rng.size(1, 128)
    first = not length and rng.chance(0.08)  # a network's first layer
    cin = 3 if first else channels(rng)
    cout = channels(rng) if rng.chance(0.7) or first else cin
    kernel = rng.weigh(KERNELS)
    size = (extent(rng),) * 2 if rng.chance(0.9) else (extent(rng), extent(rng))
    stride = rng.weigh({1: 74, 2: 23, 4: 3})
    if first:
        kernel, stride, size = rng.pick((3, 3), (7, 7), (11, 11), (4, 4)), rng.pick(1, 2, 4), (rng.size(32, 384, nice=0.7),) * 2
    form = rng.weigh({"plain": 90, "depthwise": 6, "grouped": 4})
    groups = 1
    if form == "depthwise" and not first:
        groups = cout = cin
    elif form == "grouped" and not first:
        groups = rng.pick(2, 4, 8, 16, 32)
        cin, cout = (math.ceil(each / groups) * groups for each in (cin, cout))
    if length:
        kernel, size = (rng.pick(1, 2, 3, 3, 5, 7, 9),), (rng.size(8, 4096),)
    padding = tuple(each // 2 for each in kernel) if rng.chance(0.8) else (0,) * len(kernel)
    out = tuple((n + 2 * p - k) // stride + 1 for n, p, k in zip(size, padding, kernel))
    if min(out) < 1:
        return None
    last = not length and rng.chance(0.15)
    bias = rng.chance(0.2)
    direct = rng.chance(0.3)
    mask = rng.weigh(MASKS) if not first else (False, True, bias)
    back = rng.chance(0.64)

    x_shape, w_shape, y_shape = (batch, cin, *size), (cout, cin // groups, *kernel), (batch, cout, *out)
    strides, ones, zeros = (stride,) * len(kernel), (1,) * len(kernel), (0,) * len(kernel)
    layout = "channels_last" if last else "plain"

    def setup(make):
        x, w = make.laid(x_shape, dtype, layout), make.laid(w_shape, dtype, layout)
        if back:
            grad = make.laid(y_shape, dtype, layout)
            return lambda: make.aten.convolution_backward(
                grad, x, w, [cout] if mask[2] else None, strides, padding, ones, False, zeros, groups, mask
            )
        b = make.new((cout,), dtype) if bias else None
        if direct and not bias and form != "depthwise" and not length and make.device != "cpu":
            return lambda: make.aten.cudnn_convolution(x, w, padding, strides, ones, groups, False, False, True)
        return lambda: make.aten.convolution(x, w, b, strides, padding, ones, False, zeros, groups)

    passes = (mask[0] + mask[1] or 1) if back else 1
    flops = 2.0 * math.prod(y_shape) * (cin // groups) * math.prod(kernel) * passes
    moved = nbytes(dtype, x_shape, w_shape, y_shape) * (1 + 0.5 * (passes - 1))
    name = f"conv{len(kernel)}d {'backward ' if back else ''}{x_shape} {w_shape} stride {stride}"
    # A float32 convolution may use TF32, but the case is not one of "matrix products may": that is another switch.
    return Case(name, setup, bytes=moved, flops=flops * (0.25 if dtype == "float32" else 1), dtype=dtype, memory=3 * moved)
