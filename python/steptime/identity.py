"""Which tensor is which, where tensors have no memory: on the `meta` device, or fake.

PyTorch's ExecutionTraceObserver tells storages apart by their addresses, and these have none. What autograd saves for the backward
pass is another tensor on the same storage, made by no op. While a mode of dispatch is entered, PyTorch hands Python a `detach` for
each of them, and the trace shows whose storage it has.
"""

from __future__ import annotations

from typing import Any


def mode(torch: Any) -> Any:
    """A mode of dispatch that calls each op as it is; `without_memory` says whether one gave a tensor that has none."""
    dispatch: Any = torch.utils._python_dispatch.TorchDispatchMode

    class Shown(dispatch):  # type: ignore[misc]
        without_memory = False

        def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = func(*args, **(kwargs or {}))
            first = given[0] if isinstance(given, (list, tuple)) and given else given
            self.without_memory = self.without_memory or _has_none(first)
            return given

    return Shown()


def _has_none(tensor: Any) -> bool:
    """Whether a tensor, if it is one, has no memory."""
    device = getattr(tensor, "device", None)
    return device is not None and (device.type == "meta" or type(tensor).__name__ == "FakeTensor")
