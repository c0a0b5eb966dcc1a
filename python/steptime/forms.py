"""How optimizers go over their parameters on a GPU: the step itself shows how they do where it runs."""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from steptime import modules

# One by one; op by op over lists of them; in one op.
LOOP, LISTS, FUSED = "loop", "foreach", "fused"


class OptimizerForms:
    """Notes the form of each optimizer's step while it is entered, by a hook of PyTorch's; see `modules` of what has compiled."""

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
        """The part of meta.json that tells of optimizers: a form for each step, in order."""
        return {"optimizers": self._forms} if self._forms else {}

    def _note(self, optimizer: Any, *_: Any) -> None:
        self._forms.append(form(getattr(optimizer, "param_groups", ())))


def form(groups: Any) -> str:
    """The form of an optimizer with these groups of parameters: where they differ, that of the first.

    PyTorch's own take lists on a GPU where nothing is asked for. One that does not know `foreach` is a loop wherever it runs.
    """
    first: Dict[str, Any] = next(iter(groups), {})
    if first.get("fused"):
        return FUSED
    if first.get("foreach"):
        return LISTS
    refused = False in (first.get("foreach", False), first.get("fused")) or first.get("differentiable")
    return LOOP if refused else LISTS
