"""Batches of lookups: checks, and merging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from steptime.operators.library import OperatorError


@dataclass
class Batch:
    """Lookups, and the gradient of their bags: [B, D_0 + D_1 + ...] of float32."""

    gradient: Tensor
    indices: Tensor
    offsets: Tensor
    weights: Optional[Tensor]


def check_kinds(indices: Tensor, offsets: Tensor, kind: torch.dtype) -> None:
    """Raises OperatorError if indices or offsets do not have the type of the tables; the message has the conversion."""
    for what, tensor in (("indices", indices), ("offsets", offsets)):
        if tensor.dtype != kind:
            raise OperatorError(
                f"{what} are {tensor.dtype} and these tables take {kind}: pass {what}.to({kind}), or make the module with index_dtype={tensor.dtype}"
                + ("" if indices.dtype == offsets.dtype else ", for both of them")
            )


def with_last(indices: Tensor, offsets: Tensor, tables: int, has_last: bool) -> Tensor:
    """Offsets that end with the number of indices: [T * B + 1]. Raises OperatorError if tables differ in their number of offsets."""
    if not has_last:
        if offsets.shape[0] % tables:
            raise OperatorError(f"{offsets.shape[0]} offsets for {tables} tables without the last: give the same number for each table, B * {tables}")
        return torch.cat([offsets, offsets.new_full((1,), indices.shape[0])])
    if offsets.dim() == 1 and (offsets.shape[0] - 1) % tables:
        raise OperatorError(
            f"{offsets.shape[0]} offsets for {tables} tables: give B * {tables} + 1, the last of them the number of indices, or B * {tables} "
            "as torch.nn.EmbeddingBag takes them and include_last_offset=False"
        )
    return offsets


def check_offsets(indices: Tensor, offsets: Tensor) -> None:
    """Raises OperatorError unless offsets divide all indices into consecutive bags. Waits for the GPU."""
    first, least, last = torch.stack([offsets[0], offsets.diff().min() if offsets.shape[0] > 1 else offsets[0], offsets[-1]]).tolist()
    if last != indices.shape[0]:
        raise OperatorError(
            f"the last offset is {last} and there are {indices.shape[0]} indices: the last offset is the end of the last bag; for offsets as "
            "torch.nn.EmbeddingBag takes them, without it, make the module with include_last_offset=False"
        )
    if first != 0 or least < 0:
        raise OperatorError(f"offsets begin with {first}{' and go back' if least < 0 else ''}: they begin with 0 and never go back")


def check_rows(indices: Tensor, offsets: Tensor, rows: Sequence[int]) -> None:
    """Raises OperatorError if an index is out of range of its table. Waits for the GPU."""
    table_of = _tables_of(indices, offsets, len(rows))[0]
    wrong = (indices < 0) | (indices >= torch.tensor(rows, device=indices.device)[table_of])
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        table = int(table_of[at])
        raise OperatorError(f"index {int(indices[at])} at {at} is out of range of table {table}, which has {rows[table]} rows")


def merged(batches: List[Batch], tables: int) -> Batch:
    """Merges batches into one with all of their bags, table after table. Does not wait for the GPU."""
    if len(batches) == 1:
        return batches[0]
    lengths = torch.cat([batch.offsets.diff().view(tables, -1) for batch in batches], 1)
    zero = batches[0].offsets.new_zeros(1)
    offsets = torch.cat([zero, lengths.flatten().cumsum(0).to(zero.dtype)])
    count = sum(batch.indices.shape[0] for batch in batches)
    indices = batches[0].indices.new_empty(count)
    first = batches[0].weights
    weights = None if first is None else first.new_empty(count)
    bags = [batch.gradient.shape[0] for batch in batches]
    for at, batch in enumerate(batches):
        table_of, starts = _tables_of(batch.indices, batch.offsets, tables)
        begins = offsets[:-1].view(tables, -1)[:, sum(bags[:at])].long()
        places = torch.arange(batch.indices.shape[0], device=indices.device) + (begins - starts)[table_of]
        indices[places] = batch.indices
        if weights is not None and batch.weights is not None:
            weights[places] = batch.weights
    return Batch(torch.cat([batch.gradient for batch in batches]), indices, offsets, weights)


def _tables_of(indices: Tensor, offsets: Tensor, tables: int) -> Tuple[Tensor, Tensor]:
    """Table number of each index, and position of each table's first index."""
    bounds = offsets[:: (offsets.shape[0] - 1) // tables].long() if offsets.shape[0] > 1 else offsets.new_zeros(tables + 1).long()
    numbers = torch.arange(tables, device=indices.device)
    return numbers.repeat_interleave(bounds.diff(), output_size=indices.shape[0]), bounds[:-1]
