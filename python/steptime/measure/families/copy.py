"""Copies between host and device and within the device, and plain fills."""

from __future__ import annotations

from steptime.measure.case import Case, Op
from steptime.measure.draw import Draw

HOST_RATE = 20e9  # rough bytes per second, to keep large copies short
KINDS = {"to_device": 42, "to_host": 22, "item": 8, "within": 16, "memset": 12}


def draw(rng: Draw) -> Case:
    kind, dtype = rng.weigh(KINDS), rng.weigh({"float32": 60, "int64": 30, "bfloat16": 10})
    size = {"float32": 4, "int64": 8, "bfloat16": 2}[dtype]
    count = max(rng.log(64, 256e6) // size, 1)
    count = rng.size(max(count // 2, 1), count)
    pinned = rng.chance(0.5)
    if kind == "item":
        return Case(f"item {dtype}", lambda make: _item(make, dtype), 64.0, seconds=2e-6)
    host = kind in ("to_device", "to_host")

    def setup(make):
        aten = make.aten
        if kind == "within":
            a, b = make.new((count,), dtype), make.new((count,), dtype)
            return Op(lambda: aten.copy_(a, b), devices={"aten::copy_": ["cuda", "cuda", ""]})
        if kind == "memset":
            a = make.new((count,), dtype)
            return Op(lambda: aten.zero_(a), devices={"aten::zero_": ["cuda"], "aten::fill_": ["cuda", ""]})
        there, here = make.new((count,), dtype), make.new((count,), dtype, device="cpu")
        if pinned and make.device != "cpu":
            here = here.pin_memory()
        place = "cpu:pinned" if pinned else "cpu"
        if kind == "to_device":
            return Op(lambda: aten.copy_(there, here, pinned), devices={"aten::copy_": ["cuda", place, ""]})
        return Op(lambda: aten.copy_(here, there, pinned), devices={"aten::copy_": [place, "cuda", ""]})

    moved = float(count * size)
    seconds = moved / HOST_RATE if host else 0.0
    where = (" pinned" if pinned else " pageable") if host else ""
    return Case(f"copy {kind}{where} {count} {dtype}", setup, 2 * moved, memory=2 * moved, seconds=seconds)


def _item(make, dtype) -> Op:
    x = make.new((), dtype)
    return Op(lambda: make.aten._local_scalar_dense(x), devices={"aten::_local_scalar_dense": ["cuda"]})
