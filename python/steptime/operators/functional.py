"""Gather and dot interaction, with gradients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Optional

import torch
from torch import Tensor

from steptime.operators import ops  # noqa: F401  registers the ops
from steptime.operators.library import OperatorError, load
from steptime.operators.plans import Cache, GatherPlan, InteractionPlan

_plans = Cache()


def ordinal_of(tensor: Tensor) -> int:
    """Index of the tensor's GPU."""
    if tensor.device.type != "cuda":
        raise OperatorError(f"a tensor is on {tensor.device}, but steptime's operators run on an NVIDIA GPU: move it there with .to('cuda')")
    index: int = tensor.device.index
    return index


@lru_cache(maxsize=1024)
def planned_slice(ordinal: int, rows: int, dim: int, lookups: int) -> int:
    """Slice that the planner expects to be fastest for uniform indices, in bytes; 0 for whole rows."""
    return load().choose_slice(ordinal, rows, dim, lookups)


def gather(table: Tensor, indices: Tensor, slice: Optional[int] = None) -> Tensor:
    """Gathers rows of a table, one for each index: `table[indices]`, read in an order that uses the cache well.

    table: [E, D] of float32. indices: int64 of any shape. slice: bytes of a row that are read at a time for all indices,
    0 for whole rows; chosen from the sizes if not given. Returns [*indices.shape, D]; an index out of range gives zeros.
    The gradient is dense and deterministic.
    """
    if table.dim() != 2 or table.dtype != torch.float32:
        raise OperatorError(f"the table is {table.dtype} {list(table.shape)}: give two dimensions of torch.float32")
    ordinal, (rows, dim), flat = ordinal_of(table), table.shape, indices.reshape(-1)
    if slice is None:
        slice = planned_slice(ordinal, rows, dim, flat.shape[0])
    if torch.is_grad_enabled() and table.requires_grad:
        out = _Gather.apply(table, flat, slice)
    else:
        out = _gather(table, flat, slice)
    return out if indices.dim() == 1 else out.view(*indices.shape, dim)


def _gather(table: Tensor, indices: Tensor, slice: int) -> Tensor:
    ordinal, (rows, dim), address = table.device.index, table.shape, table.data_ptr()

    def make() -> GatherPlan:
        with ops.on_device(ordinal):
            return GatherPlan(load(), ordinal, rows, dim, slice, address)

    plan = _plans.get(("gather", ordinal, address, rows, dim, slice), make)
    return torch.ops.steptime.gather(table, indices, slice, plan.number)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, indices: Tensor, slice: int) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.rows = table.shape[0]
        return _gather(table, indices, slice)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (indices,) = ctx.saved_tensors
        return torch.ops.aten.embedding_dense_backward(grad.contiguous(), indices, ctx.rows, -1, False), None, None


def interaction(vectors: Tensor) -> Tensor:
    """Dot interaction of DLRM: the first vector of each sample, followed by the dot products of its vectors in pairs.

    vectors: [B, F, D] of float32, the dense one of each sample first. Returns [B, D + F (F - 1) / 2]: the first vector,
    then the products of vector i with j < i, row by row.
    """
    if vectors.dim() != 3 or vectors.dtype != torch.float32:
        raise OperatorError(f"vectors are {vectors.dtype} {list(vectors.shape)}: give [B, F, D] of torch.float32")
    vectors = vectors.contiguous()
    if torch.is_grad_enabled() and vectors.requires_grad:
        return _Interaction.apply(vectors)
    return torch.ops.steptime.interaction(vectors, _interaction_plan(vectors).number)


def _interaction_plan(vectors: Tensor) -> InteractionPlan:
    ordinal, (_, features, dim) = ordinal_of(vectors), vectors.shape

    def make() -> InteractionPlan:
        with ops.on_device(ordinal):
            return InteractionPlan(load(), ordinal, features, dim)

    plan: InteractionPlan = _plans.get(("interaction", ordinal, features, dim), make)
    return plan


class _Interaction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        ctx.plan = _interaction_plan(vectors)
        return torch.ops.steptime.interaction(vectors, ctx.plan.number)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (vectors,) = ctx.saved_tensors
        return torch.ops.steptime.interaction_backward(grad.contiguous(), vectors, ctx.plan.number)
