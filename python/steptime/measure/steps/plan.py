"""Kinds of models by number, and limits on the size of models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterator, Tuple

from steptime.measure.draw import Draw

# Weights of the kinds.
WEIGHTS = {"recommender": 35, "cnn": 30, "transformer": 20, "mixed": 15}


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a model.

    low, high: bytes of its typical activation, drawn log-uniform.
    rows: rows of a table; tables: bytes of all tables; lookups: lookups of a step.
    width: width of a layer; image: pixels of a side; seq: tokens in a sequence; vocab: number of distinct tokens.
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
        """Random number of elements (of 4 bytes) of a typical activation."""
        return rng.real(self.low, self.high) / 4

    def size(self, rng: Draw, low: int, high: int) -> int:
        """Random width of a layer, mostly a multiple of 8, within the limit."""
        return rng.size(min(low, self.width), min(high, self.width), nice=0.8, awkward=0.05)

    def samples(self, rng: Draw, elements: float, each: float, low: int, high: int) -> int:
        """Batch size at which samples of `each` elements have about `elements` in total: mostly a power of two."""
        low, high = min(low, self.batch), min(high, self.batch)
        value = min(max(elements / max(each, 1), low), high)
        if rng.chance(0.75):
            value = 2 ** round(math.log2(value))
        return int(min(max(value, low), high))


def kinds() -> Iterator[Tuple[int, str]]:
    """Numbers and kinds of models, with kinds alternating in proportion to their weights."""
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
