"""Quantized rows of int8 and int4 with an f16 scale and bias each, for lookups without training."""

from __future__ import annotations

import torch
from torch import Tensor

from steptime.operators.library import OperatorError
from steptime.operators.plans import SCALE_BYTES


def quantize(table: Tensor, bits: int) -> Tensor:
    """Quantizes a table [E, D] of floats to uint8 [E, 4 + D] (8 bits) or [E, 4 + D / 2] (4 bits, D even).

    Each row begins with its scale and its bias, both f16; a value is `scale * q + bias`. In a byte with two values, the
    value of the even column is in the lower half. The levels are evenly spaced between a row's smallest and largest value.
    """
    if bits not in (4, 8) or table.dim() != 2 or (bits == 4 and table.shape[1] % 2):
        raise OperatorError(f"{list(table.shape)} cannot be quantized to {bits} bits: give two dimensions and 8 bits, or 4 and an even D")
    table = table.float()
    low, high = table.amin(1, keepdim=True), table.amax(1, keepdim=True)
    scale = ((high - low) / (2**bits - 1)).half()
    bias = low.half()
    step = torch.where(scale == 0, torch.ones_like(scale), scale).float()
    values = ((table - bias.float()) / step).round_().clamp_(0, 2**bits - 1).to(torch.uint8)
    if bits == 4:
        values = values[:, 0::2] | (values[:, 1::2] << 4)
    rows = torch.cat([torch.cat([scale, bias], 1).view(torch.uint8), values], 1)
    assert rows.shape[1] == SCALE_BYTES + table.shape[1] * bits // 8
    return rows


def dequantize(rows: Tensor, bits: int) -> Tensor:
    """Returns the values [E, D] of a table that `quantize` made."""
    scale, bias = rows[:, :SCALE_BYTES].contiguous().view(torch.float16).float().split(1, 1)
    values = rows[:, SCALE_BYTES:]
    if bits == 4:
        values = torch.stack([values & 15, values >> 4], 2).flatten(1)
    return values.float() * scale + bias
