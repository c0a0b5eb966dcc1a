"""Medians and quantiles of step times, without numpy."""

from __future__ import annotations

from typing import Dict, List, Sequence

QUANTILES = ("0.05", "0.1", "0.25", "0.5", "0.75", "0.9")


def quantile(values: Sequence[float], q: float) -> float:
    """The `q`-quantile of `values`, linear between neighbours (numpy's default)."""
    if not values:
        raise ValueError("quantile of no values")
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"quantile {q} is not between 0 and 1")
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(values: Sequence[float]) -> float:
    """The median of `values`."""
    return quantile(values, 0.5)


def quantiles(values: Sequence[float]) -> Dict[str, float]:
    """The quantiles in meta.json, by name."""
    return {name: quantile(values, float(name)) for name in QUANTILES}


def spread(values: Sequence[float]) -> float:
    """Relative difference of the largest of `values` to the smallest, as a fraction: 0.1 is 10 %."""
    return max(values) / min(values) - 1.0


def intervals(boundaries: Sequence[float]) -> List[float]:
    """The differences between neighbouring boundaries."""
    return [end - start for start, end in zip(boundaries, boundaries[1:])]
