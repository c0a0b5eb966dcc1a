"""Batch norm, training and evaluation, forward and backward."""

from __future__ import annotations

import math

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw


def draw(rng: Draw) -> Case:
    rank, dtype = rng.weigh({4: 72, 2: 20, 3: 8}), rng.weigh({"float32": 78, "bfloat16": 12, "float16": 10})
    mode = rng.weigh({"backward": 46, "training": 42, "evaluation": 12})
    channels = rng.size(1, 4096, nice=0.6) if rank == 2 else rng.size(1, 2048, nice=0.7, awkward=0.1)
    if rank == 4:
        side = rng.side(1, 224) if rng.chance(0.8) else rng.size(1, 224)
        of = (rng.batch(1, 256), channels, side, side)
    elif rank == 3:
        of = (rng.batch(1, 1024), channels, rng.size(1, 512))
    else:
        of = (rng.batch(2, 65536), channels)
    if math.prod(of) == channels and mode != "evaluation":
        return None  # one value a channel has no variance
    layout = "channels_last" if rank == 4 and rng.chance(0.15) else "plain"
    mixed = dtype != "float32" and rng.chance(0.8)  # as under autocast: 32-bit parameters
    affine = rng.chance(0.95)

    def setup(make):
        norm = make.torch.nn.functional.batch_norm
        own = "float32" if mixed else dtype
        x = make.laid(of, dtype, layout)
        weight, bias = (make.new((channels,), own), make.new((channels,), own)) if affine else (None, None)
        mean, variance = make.new((channels,), own), make.positive((channels,), own)
        if mode != "backward":
            return lambda: norm(x, mean, variance, weight, bias, mode == "training", 0.1, 1e-5)
        inputs = [make.grad(each) for each in (x, weight, bias) if each is not None]
        out = norm(x, mean, variance, weight, bias, True, 0.1, 1e-5)
        return make.backward(out, inputs, make.laid(of, dtype, layout))

    moved = nbytes(dtype, of) * {"backward": 5, "training": 3, "evaluation": 2}[mode]
    return Case(f"batch_norm {mode} {list(of)} {dtype} {layout}", setup, moved)
