"""Softmax along long rows that vector loads cannot read whole: it takes other kernels, which read each row three times."""

from __future__ import annotations

from steptime.measure.case import Case
from steptime.measure.draw import Draw
from steptime.measure.families.softmax_norm_loss import case

FLOATS = {"float32": 40, "bfloat16": 40, "float16": 20}
# Rows up to this length lie in a warp's registers.
SHORT = 1024


def draw(rng: Draw) -> Case:
    name, back, dtype = rng.pick("_softmax", "_softmax", "_log_softmax"), rng.chance(0.4), rng.dtype(FLOATS)
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
