"""Embedding and interaction kernels for NVIDIA GPUs as PyTorch ops, from the library of the crate `steptime-cuda-capi`.

>>> from steptime.operators import EmbeddingBags, gather, interaction  # doctest: +SKIP

    library.py      the shared library: its path, functions and structures; needs no PyTorch
    plans.py        handles of compiled kernels, and their numbers; needs no PyTorch
    ops.py          the ops `steptime::...` that PyTorch calls and its profiler shows
    bags.py         EmbeddingBags: tables whose backward pass runs the optimizer's step
    batches.py      checks of lookups, and merging of batches
    training.py     the time of a table's optimizer step: once for all uses and passes of a step
    scaling.py      gradients under torch.amp.GradScaler
    state.py        optimizer states, which are saved and moved with the tables
    functional.py   gather and interaction
    codec.py        rows of int8 and int4
"""

from typing import Any

from steptime.operators.library import OperatorError, available, load

__all__ = ["EmbeddingBags", "OperatorError", "available", "dequantize", "gather", "interaction", "load", "quantize"]

_HOME = {"EmbeddingBags": "bags", "gather": "functional", "interaction": "functional", "dequantize": "codec", "quantize": "codec"}


def __getattr__(name: str) -> Any:
    """Imports names that need PyTorch on first use: compiling kernels works without PyTorch."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
