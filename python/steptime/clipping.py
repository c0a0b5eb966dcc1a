"""Clipping of gradients as on a GPU: over lists of tensors, where the CPU and the meta device go over them one by one."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict

# Functions by which `clip_grad_norm_` asks whether a device has ops over lists.
ASKED = ("_has_foreach_support", "_device_has_foreach_support")


class ForeachClipping:
    """Has `torch.nn.utils.clip_grad_norm_` do on any device what it does on a GPU, as long as it is entered."""

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
        """The same answer as for a GPU: the device is the last argument."""
        return lambda *given: before(*given[:-1], self._gpu)
