"""Tensors that PyTorch's ExecutionTraceObserver cannot record, and that may crash the process.

The observer reads the shape and strides of each tensor. Compressed sparse tensors (CSR, CSC, BSR, BSC) and nested tensors of layout
strided have none: for each the observer prints an error, leaves its own state half-written, and later reads invalid memory.
"""

from __future__ import annotations

import functools
import gc
from typing import Any, Callable, Dict, List, Optional, Tuple

COMPRESSED = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
NESTED = "torch.strided, nested"


def why(layout: str) -> str:
    """Error message for a step with a tensor of this layout, with the remedy."""
    remedy = "use nested tensors of layout=torch.jagged" if layout == NESTED else "convert it with .to_sparse_coo()"
    return (
        f"this process holds a tensor of layout {layout}, and PyTorch's ExecutionTraceObserver, which asks each tensor for its strides, "
        f"may crash the process on one: {remedy}, or let go of it if the step does not use it"
    )


def held(torch: Any) -> Optional[str]:
    """Layout of such a tensor that is alive in this process, as far as Python's garbage collector knows; None without one."""
    if _found(torch) is None:
        return None
    gc.collect()  # the tensor may be garbage
    return _found(torch)


def _found(torch: Any) -> Optional[str]:
    compressed = _compressed(torch)
    kinds: Dict[int, bool] = {}
    with torch._C.DisableTorchFunctionSubclass():
        for each in gc.get_objects():
            kind = type(each)  # `isinstance` would call into the object, and a proxy may have side effects
            if id(kind) not in kinds:
                kinds[id(kind)] = issubclass(kind, torch.Tensor)
            layout = _layout(torch, each, compressed) if kinds[id(kind)] else None
            if layout is not None:
                return layout
    return None


def _layout(torch: Any, tensor: Any, compressed: List[Any]) -> Optional[str]:
    try:
        if tensor.layout in compressed:
            return str(tensor.layout)
        return NESTED if tensor.is_nested and tensor.layout == torch.strided else None
    except Exception:  # a subclass without these attributes
        return None


def _compressed(torch: Any) -> List[Any]:
    return [getattr(torch, name) for name in COMPRESSED]


class Hidden:
    """Context that stops the recording of a step when the step makes such a tensor; `layout` is then that of the tensor.

    The observer cannot be stopped within an op. Instead, recording of ops is turned off for this thread.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._record = getattr(getattr(torch._C, "_autograd", None), "_enable_record_function", lambda _: None)
        self._put_back: List[Tuple[Any, str, Any]] = []
        self.layout: Optional[str] = None

    def __enter__(self) -> "Hidden":
        for owner, name, layout in self._makers():
            if hasattr(owner, name):
                self._put_back.append((owner, name, vars(owner).get(name)))
                setattr(owner, name, self._noting(getattr(owner, name), layout))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, own in self._put_back:
            if own is None:  # it was inherited
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._put_back = []
        if self.layout is not None:
            self._record(True)

    def _makers(self) -> List[Tuple[Any, str, Optional[str]]]:
        """Functions that make such tensors, each with its owner and, where it is fixed, the layout."""
        torch = self._torch
        makers = [(torch, f"{name}_tensor", f"torch.{name}") for name in COMPRESSED]
        makers += [(torch.Tensor, f"to_{name}", f"torch.{name}") for name in COMPRESSED]
        nested = [(torch.nested, name, None) for name in ("nested_tensor", "as_nested_tensor")]
        return [*makers, *nested, (torch, "sparse_compressed_tensor", None), (torch.Tensor, "to_sparse", None)]

    def _noting(self, make: Callable[..., Any], layout: Optional[str]) -> Callable[..., Any]:
        compressed = _compressed(self._torch)
        nests = "nested" in getattr(make, "__name__", "")

        @functools.wraps(make)
        def noting(*given: Any, **named: Any) -> Any:
            asked = [each for each in (*given, *named.values()) if type(each) is self._torch.layout]
            if layout is not None or any(each in compressed for each in asked):
                self._hide(layout or str(asked[0]))
            elif nests and self._torch.jagged not in asked:
                self._hide(NESTED)
            return make(*given, **named)

        return noting

    def _hide(self, layout: str) -> None:
        self.layout = layout
        self._record(False)
