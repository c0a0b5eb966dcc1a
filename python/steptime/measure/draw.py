"""Random choices of a case: typical sizes of models, and awkward ones."""

from __future__ import annotations

import math
import random
from typing import Any, Dict, Sequence, TypeVar

T = TypeVar("T")

# Weights of data types in rare shapes.
MOSTLY_FLOAT32 = {"float32": 80, "bfloat16": 13, "float16": 7}
OFTEN_HALF = {"float32": 60, "bfloat16": 20, "float16": 20}
PRIMES = (2, 3, 5, 7, 11, 13, 17, 23, 31, 37, 53, 61, 97, 127, 131, 251, 257, 509, 521, 1009, 1021, 2053, 4099, 8191)


class Draw(random.Random):
    """A seeded random source. A string seed gives the same choices on every machine and Python version."""

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def pick(self, *items: T) -> T:
        """One of the items, with equal probability."""
        return items[int(self.random() * len(items))]

    def weigh(self, weights: Dict[Any, float]) -> Any:
        """One of the keys, with probability in proportion to its weight."""
        at = self.random() * sum(weights.values())
        for item, weight in weights.items():
            at -= weight
            if at < 0:
                return item
        return item

    def log(self, low: float, high: float) -> int:
        """An integer, log-uniform between `low` and `high` (inclusive)."""
        value = math.exp(self.uniform(math.log(low), math.log(high + 0.999)))
        return min(max(int(value), int(low)), int(high))

    def real(self, low: float, high: float) -> float:
        """A float, log-uniform between `low` and `high`."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def size(self, low: int, high: int, nice: float = 0.4, awkward: float = 0.2) -> int:
        """A size: log-uniform, but often typical of models (a multiple of 8, a power of two), and sometimes awkward."""
        value = self.log(low, high)
        kind = self.random()
        if kind < nice:
            value = self._nice(value)
        elif kind < nice + awkward:
            value = self._awkward(value)
        return min(max(value, low), high)

    def _nice(self, value: int) -> int:
        step = self.pick(0, 0, 8, 16, 32, 64)
        if step == 0 or value < step:
            return 2 ** round(math.log2(value))
        return max(round(value / step), 1) * step

    def _awkward(self, value: int) -> int:
        kind = self.pick("odd", "prime", "above", "below", "one")
        if kind == "odd":
            return value | 1
        if kind == "prime":
            return min(PRIMES, key=lambda prime: abs(math.log(prime / value)))
        if kind == "one":
            return self.pick(1, 13)
        step = self.pick(32, 64, 128, 2 ** round(math.log2(value)))
        near = max(round(value / step), 1) * step
        return near + 1 if kind == "above" else max(near - 1, 1)

    def side(self, low: int, high: int) -> int:
        """The side of a feature map in a network: the side of an image, reduced by strides and unpadded filters."""
        value = 32 * self.log(1, 12) if self.chance(0.6) else self.size(32, 384, nice=0.4, awkward=0.3)
        for _ in range(self.log(1, 7) - 1):
            if value < 8:
                break
            value = self.weigh({value // 2: 55, (value + 1) // 2: 15, (value - 3) // 2 + 1: 20, value - 2: 10})
        return min(max(value, low), high)

    def batch(self, low: int, high: int) -> int:
        """A batch size: mostly a power of two."""
        if self.chance(0.6):
            return min(max(2 ** round(math.log2(self.log(low, high))), low), high)
        return self.size(low, high)

    def dtype(self, weights: Dict[str, float]) -> str:
        """A data type by weight."""
        return self.weigh(weights)

    def some(self, items: Sequence[T], count: int) -> Sequence[T]:
        """`count` distinct items."""
        return self.sample(list(items), count)
