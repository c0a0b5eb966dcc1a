"""Embedding and interaction kernels for NVIDIA GPUs as PyTorch ops, from the library of the crate `steptime-cuda-capi`.

>>> from steptime.operators import EmbeddingBags, gather, interaction  # doctest: +SKIP

    library.py      the shared library: where it is, its functions and structures; needs no PyTorch
    plans.py        handles of compiled kernels, and their numbers; needs no PyTorch
    ops.py          the ops `steptime::...` that PyTorch calls and its profiler shows
    bags.py         EmbeddingBags: tables whose backward pass takes the optimizer's step
    batches.py      what is wrong with lookups, and several batches as one
    training.py     when tables take their step: once for all uses and passes of a step
    scaling.py      gradients under torch.amp.GradScaler
    state.py        what their optimizers keep, which is saved and moved with them
    functional.py   gather and interaction
    codec.py        rows of int8 and int4
"""

from typing import Any

from steptime.operators.library import OperatorError, available, load

__all__ = ["EmbeddingBags", "OperatorError", "available", "dequantize", "gather", "interaction", "load", "quantize"]

_HOME = {"EmbeddingBags": "bags", "gather": "functional", "interaction": "functional", "dequantize": "codec", "quantize": "codec"}


def __getattr__(name: str) -> Any:
    """What needs PyTorch is imported when it is used: whoever only compiles kernels does without."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
