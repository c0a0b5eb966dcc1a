"""The memory that a training loop holds from step to step: parameters, buffers, gradients and what optimizers keep."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, List, Tuple

from steptime import modules

# Of the form of the note: a reader leaves out one that it does not know.
VERSION = 1
# PyTorch's allocator gives a multiple of this many bytes.
GRAIN = 512

# The type of element and the bytes of tensors, by their ids.
Sizes = Dict[int, Tuple[str, int]]


class HeldMemory:
    """Notes it while it is entered, by hooks of PyTorch's on modules and on steps of optimizers.

    Gradients are those that there are as an optimizer's step begins, states those as it ends. No tensor is kept for it, and
    no op runs: of sparse gradients, whose size an op would tell, there is no note.
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
        """The part of meta.json that tells of memory: for each kind and type of element `{tensors, bytes, allocated}`.

        `allocated` is what PyTorch's allocator gives for them: each tensor in blocks of 512 bytes.
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
        # Counts of steps are numbers in host memory.
        states = (state.values() for state in getattr(optimizer, "state", {}).values() if isinstance(state, dict))
        held = (each for state in states for each in state if self._torch.is_tensor(each))
        self._note("states", (each for each in held if each.dim() > 0))

    def _note(self, kind: str, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if tensor.layout == self._torch.strided:
                name = str(tensor.dtype).replace("torch.", "")
                # Of a DTensor the part of this rank; `to_local` would run an op.
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
