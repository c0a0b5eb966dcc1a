"""Optimizer state of embedding bags: buffers that move, save and load with the module."""

from __future__ import annotations

from typing import Any, List, Sequence

import torch
from torch import Tensor, nn

from steptime.operators.plans import COUNTING, state_pitch


class RowState(nn.Module):
    """Optimizer state: a buffer for each table, named by its number, [E, floats of a row's state] of float32, initially zeros.

    State of a row: for Adagrad, h of every column; for row-wise Adagrad, one h; for Adam, m of every column, then v of every column;
    for partial row-wise Adam, m of every column, then one v. Rows are padded with zeros.
    If the optimizer counts its steps, `steps` is a copy of the GPU's count, as of the module's last read.
    """

    def __init__(self, optimizer: str, rows: Sequence[int], dims: Sequence[int], device: Any) -> None:
        super().__init__()
        self.tables = len(rows)
        for at, (count, dim) in enumerate(zip(rows, dims)):
            self.register_buffer(str(at), torch.zeros(count, state_pitch(optimizer, dim), device=device))
        if optimizer in COUNTING:
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64, device=device))

    def of_tables(self) -> List[Tensor]:
        """The buffers of the tables."""
        return [self._buffers[str(at)] for at in range(self.tables)]


def saved_optimizers(names: Sequence[str], prefix: str) -> List[str]:
    """Optimizers that have a state among these names of a state dict, under this prefix."""
    return sorted({name[len(prefix) :].partition(".")[0] for name in names if name.startswith(prefix)})
