"""Recurrent layers and cells, forward and backward."""

from __future__ import annotations

from steptime.measure.case import Case, Op, nbytes
from steptime.measure.draw import Draw


def draw(rng: Draw) -> Case:
    kind = rng.weigh({"LSTM": 45, "GRU": 30, "LSTMCell": 15, "GRUCell": 10})
    return layer(rng, kind, rng.batch(1, 512), rng.size(8, 1024, nice=0.7), rng.size(8, 1024, nice=0.8))


def layer(rng: Draw, kind: str, batch: int, inputs: int, hidden: int) -> Case:
    """A layer of this kind and these sizes; the rest is drawn."""
    length, layers = rng.size(2, 128), rng.weigh({1: 60, 2: 30, 3: 10})
    both, first = rng.chance(0.2), rng.chance(0.5)
    dtype, back = rng.weigh({"float32": 75, "float16": 12, "bfloat16": 13}), rng.chance(0.5)
    cell = kind.endswith("Cell")
    gates = 4 if kind.startswith("LSTM") else 3
    if cell:
        length, layers, both = 1, 1, False

    def setup(make):
        torch = make.torch
        options = {} if cell else dict(num_layers=layers, bidirectional=both, batch_first=first)
        layer = getattr(torch.nn, kind)(inputs, hidden, device=make.device, dtype=make.type(dtype), **options)
        shape = (batch, inputs) if cell else ((batch, length, inputs) if first else (length, batch, inputs))
        x = make.grad(make.new(shape, dtype))
        held = {}

        def forward():
            out = layer(x)
            return out[0] if isinstance(out, tuple) else out

        if not back:
            return forward
        wanted, grad = [x, *layer.parameters()], torch.randn_like(forward())

        def before():
            held["out"] = forward()

        return Op(lambda: torch.autograd.grad([held.pop("out")], wanted, [grad]), before)

    ways = 2 if both else 1
    weights = nbytes(dtype, (gates * hidden, inputs + hidden)) * layers * ways
    flops = 2.0 * batch * length * gates * hidden * (inputs + hidden) * layers * ways * (2 if back else 1)
    moved = weights + nbytes(dtype, (batch, length, inputs + 2 * gates * hidden)) * layers * ways
    name = f"{kind}{' backward' if back else ''} {batch} x {length} x {inputs} to {hidden}, {layers} layers {dtype}"
    return Case(name, setup, moved, flops=flops, dtype=dtype, memory=3 * moved, seconds=length * layers * 10e-6)


def large_batches(rng: Draw) -> Case:
    """Recurrent layers of large batches."""
    return layer(rng, rng.weigh({"LSTM": 50, "GRU": 50}), rng.batch(64, 4096), rng.size(8, 512, nice=0.8), rng.size(8, 512, nice=0.9))
