"""PyTorch modules of described models, with the parameters of checkpoints of `steptime-train`.

>>> from steptime.models import build, load  # doctest: +SKIP
>>> module = load("model.toml", "run/step-000000008000")  # doctest: +SKIP

    description.py  `model.toml`; needs no PyTorch
    layers.py       MLPs, tables, interactions
    networks.py     the models
    building.py     a module from a description
    digest.py       hashes of checkpoints
    manifest.py     `checkpoint.toml`; needs no PyTorch
    shards.py       tensors of a checkpoint
    loading.py      parameters of a module from a checkpoint
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from steptime.models.building import build as build
    from steptime.models.loading import load as load
    from steptime.models.shards import Checkpoint as Checkpoint

__all__ = ["Checkpoint", "build", "load"]

_HOME = {"build": "building", "load": "loading", "Checkpoint": "shards"}


def __getattr__(name: str) -> Any:
    """Imports a name on first use: importing the package imports no PyTorch."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
