"""Clipping of gradients as on a GPU: over lists of tensors, where the CPU and the meta device go over them one by one."""

from __future__ import annotations

import sys
from typing import Any, Dict

# Functions by which `clip_grad_norm_` asks whether a device has ops over lists.
ASKED = ("_has_foreach_support", "_device_has_foreach_support")


class ForeachClipping:
    """Has `torch.nn.utils.clip_grad_norm_` use ops over lists, as long as it is entered and a script does not say otherwise."""

    def __init__(self) -> None:
        self._before: Dict[str, Any] = {}

    def __enter__(self) -> "ForeachClipping":
        clipping = sys.modules.get("torch.nn.utils.clip_grad")
        self._before = {name: getattr(clipping, name) for name in ASKED if hasattr(clipping, name)}
        for name in self._before:
            setattr(clipping, name, lambda *_: True)
        return self

    def __exit__(self, *_: object) -> None:
        clipping = sys.modules.get("torch.nn.utils.clip_grad")
        for name, before in self._before.items():
            setattr(clipping, name, before)
        self._before = {}
