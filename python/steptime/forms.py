"""Implementations of optimizer steps on a GPU: a step recorded on a CPU shows only the CPU's implementation."""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from steptime import modules

# A loop over parameters; ops over lists of parameters; one op.
LOOP, LISTS, FUSED = "loop", "foreach", "fused"


class OptimizerForms:
    """Context that notes the form of each optimizer's step by a PyTorch hook; notes nothing in a process that has compiled."""

    def __init__(self) -> None:
        self._register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
        self._forms: List[str] = []
        self._handle: Any = None

    def __enter__(self) -> "OptimizerForms":
        self._forms = []
        if self._register is not None and not modules.has_compiled():
            self._handle = self._register(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.remove()
        self._handle = None

    def as_dict(self) -> Dict[str, List[str]]:
        """The fields of meta.json on optimizers: the form of each optimizer step, in order."""
        return {"optimizers": self._forms} if self._forms else {}

    def _note(self, optimizer: Any, *_: Any) -> None:
        self._forms.append(form(getattr(optimizer, "param_groups", ())))


def form(groups: Any) -> str:
    """Returns the form of an optimizer with these parameter groups, by the first group.

    PyTorch's optimizers use lists on a GPU by default. An optimizer without a `foreach` option is a loop on every device.
    """
    first: Dict[str, Any] = next(iter(groups), {})
    if first.get("fused"):
        return FUSED
    if first.get("foreach"):
        return LISTS
    refused = False in (first.get("foreach", False), first.get("fused")) or first.get("differentiable")
    return LOOP if refused else LISTS
