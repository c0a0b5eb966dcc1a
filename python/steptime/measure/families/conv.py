"""Convolutions of networks for images and sequences, forward and backward."""

from __future__ import annotations

import math

from steptime.measure.case import LARGEST, Case, nbytes
from steptime.measure.draw import MOSTLY_FLOAT32, Draw

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
    # A float32 convolution may use TF32, but not by the switch of matrix products: `dtype` stays float32.
    return Case(name, setup, bytes=moved, flops=flops * (0.25 if dtype == "float32" else 1), dtype=dtype, memory=3 * moved)


# Rare shapes ---------------------------------------------------------------------------------------------------------


def convolution(rng: Draw, what, x_shape, w_shape, y_shape, stride, padding, dilation, groups, dtype, more=None) -> Case:
    """A convolution of these shapes, or its backward pass. more: the output padding of a transposed convolution."""
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


def sequences(rng: Draw) -> Case:
    """Convolutions over waves, words and events: often dilated, padded to the input's length or causal."""
    dtype, batch, length = rng.dtype(MOSTLY_FLOAT32), rng.batch(1, 128), rng.size(8, 32768, nice=0.7)
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


def odd_channels(rng: Draw) -> Case:
    """Channels that do not fill vectors, so that kernels that change the layout run around the convolution; and dilated convolutions."""
    dtype, side = rng.dtype(MOSTLY_FLOAT32), rng.side(4, 256)
    wide = lambda: rng.pick(1, 3, 5, 6, 7, 9, 10, 12, 17, 20, 27, 30, 33, 50, 63, 65, 100) if rng.chance(0.6) else rng.size(1, 512)  # noqa: E731
    cin, cout, batch, taps = wide(), wide(), rng.batch(1, 128), rng.weigh({1: 25, 3: 55, 5: 12, 7: 8})
    dilation = rng.pick(2, 2, 4, 6, 12) if taps > 1 and rng.chance(0.3) else 1
    stride, padding = rng.weigh({1: 80, 2: 20}), dilation * (taps // 2) if rng.chance(0.85) else 0
    out = (side + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
    x, w, y = (batch, cin, side, side), (cout, cin, taps, taps), (batch, cout, out, out)
    return convolution(rng, "odd conv", x, w, y, stride, padding, dilation, 1, dtype)


def transposed(rng: Draw) -> Case:
    """Transposed convolutions over sequences and images."""
    dtype, rank = rng.dtype(MOSTLY_FLOAT32), 1 if rng.chance(0.15) else 2
    side = rng.size(16, 8192, nice=0.7) if rank == 1 else rng.side(2, 128)
    cin, batch = some_channels(rng), rng.batch(1, 128)
    cout = max(cin // 2, 1) if rng.chance(0.6) else some_channels(rng)
    taps, stride, padding, more = rng.weigh({(2, 2, 0, 0): 45, (4, 2, 1, 0): 28, (3, 2, 1, 1): 17, (3, 1, 1, 0): 6, (4, 4, 0, 0): 4})
    out = (side - 1) * stride - 2 * padding + taps + more
    x, w, y = (batch, cin, *(side,) * rank), (cin, cout, *(taps,) * rank), (batch, cout, *(out,) * rank)
    return convolution(rng, "transposed conv", x, w, y, stride, padding, 1, 1, dtype, more)


def short_rows(rng: Draw) -> Case:
    """Few positions and many channels, as in compressed products of feature fields: cuDNN multiplies each row separately."""
    dtype, batch, length = rng.dtype(MOSTLY_FLOAT32), rng.batch(32, 8192), rng.size(1, 128, nice=0.7)
    cin, cout = rng.size(8, 4096, nice=0.5), rng.size(8, 512, nice=0.8)
    taps, flat = rng.weigh({1: 70, 3: 22, 5: 8}), rng.chance(0.6)
    x, w, y = (batch, cin, length), (cout, cin, taps), (batch, cout, length)
    if not flat:
        side = max(1, round(length**0.5))
        x, w, y = (batch, cin, side, side), (cout, cin, taps, taps), (batch, cout, side, side)
    return convolution(rng, "short rows", x, w, y, 1, taps // 2, 1, 1, dtype)


def generator(rng: Draw) -> Case:
    """Layers of GANs and decoders: filters that double or halve the sides; images of one or three channels at the end."""
    dtype, batch, side = rng.dtype(MOSTLY_FLOAT32), rng.batch(4, 512), 2 ** rng.pick(0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7)
    narrow, wide = rng.size(16, 512, nice=0.9), rng.size(32, 1024, nice=0.9)
    first = side == 1  # from a vector of any width
    few = rng.size(32, 1024, nice=0.9) if first else rng.pick(1, 3, 3, narrow, narrow, narrow, narrow, narrow)
    many = wide if first else max(narrow, wide)
    taps, stride, padding, more = (rng.pick(4, 4, 4, 7), 1, 0, 0) if first else rng.weigh({(4, 2, 1, 0): 70, (5, 2, 2, 1): 20, (3, 2, 1, 1): 10})
    large = taps if first else 2 * side
    if rng.chance(0.5):
        x, w, y = (batch, many, side, side), (many, few, taps, taps), (batch, few, large, large)
        return convolution(rng, "generator", x, w, y, stride, padding, 1, 1, dtype, more)
    x, w, y = (batch, few, large, large), (many, few, taps, taps), (batch, many, side, side)
    return convolution(rng, "discriminator", x, w, y, stride, padding, 1, 1, dtype)


def gradient_of_gradient(rng: Draw) -> Case:
    """A gradient of weights as a convolution: its filter is a gradient as large as an image, its channels are the batch."""
    dtype, batch, side = rng.dtype(MOSTLY_FLOAT32), rng.batch(4, 256), rng.pick(4, 8, 8, 14, 16, 16, 28, 32)
    cin, cout, (taps, stride, padding) = rng.size(1, 512, nice=0.8), rng.size(8, 512, nice=0.8), rng.pick((4, 2, 1), (3, 1, 1), (3, 2, 1))
    image = side * stride
    x, w, y = (cin, batch, image, image), (cout, batch, side, side), (cin, cout, taps, taps)
    out = image + 2 * padding - stride * (side - 1)
    return convolution(rng, "gradient of gradient", x, w, (*y[:2], out, out), 1, padding, stride, 1, dtype)


def patches(rng: Draw) -> Case:
    """First layer of transformers on images and spectrograms: filters without overlap, over one to four channels."""
    dtype, batch = rng.weigh({"float32": 35, "tf32": 15, "bfloat16": 25, "float16": 25}), rng.batch(1, 512)
    patch = rng.weigh({2: 8, 4: 26, 8: 16, 14: 10, 16: 34, 32: 6})
    cin, cout = rng.weigh({1: 15, 3: 70, 4: 15}), rng.size(32, 1280, nice=0.9)
    high = patch * rng.pick(2, 4, 7, 8, 12, 14, 14, 16, 16, 20, 24, 28, 32, 48, 56)
    wide = high if rng.chance(0.85) else patch * rng.pick(2, 4, 8, 16, 32)
    if batch * max(cin * high * wide, cout * (high // patch) * (wide // patch)) > LARGEST:
        return None
    x, w, y = (batch, cin, high, wide), (cout, cin, patch, patch), (batch, cout, high // patch, wide // patch)
    return convolution(rng, "patches", x, w, y, patch, 0, 1, 1, dtype)
