"""Those of the kinds of `layout` and `corners` that are hardest to learn: they need the most cases."""

from __future__ import annotations

from steptime.measure.case import Case
from steptime.measure.draw import Draw
from steptime.measure.families import corners, layout

LAYOUT = {
    "conv": 20, "depthwise": 10, "patches": 3, "reduce": 6, "pool": 2, "upsample": 2, "group_norm": 1,
}  # fmt: skip
CORNERS = {
    "conv1d": 15, "odd_conv": 10, "transposed_conv": 11, "group_norm": 4, "softmax": 4, "attention": 6, "gather": 4, "bias_gradient": 3,
    "nll": 2, "bmm": 2, "cat": 2, "usual": 10,
}  # fmt: skip
KINDS = {**{(layout, name): weight for name, weight in LAYOUT.items()}, **{(corners, name): weight for name, weight in CORNERS.items()}}


def draw(rng: Draw) -> Case:
    module, name = rng.weigh(KINDS)
    return getattr(module, "_" + name)(rng)
