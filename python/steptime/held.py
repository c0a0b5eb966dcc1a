"""Memory that a training loop keeps between steps: parameters, buffers, gradients and optimizer states."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, List, Tuple

from steptime import modules

# Version of the format; readers ignore versions that they do not know.
VERSION = 1
# PyTorch's allocator rounds sizes up to multiples of this many bytes.
GRAIN = 512

# Element type and size in bytes of tensors, by id.
Sizes = Dict[int, Tuple[str, int]]


class HeldMemory:
    """Context that notes this memory by PyTorch hooks on modules and on optimizer steps.

    Gradients are noted when an optimizer's step begins, states when it ends. No tensor is kept alive and no op runs; sparse
    gradients are left out, because reading their size would run an op.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._handles: List[Any] = []
        self._seen: Dict[int, Any] = {}
        self._kinds: Dict[str, Sizes] = {}

    def __enter__(self) -> "HeldMemory":
        self._kinds = {"parameters": {}, "buffers": {}, "gradients": {}, "states": {}}
        optimizers = sys.modules.get("torch.optim.optimizer")
        before = getattr(optimizers, "register_optimizer_step_pre_hook", None)
        after = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if before is None or after is None or modules.has_compiled():
            return self
        called = self._torch.nn.modules.module.register_module_forward_pre_hook(self._module)
        self._handles = [called, before(self._gradients), after(self._states)]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._seen = [], {}

    def as_dict(self) -> Dict[str, Any]:
        """The fields of meta.json on memory: `{tensors, bytes, allocated}` of each kind and element type.

        `allocated` is the size that PyTorch's allocator uses for them: each tensor rounded up to blocks of 512 bytes.
        """
        found = {kind: _sums(sizes.values()) for kind, sizes in self._kinds.items()}
        return {"memory": {"version": VERSION, **found}} if any(found.values()) else {}

    def _module(self, module: Any, _inputs: Any) -> None:
        if id(module) in self._seen:
            return
        self._seen.update((id(each), each) for each in module.modules())
        self._note("parameters", module.parameters())
        self._note("buffers", module.buffers())

    def _gradients(self, optimizer: Any, *_: Any) -> None:
        parameters = [each for group in getattr(optimizer, "param_groups", ()) for each in group["params"]]
        self._note("parameters", parameters)
        self._note("gradients", (each.grad for each in parameters if each.grad is not None))

    def _states(self, optimizer: Any, *_: Any) -> None:
        # Step counts are numbers in host memory.
        states = (state.values() for state in getattr(optimizer, "state", {}).values() if isinstance(state, dict))
        held = (each for state in states for each in state if self._torch.is_tensor(each))
        self._note("states", (each for each in held if each.dim() > 0))

    def _note(self, kind: str, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if tensor.layout == self._torch.strided:
                name = str(tensor.dtype).replace("torch.", "")
                # The local part of a DTensor; `to_local` would run an op.
                here = getattr(tensor, "_local_tensor", tensor)
                self._kinds[kind][id(tensor)] = name, here.numel() * here.element_size()


def _sums(sizes: Iterable[Tuple[str, int]]) -> Dict[str, Dict[str, int]]:
    sums: Dict[str, Dict[str, int]] = {}
    for name, size in sizes:
        of = sums.setdefault(name, {"tensors": 0, "bytes": 0, "allocated": 0})
        of["tensors"] += 1
        of["bytes"] += size
        of["allocated"] += -(-size // GRAIN) * GRAIN
    return sums
