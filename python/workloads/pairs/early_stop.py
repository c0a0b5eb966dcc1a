"""A checkpoint that ends its recomputation early, as PyTorch's does by default, in a form that can be recorded.

PyTorch ends it by an exception in the middle of an op, and its ExecutionTraceObserver takes all that follows for a part of that op. So
the first recomputation, which is not recorded, shows the call that it ends in. Later ones end around that call.
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
    """The call in which the recomputation of a block ends: of which function, and the how-manieth of it. Whether its kernels run before.

    Calls of other functions are not counted: a recorder reads attributes of tensors, and not in each step the same.
    """

    function: Any = None
    call: int = 0
    ran: bool = False


def checkpointed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The forward pass of a block, of which the backward pass computes again the part that it needs."""
    end = End()

    def contexts() -> Tuple[ContextManager[Any], ContextManager[Any]]:
        return contextlib.nullcontext(), (_Until(end) if end.call else _Find(end))

    def run(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(forward, *args, use_reentrant=False, early_stop=not end.call, context_fn=contexts, **kwargs)

    return run


class _Kernels(TorchDispatchMode):
    """Whether an op computes something: views do not."""

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
    """Ends a recomputation after the same call; one whose kernels would not run is not recorded."""

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
