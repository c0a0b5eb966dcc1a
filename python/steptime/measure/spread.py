"""Distributions of indices over rows: uniform, Zipf, over few rows, padded, sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from steptime.counts import Counts, count
from steptime.measure.draw import Draw

LAWS = {"uniform": 38, "zipf:0.8": 14, "zipf:1.05": 26, "zipf:1.2": 22}
PADDED = {0.0: 62, 0.25: 12, 0.5: 14, 0.9: 12}


@dataclass(frozen=True)
class Spread:
    """A distribution law over `few` rows (0: all rows), with a share of padding (row 0) at the end of each sequence, sorted or not."""

    law: str = "uniform"
    few: int = 0
    padded: float = 0.0
    ordered: bool = False

    @classmethod
    def draw(cls, rng: Draw) -> Spread:
        few = rng.log(1, 1000) if rng.chance(0.16) else 0
        return cls(rng.weigh(LAWS), few, rng.weigh(PADDED), rng.chance(0.16))

    def __str__(self) -> str:
        parts = [self.law, f"{self.few} rows" if self.few else "", f"padded {self.padded:.0%}" if self.padded else "", "sorted" if self.ordered else ""]
        return " ".join(part for part in parts if part)

    def indices(self, make: Any, shape: Sequence[int], high: int, dtype: str = "int64") -> Any:
        """Row numbers below `high`."""
        torch, few = make.torch, min(self.few, high)
        index = make.indices(shape, few or high, self.law, dtype)
        if few:
            index = (index.long() * (high // few)).to(index.dtype)  # spaced evenly over the table
        if self.padded:
            index = torch.where(self._beyond(make, index.shape), torch.zeros_like(index), index)
        return index.reshape(-1).sort().values.reshape(index.shape) if self.ordered else index

    def _beyond(self, make: Any, shape: Sequence[int]) -> Any:
        """Mask of padding: the end of each sequence, or single positions where there are no sequences."""
        torch = make.torch
        if len(shape) < 2:
            return torch.rand(tuple(shape), device=make.device) < self.padded
        length = shape[-1]
        kept = torch.rand((*shape[:-1], 1), device=make.device).mul_(2 * length * (1 - self.padded)).clamp_(max=length)
        return torch.arange(length, device=make.device) >= kept

    def counts(self, make: Any, index: Any, padding_idx: int = -1) -> Counts:
        return count(make.torch, index, padding_idx)
