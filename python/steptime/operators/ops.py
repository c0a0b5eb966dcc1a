"""The ops `steptime::...`, which PyTorch's dispatcher calls and its profiler shows.

Kernels are launched on the calling thread's current stream, inside the op. `plan` is the number of a plan, which the caller
keeps alive; it does not describe the work. Ops do not wait for the GPU, and can be captured into a CUDA graph after the plan's
first use.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from steptime.operators import plans
from steptime.operators.library import GpuLookups, OperatorError
from steptime.operators.plans import OPTIMIZERS, BackwardPlan, BagPlan, GatherPlan, InteractionPlan

NAMESPACE = "steptime"
SCHEMAS = (
    "embedding_bag(Tensor[] tables, Tensor indices, Tensor offsets, Tensor? weights, int mode, int bits, int plan) -> Tensor",
    *(
        f"embedding_bag_backward_{optimizer}(Tensor grad, Tensor(a!)[] tables, Tensor indices, Tensor offsets, "
        "Tensor? weights, int mode, int plan) -> ()"
        for optimizer in OPTIMIZERS
    ),
    "gather(Tensor table, Tensor indices, int slice, int plan) -> Tensor",
    "interaction(Tensor vectors, int plan) -> Tensor",
    "interaction_backward(Tensor grad, Tensor vectors, int plan) -> Tensor",
)
INDEX_TYPES = {32: torch.int32, 64: torch.int64}

_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def _settle(ordinal: int) -> None:
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize(ordinal)


plans.settle = _settle


def on_device(ordinal: int) -> Any:
    """A context in which this GPU is the current device; launches would otherwise change the current device."""
    return torch.cuda.device(ordinal)


def launch(plan: plans.Plan, function: Callable[..., int], *arguments: Any) -> None:
    """Calls one of the plan's functions on the current stream of its GPU."""
    ordinal = plan.ordinal
    if torch.cuda.current_device() == ordinal:
        failed = function(plan.handle, _stream(ordinal), *arguments)
    else:
        with on_device(ordinal):
            failed = function(plan.handle, _stream(ordinal), *arguments)
    if failed:
        raise plan.library.failure()


def floats(what: str, tensor: Tensor, ordinal: int, *shape: int) -> None:
    """Raises OperatorError unless the tensor is contiguous float32 of this shape on this GPU; -1 matches any size."""
    fits = tensor.dim() == len(shape) and all(wanted in (-1, found) for wanted, found in zip(shape, tensor.shape))
    if not fits or tensor.dtype != torch.float32 or not tensor.is_contiguous() or tensor.device.index != ordinal:
        wanted = " x ".join("any" if each < 0 else str(each) for each in shape)
        raise OperatorError(
            f"{what} is {tensor.dtype} {list(tensor.shape)} on {tensor.device}{'' if tensor.is_contiguous() else ', not contiguous'}: "
            f"give {wanted} of torch.float32, contiguous, on cuda:{ordinal}"
        )


def lookups_of(plan: Any, tables: List[Tensor], indices: Tensor, offsets: Tensor, weights: Optional[Tensor]) -> GpuLookups:
    """The lookups for the C ABI. Raises OperatorError if they or the tables do not match the plan."""
    of = plan.of
    if [table.data_ptr() for table in tables] != plan.addresses:
        raise OperatorError("these are not the tables that the plan was made for: make a plan for them")
    kind, device = INDEX_TYPES[of.index_bits], plan.ordinal
    for what, tensor in (("indices", indices), ("offsets", offsets)):
        if tensor.dtype != kind or tensor.dim() != 1 or not tensor.is_contiguous() or tensor.device.index != device:
            raise OperatorError(
                f"{what} are {tensor.dtype} {list(tensor.shape)} on {tensor.device}: give one dimension of {kind}, contiguous, on cuda:{device}"
            )
    if offsets.shape[0] != len(tables) * of.bags + 1:
        raise OperatorError(f"{offsets.shape[0]} offsets for {len(tables)} tables of {of.bags} bags: give {len(tables) * of.bags + 1}")
    if (weights is not None) != of.weighted:
        raise OperatorError(f"the plan was made {'with' if of.weighted else 'without'} weights: make one for these lookups")
    if weights is not None:
        floats("weights", weights, device, indices.shape[0])
    return GpuLookups(indices.shape[0], indices.data_ptr(), offsets.data_ptr(), 0 if weights is None else weights.data_ptr())


def _same(what: str, given: int, made: int) -> None:
    if given != made:
        raise OperatorError(f"{what} is {given}, but the plan was made for {made}")


def embedding_bag(
    tables: List[Tensor], indices: Tensor, offsets: Tensor, weights: Optional[Tensor], mode: int, bits: int, plan: int
) -> Tensor:
    made = plans.find(plan, BagPlan)
    _same("mode", mode, made.of.mode)
    _same("bits", bits, plans.BITS[made.of.element])
    lookups = lookups_of(made, tables, indices, offsets, weights)
    out = torch.empty((made.of.bags, made.columns), device=indices.device)
    launch(made, made.forward, ctypes.byref(lookups), out.data_ptr())
    return out


