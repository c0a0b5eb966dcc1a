"""Indices similar to real data: few rows take most lookups, and histories are padded."""
import torch

_TABLES = {}


def zipf(rows, shape, exponent, first=0):
    """Row numbers `first..rows`, the k-th most frequent with probability proportional to k**-exponent.

    Frequent rows are spread over the table by a fixed permutation, like hashed ids.
    """
    key = (rows - first, exponent)
    if key not in _TABLES:
        order = torch.randperm(rows - first, generator=torch.Generator().manual_seed(rows))
        weights = torch.arange(1, rows - first + 1, dtype=torch.float64).pow(-exponent).cumsum(0)
        _TABLES[key] = (order, weights / weights[-1])
    order, cumulative = _TABLES[key]
    ranks = torch.searchsorted(cumulative, torch.rand(shape, dtype=torch.float64)).clamp_(max=rows - first - 1)
    return order[ranks] + first


def histories(count, longest, rows, exponent, left=False):
    """`[count, longest]` row numbers from 1, shorter histories filled with 0: on average a bit more than half of each."""
    lengths = (torch.rand(count).pow(1.5) * longest).long() + 1
    places = torch.arange(longest).expand(count, longest)
    used = places >= longest - lengths[:, None] if left else places < lengths[:, None]
    return zipf(rows, (count, longest), exponent, first=1) * used
