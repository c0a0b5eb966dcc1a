"""Identity of tensors without memory: on the `meta` device, or fake.

PyTorch's ExecutionTraceObserver distinguishes storages by address, and these have none. A tensor that autograd saves for the backward
pass is a new tensor on the same storage that no op made. While a dispatch mode is active, PyTorch calls `detach` for each saved
tensor, so the trace shows which storage it has.
"""

from __future__ import annotations

import contextlib
from typing import Any


class Identity:
    """Context that notes whether modules take tensors without memory; if so, `shown` returns a dispatch mode."""

    def __init__(self, torch: Any) -> None:
        self.without_memory = False
        self._torch = torch
        self._handle: Any = None

    def __enter__(self) -> "Identity":
        self._handle = self._torch.nn.modules.module.register_module_forward_pre_hook(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()

    def shown(self) -> Any:
        """A dispatch mode that calls each op unchanged, for tensors without memory; else a null context."""
        if not self.without_memory:
            return contextlib.nullcontext()
        mode: Any = self._torch.utils._python_dispatch.TorchDispatchMode

        class Shown(mode):
            def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return func(*args, **(kwargs or {}))

        return Shown()

    def _look(self, module: Any, inputs: Any) -> None:
        compiling = getattr(getattr(self._torch, "compiler", None), "is_compiling", bool)
        if not self.without_memory and not compiling():
            self.without_memory = any(map(_has_none, (*inputs, *module.parameters(recurse=False))))


def _has_none(tensor: Any) -> bool:
    """Whether a value is a tensor without memory."""
    device = getattr(tensor, "device", None)
    on_meta = getattr(device, "type", None) == "meta"
    return on_meta or type(tensor).__name__ == "FakeTensor"
