"""A checkpoint that ends its recomputation early, like PyTorch's default, in a form that can be recorded.

PyTorch ends it by an exception in the middle of an op, and its ExecutionTraceObserver records all later ops as part of that op. The
first recomputation, which is not recorded, therefore finds the call in which it ends. Later ones end right before or after that call.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, ContextManager, Dict, Iterator, Tuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import _StopRecomputationError, checkpoint


@dataclass
class End:
    """The call in which the recomputation of a block ends: its function, its number among calls of that function, and whether its
    kernels run before the end.

    Only calls of that function are counted, because a recorder reads attributes of tensors in different numbers in each step.
    """

    function: Any = None
    call: int = 0
    ran: bool = False


def checkpointed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward pass of a block with a checkpoint: the backward pass recomputes the part that it needs."""
    end = End()

    def contexts() -> Tuple[ContextManager[Any], ContextManager[Any]]:
        return contextlib.nullcontext(), (_Until(end) if end.call else _Find(end))

    def run(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, early_stop=not end.call, context_fn=contexts, **kwargs)

    return run


class _Kernels(TorchDispatchMode):
    """Notes whether an op launches kernels: views do not."""

    def __init__(self) -> None:
        super().__init__()
        self.ran = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.ran = self.ran or not func.is_view
        return result


class _Find(TorchFunctionMode):
    """Notes where PyTorch ends a recomputation."""

    def __init__(self, end: End) -> None:
        super().__init__()
        self.end, self.calls = end, Counter[Any]()

    def __torch_function__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.calls[func] += 1
        kernels = _Kernels()
        try:
            with kernels:
                return func(*args, **(kwargs or {}))
        except _StopRecomputationError:
            self.end.function, self.end.call, self.end.ran = func, self.calls[func], kernels.ran
            raise


class _Until(TorchFunctionMode):
    """Ends a recomputation at the same call; a call whose kernels would not run is not recorded."""

    def __init__(self, end: End) -> None:
        super().__init__()
        self.end, self.calls = end, Counter[Any]()

    def __torch_function__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Dict[str, Any] | None = None) -> Any:
        self.calls[func] += 1
        ends = func == self.end.function and self.calls[func] == self.end.call
        with _unrecorded() if ends and not self.end.ran else contextlib.nullcontext():
            result = func(*args, **(kwargs or {}))
        if ends:
            raise _StopRecomputationError
        return result


@contextlib.contextmanager
def _unrecorded() -> Iterator[None]:
    """Hides ops from the profiler."""
    torch.autograd._enable_record_function(False)
    try:
        yield
    finally:
        torch.autograd._enable_record_function(True)
