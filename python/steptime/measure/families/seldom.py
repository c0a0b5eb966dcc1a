"""Calls of models that are seldom thought of: convolutions over short rows of large batches, of generators, inside gradients of gradients;
recurrent layers of large batches."""

from __future__ import annotations

from steptime.measure.case import Case
from steptime.measure.draw import Draw
from steptime.measure.families import rnn
from steptime.measure.families.corners import FLOATS, convolution

KINDS = {"short_rows": 36, "generator": 34, "gradient_of_gradient": 12, "recurrent": 18}


def draw(rng: Draw) -> Case:
    return globals()["_" + rng.weigh(KINDS)](rng)


def _short_rows(rng: Draw) -> Case:
    """Few positions and many channels, as where products of feature fields are compressed: cuDNN multiplies each row alone."""
    dtype, batch, length = rng.dtype(FLOATS), rng.batch(32, 8192), rng.size(1, 128, nice=0.7)
    cin, cout = rng.size(8, 4096, nice=0.5), rng.size(8, 512, nice=0.8)
    taps, flat = rng.weigh({1: 70, 3: 22, 5: 8}), rng.chance(0.6)
    x, w, y = (batch, cin, length), (cout, cin, taps), (batch, cout, length)
    if not flat:
        side = max(1, round(length**0.5))
        x, w, y = (batch, cin, side, side), (cout, cin, taps, taps), (batch, cout, side, side)
    return convolution(rng, "short rows", x, w, y, 1, taps // 2, 1, 1, dtype)


def _generator(rng: Draw) -> Case:
    """Of adversarial networks and decoders: sides doubled or halved by wide taps, images of three channels or one at the end."""
    dtype, batch, side = rng.dtype(FLOATS), rng.batch(4, 512), 2 ** rng.pick(0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7)
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


def _gradient_of_gradient(rng: Draw) -> Case:
    """A gradient of weights as a convolution: its filter is a gradient as large as an image, its channels are the batch."""
    dtype, batch, side = rng.dtype(FLOATS), rng.batch(4, 256), rng.pick(4, 8, 8, 14, 16, 16, 28, 32)
    cin, cout, (taps, stride, padding) = rng.size(1, 512, nice=0.8), rng.size(8, 512, nice=0.8), rng.pick((4, 2, 1), (3, 1, 1), (3, 2, 1))
    image = side * stride
    x, w, y = (cin, batch, image, image), (cout, batch, side, side), (cin, cout, taps, taps)
    out = image + 2 * padding - stride * (side - 1)
    return convolution(rng, "gradient of gradient", x, w, (*y[:2], out, out), 1, padding, stride, 1, dtype)


def _recurrent(rng: Draw) -> Case:
    return rnn.layer(rng, rng.weigh({"LSTM": 50, "GRU": 50}), rng.batch(64, 4096), rng.size(8, 512, nice=0.8), rng.size(8, 512, nice=0.9))