def _backward_of(optimizer: str) -> Callable[..., None]:
    def backward(
        grad: Tensor, tables: List[Tensor], indices: Tensor, offsets: Tensor, weights: Optional[Tensor], mode: int, plan: int
    ) -> None:
        made = plans.find(plan, BackwardPlan)
        _same("mode", mode, made.of.mode)
        if made.optimizer != optimizer:
            raise OperatorError(f"the plan was made for {made.optimizer}, not for {optimizer}")
        floats("the gradient", grad, made.ordinal, made.of.bags, made.columns)
        lookups = lookups_of(made, tables, indices, offsets, weights)
        launch(made, made.group, ctypes.byref(lookups))
        launch(made, made.step, ctypes.byref(lookups), grad.data_ptr())

    return backward


def gather(table: Tensor, indices: Tensor, slice: int, plan: int) -> Tensor:
    made = plans.find(plan, GatherPlan)
    _same("slice", slice, made.slice)
    floats("the table", table, made.ordinal, made.rows, made.dim)
    _same("the table's address", table.data_ptr(), made.address)
    if indices.dtype != torch.int64 or indices.dim() != 1 or not indices.is_contiguous() or indices.device != table.device:
        raise OperatorError(
            f"indices are {indices.dtype} {list(indices.shape)} on {indices.device}: give one dimension of torch.int64, contiguous, on {table.device}"
        )
    out = torch.empty((indices.shape[0], made.dim), device=table.device)
    launch(made, made.run, indices.shape[0], indices.data_ptr(), out.data_ptr())
    return out


def interaction(vectors: Tensor, plan: int) -> Tensor:
    made = plans.find(plan, InteractionPlan)
    floats("vectors", vectors, made.ordinal, -1, made.features, made.dim)
    out = torch.empty((vectors.shape[0], made.columns), device=vectors.device)
    launch(made, made.forward, vectors.shape[0], vectors.data_ptr(), out.data_ptr())
    return out


def interaction_backward(grad: Tensor, vectors: Tensor, plan: int) -> Tensor:
    made = plans.find(plan, InteractionPlan)
    floats("vectors", vectors, made.ordinal, -1, made.features, made.dim)
    floats("the gradient", grad, made.ordinal, vectors.shape[0], made.columns)
    out = torch.empty_like(vectors)
    launch(made, made.backward, vectors.shape[0], vectors.data_ptr(), grad.data_ptr(), out.data_ptr())
    return out


# Shape functions, for tensors without data. --------------------------------------------------------------------------


def _columns(table: Tensor, bits: int) -> int:
    return int(table.shape[1]) if bits >= 16 else int(table.shape[1] - plans.SCALE_BYTES) * 8 // bits


def _bag_shape(tables: List[Tensor], indices: Tensor, offsets: Tensor, weights: Any, mode: int, bits: int, plan: int) -> Tensor:
    columns = sum(_columns(table, bits) for table in tables)
    return indices.new_empty(((offsets.shape[0] - 1) // len(tables), columns), dtype=torch.float32)


def _gather_shape(table: Tensor, indices: Tensor, slice: int, plan: int) -> Tensor:
    return table.new_empty((indices.shape[0], table.shape[1]))


def _interaction_shape(vectors: Tensor, plan: int) -> Tensor:
    samples, features, dim = vectors.shape
    return vectors.new_empty((samples, dim + features * (features - 1) // 2))


def _nothing(*_: Any) -> None:
    return None


def _not_here(name: str) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise OperatorError(f"{NAMESPACE}::{name} runs on an NVIDIA GPU: move its tensors there with .to('cuda')")

    return fail


_IMPLEMENTATIONS: Dict[str, Tuple[Callable[..., Any], Callable[..., Any]]] = {
    "embedding_bag": (embedding_bag, _bag_shape),
    **{f"embedding_bag_backward_{optimizer}": (_backward_of(optimizer), _nothing) for optimizer in OPTIMIZERS},
    "gather": (gather, _gather_shape),
    "interaction": (interaction, _interaction_shape),
    "interaction_backward": (interaction_backward, lambda grad, vectors, plan: torch.empty_like(vectors)),
}


def _register() -> torch.library.Library:
    library = torch.library.Library(NAMESPACE, "DEF")
    for schema in SCHEMAS:
        name = library.define(schema)
        name = name.rpartition("::")[2]
        run, shape = _IMPLEMENTATIONS[name]
        library.impl(name, run, "CUDA")
        library.impl(name, shape, "Meta")
        library.impl(name, _not_here(name), "CPU")
    return library


_LIBRARY = _register()  # ops are registered as long as this object exists
