"""Marks around code, such as an optimizer's step, where tensors are fake.

A mark begins with one op and ends with another. Under a dispatch mode such as FakeTensorMode, both ops are dispatched to Python, and
PyTorch's ExecutionTraceObserver records the marked ops as part of that dispatch: the mark itself stays empty.
"""

from __future__ import annotations

import sys
from typing import Any, Callable


class PlainMarks:
    """Context in which dispatch modes do not see the ops that begin and end marks."""

    def __init__(self) -> None:
        self._class: Any = getattr(sys.modules.get("torch.autograd.profiler"), "record_function", None)
        self._undispatched: Any = getattr(getattr(sys.modules.get("torch"), "_C", None), "_DisableTorchDispatch", None)
        self._own: Any = None

    def __enter__(self) -> "PlainMarks":
        if self._class is not None and self._undispatched is not None:
            self._own = (self._class.__enter__, self._class.__exit__)
            for name, method in zip(("__enter__", "__exit__"), self._own):
                setattr(self._class, name, self._plain(method))
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            for name, method in zip(("__enter__", "__exit__"), self._own):
                setattr(self._class, name, method)
        self._own = None

    def _plain(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            with self._undispatched():
                return method(*arguments)

        return called
