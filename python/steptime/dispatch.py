"""Ops as PyTorch dispatches them: with the tensors that they take and give."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, Optional


class Dispatch:
    """Calls `before(name, arguments)` and `after(name, result)` for each op, while it is entered.

    In a process that compiles, and with a PyTorch without modes of dispatch, it calls neither.
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
    """Whether torch.compile was asked for in this process: what it makes must not run under a mode."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", None) or {}
    return any(backend is not None for backend in backends.values())  # None stands for eager


def tensors(torch: Any, given: Any) -> Iterator[Any]:
    """The tensors among arguments or results, in their order."""
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from tensors(torch, each)
    elif isinstance(given, dict):
        yield from tensors(torch, list(given.values()))
