"""Module inputs that are the same tensors in every step: a graph that all steps share, or a batch that is made once.

A step recorded on a CPU copies nothing to a device. On a GPU, inputs that stay the same would already be there; others are copied.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, List

from steptime.dispatch import tensors

# Largest number of inputs that are noted.
MOST = 10_000


class KeptInputs:
    """Context that notes the module inputs of one step each time it is entered; inputs also seen in the step before count as kept."""

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
        """The fields of meta.json on inputs: `[shape, bytes of an element]` of each input that is the same in two steps."""
        return {"kept_inputs": list(self._kept.values())} if self._kept else {}

    def _look(self, _module: Any, inputs: Any) -> None:
        compiling = getattr(getattr(self._torch, "compiler", None), "is_compiling", bool)
        if compiling() or len(self._now) > MOST:
            return
        for tensor in tensors(self._torch, inputs):
            if tensor.grad_fn is not None or tensor.layout is not self._torch.strided:
                continue  # outputs of other layers are new in each step
            before = self._before.get(id(tensor))
            if before is not None and before() is tensor:
                self._kept[id(tensor)] = [list(tensor.shape), tensor.element_size()]
            self._now[id(tensor)] = weakref.ref(tensor)
