"""Gradient clipping as on a GPU: with ops over lists of tensors, where the CPU and the meta device loop over the tensors."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict

# Functions by which `clip_grad_norm_` checks whether a device has ops over lists.
ASKED = ("_has_foreach_support", "_device_has_foreach_support")


class ForeachClipping:
    """Context in which `torch.nn.utils.clip_grad_norm_` runs the same ops on any device as on a GPU."""

    def __init__(self, torch: Any) -> None:
        self._gpu = torch.device("cuda")
        self._before: Dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> "ForeachClipping":
        clipping = sys.modules.get("torch.nn.utils.clip_grad")
        self._before = {name: getattr(clipping, name) for name in ASKED if hasattr(clipping, name)}
        for name, before in self._before.items():
            setattr(clipping, name, self._of_gpu(before))
        return self

    def __exit__(self, *_: object) -> None:
        clipping = sys.modules.get("torch.nn.utils.clip_grad")
        for name, before in self._before.items():
            setattr(clipping, name, before)
        self._before = {}

    def _of_gpu(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """The function with its last argument, the device, replaced by a GPU."""
        return lambda *given: before(*given[:-1], self._gpu)
