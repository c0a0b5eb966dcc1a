"""Lookup counts of a table: how often its rows are accessed, without the row numbers.

Rows are grouped by how often they occur, in powers of two: group k holds the rows that occur from 2^k to 2^(k+1) - 1 times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple

MOST_COUNTED = 1 << 26  # of longer index tensors, only this many lookups are counted


@dataclass(frozen=True)
class Counts:
    """The lookups of one index tensor."""

    groups: Tuple[Tuple[int, int], ...]  # of group k: number of rows, and number of lookups of these rows
    padding: int = 0  # lookups of the padding row, which has no gradient
    most: int = 0  # lookups of the most frequent row; 0 if it is alone in its group, or all rows are in one group
    ordered: bool = False  # whether the indices are sorted

    @property
    def lookups(self) -> int:
        return sum(lookups for _, lookups in self.groups)

    @property
    def distinct(self) -> int:
        return sum(rows for rows, _ in self.groups)

    def __str__(self) -> str:
        """The text form of `steptime_launch::Indices`: `counts:90/90,12/30 most:3 padding:16 sorted`."""
        groups = ",".join(f"{rows}/{lookups}" for rows, lookups in self.groups)
        numbers = "".join(f" {name}:{number}" for name, number in (("most", self.most), ("padding", self.padding)) if number)
        return f"counts:{groups}{numbers}{' sorted' if self.ordered else ''}"


def count(torch: Any, index: Any, padding_idx: Optional[int] = None) -> Counts:
    """Counts the lookups of an index tensor of any shape. Waits for the device."""
    flat = index.detach().reshape(-1)[:MOST_COUNTED]
    if flat.numel() == 0:
        return Counts(())
    ordered = flat.numel() > 2 and bool((flat[1:] >= flat[:-1]).all())
    times = torch.unique(flat, return_counts=True)[1]
    group = times.double().log2().add_(1e-9).floor_().long()
    groups = int(group.max()) + 1
    rows = torch.bincount(group, minlength=groups).tolist()
    lookups = torch.bincount(group, weights=times.double(), minlength=groups).long().tolist()
    padding = int((flat == padding_idx).sum()) if padding_idx is not None and padding_idx >= 0 else 0
    most = int(times.max()) if rows[-1] > 1 and groups > 1 else 0
    return Counts(tuple(zip(rows, lookups)), padding, most, ordered)
