"""Pooling and resizing of images, forward and backward."""

from __future__ import annotations

import math

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families.softmax_norm_loss import either


def draw(rng: Draw) -> Case:
    name = rng.weigh({"max": 38, "avg": 24, "adaptive": 16, "nearest": 11, "bilinear": 11})
    dtype, back = rng.weigh({"float32": 75, "bfloat16": 13, "float16": 12}), rng.chance(0.5)
    side = rng.side(2, 224) if rng.chance(0.8) else rng.size(2, 224)
    of = (rng.batch(1, 128), rng.size(1, 2048, nice=0.7), side, side)
    kernel, stride = rng.pick(2, 3, 3, 5, 8), rng.pick(1, 2)
    padding = min(kernel // 2, rng.pick(0, 1))
    ceil, target, scale = rng.chance(0.2), rng.pick(1, 1, 6, 7), rng.pick(2, 2, 4)
    layout = "channels_last" if rng.chance(0.1) else "plain"
    if name in ("max", "avg") and side + 2 * padding < kernel:
        return None
    if name in ("nearest", "bilinear"):
        out = (of[0], of[1], side * scale, side * scale)
    elif name == "adaptive":
        out = (of[0], of[1], target, target)
    else:
        out = (of[0], of[1], *((side + 2 * padding - kernel) // stride + 1,) * 2)

    def setup(make):
        f, aten, x = make.torch.nn.functional, make.aten, make.laid(of, dtype, layout)
        forward = {
            "max": lambda: aten.max_pool2d_with_indices(x, kernel, stride, padding, 1, ceil),
            "avg": lambda: aten.avg_pool2d(x, kernel, stride, padding, ceil),
            "adaptive": lambda: f.adaptive_avg_pool2d(x, target),
            "nearest": lambda: f.interpolate(x, scale_factor=scale, mode="nearest"),
            "bilinear": lambda: f.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=ceil),
        }[name]
        return either(make, forward, [x], back)

    moved = nbytes(dtype, of, out) + (8.0 * math.prod(out) if name == "max" else 0)
    return Case(f"{name}{' backward' if back else ''} {list(of)} kernel {kernel} stride {stride} {dtype}", setup, moved, memory=2 * moved)
