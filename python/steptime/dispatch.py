"""Observes ops as PyTorch dispatches them, with their arguments and results."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, Optional


class Dispatch:
    """Context that calls `before(name, arguments)` and `after(name, result)` for each op.

    In a process that uses torch.compile, and with a PyTorch without dispatch modes, it calls neither.
    """

    def __init__(self, before: Callable[[str, Any], None], after: Optional[Callable[[str, Any], None]] = None) -> None:
        self._before, self._after = before, after
        self._mode: Any = None

    def __enter__(self) -> "Dispatch":
        if not compiles():
            try:
                self._mode = self._made()
                self._mode.__enter__()
            except (ImportError, AttributeError):
                self._mode = None
        return self

    def __exit__(self, *error: Any) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(*error)

    def _made(self) -> Any:
        from torch.utils._python_dispatch import TorchDispatchMode

        before, after = self._before, self._after

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                name = func._schema.name
                before(name, (args, kwargs or {}))
                given = func(*args, **(kwargs or {}))
                if after is not None:
                    after(name, given)
                return given

        return Mode()


def compiles() -> bool:
    """Whether torch.compile was called in this process: compiled code must not run under a dispatch mode."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}
    return any(backend is not None for backend in backends.values())  # None is eager mode


def tensors(torch: Any, given: Any) -> Iterator[Any]:
    """The tensors among arguments or results, in order."""
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from tensors(torch, each)
    elif isinstance(given, dict):
        yield from tensors(torch, list(given.values()))
