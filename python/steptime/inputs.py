"""Inputs of modules that are the same tensors step after step: a graph that all steps share, or a batch that is made once.

A step recorded on a CPU moves nothing to a device. Inputs that stay would be on the device already; others are copied there.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List

from steptime.dispatch import tensors

# Inputs beyond which no more are noted.
MOST = 10_000


class KeptInputs:
    """Notes, each time it is entered, the inputs of the modules of one step; those of the step before that come again are kept."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._before: Dict[int, Any] = {}
        self._now: Dict[int, Any] = {}
        self._handle: Any = None
        self._kept: Dict[int, List[Any]] = {}

    def __enter__(self) -> "KeptInputs":
        self._before, self._now, self._kept = self._now, {}, {}
        self._handle = self._torch.nn.modules.module.register_module_forward_pre_hook(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()

    def as_dict(self) -> Dict[str, Any]:
        """The part of meta.json that tells of inputs: `[shape, bytes of an element]` of each that is the same in two steps."""
        return {"kept_inputs": list(self._kept.values())} if self._kept else {}

    def _look(self, _module: Any, inputs: Any) -> None:
        compiling = getattr(getattr(self._torch, "compiler", None), "is_compiling", bool)
        if compiling() or len(self._now) > MOST:
            return
        for tensor in tensors(self._torch, inputs):
            if tensor.grad_fn is not None or tensor.layout is not self._torch.strided:
                continue  # what a layer gives the next is new in each step
            before = self._before.get(id(tensor))
            if before is not None and before() is tensor:
                self._kept[id(tensor)] = [list(tensor.shape), tensor.element_size()]
            self._now[id(tensor)] = weakref.ref(tensor)
