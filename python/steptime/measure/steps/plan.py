"""Which kind of model has which number, and how large models may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterator, Tuple

from steptime.measure.draw import Draw

# The share of each kind.
WEIGHTS = {"recommender": 35, "cnn": 30, "transformer": 20, "mixed": 15}


@dataclass(frozen=True)
class Limits:
    """How large a model may be.

    low, high: bytes of its typical activation, drawn log-uniform.
    rows: of a table; tables: bytes of all tables; lookups: in a step.
    width: of a layer; image: pixels on a side; seq: tokens in a sequence; vocab: tokens there are.
    batch: samples; flops: multiply-adds, times two, of a forward pass.
    """

    low: float = 4e5
    high: float = 3e8
    rows: int = 1_000_000
    tables: float = 8e9
    lookups: int = 6_000_000
    width: int = 1024
    image: int = 256
    seq: int = 512
    vocab: int = 50_000
    batch: int = 8192
    flops: float = 5e11

    def activation(self, rng: Draw) -> float:
        """Elements (of 4 bytes) of a typical activation."""
        return rng.real(self.low, self.high) / 4

    def size(self, rng: Draw, low: int, high: int) -> int:
        """A layer's width: a multiple of 8 more often than not, within the limit."""
        return rng.size(min(low, self.width), min(high, self.width), nice=0.8, awkward=0.05)

    def samples(self, rng: Draw, elements: float, each: float, low: int, high: int) -> int:
        """A batch size at which `each` elements a sample make about `elements`: mostly a power of two."""
        low, high = min(low, self.batch), min(high, self.batch)
        value = min(max(elements / max(each, 1), low), high)
        if rng.chance(0.75):
            value = 2 ** round(math.log2(value))
        return int(min(max(value, low), high))


def kinds() -> Iterator[Tuple[int, str]]:
    """Number and kind of one model after the other, the kinds taking turns by their weights."""
    total = sum(WEIGHTS.values())
    owed = dict.fromkeys(WEIGHTS, 0.0)
    index = 0
    while True:
        for kind, weight in WEIGHTS.items():
            owed[kind] += weight / total
        kind = max(owed, key=lambda each: owed[each])
        owed[kind] -= 1
        yield index, kind
        index += 1
