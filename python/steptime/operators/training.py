"""Schedules the steps of tables: once between two steps of the other optimizers, with the gradients of all uses of the tables.

The backward pass runs the step. A module that is used several times in one backward pass runs it when all of its gradients are
complete. Gradients of several backward passes are accumulated only on request (`accumulating`): otherwise a second pass before the
other optimizers' step raises. PyTorch's hooks for steps of any optimizer observe the other optimizers.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from steptime.operators import scaling
from steptime.operators.batches import Batch, merged
from steptime.operators.library import OperatorError

SECOND = (
    "tables have taken their step in an earlier backward pass, and no optimizer took one since: to add gradients up over several passes, "
    "run all but the last in `with tables.accumulating():`; where tables are to take a step in each, call tables.next_step() before it"
)
FIRST = (
    "tables took {} steps before the first step of another optimizer: where these were backward passes of one step, their gradients are added "
    "up by `with tables.accumulating():` around all but the last; from now on a second pass in a step raises"
)
LEFT = (
    "an optimizer took its step while these tables hold the gradients of {} backward passes: run the last pass before it outside of "
    "`with tables.accumulating():`"
)
_trained: "weakref.WeakSet[Training]" = weakref.WeakSet()
_hooks: List[Any] = []


class Use:
    """A forward pass whose backward pass has not run yet; released together with its graph."""


class Training:
    """Pending and accumulated gradients of the tables of a module."""

    def __init__(self) -> None:
        self.scaler: Optional[Any] = None
        self.adds_up = False
        self.next_step()

    def next_step(self) -> None:
        """Begins a new step and drops held gradients."""
        self.held: List[Batch] = []
        self.found: List[Tensor] = []
        self.uses: "weakref.WeakSet[Use]" = weakref.WeakSet()
        self.taken = 0
        self.beside_others = getattr(self, "beside_others", False)
        self.at_the_end = False

    def use(self) -> Use:
        """Notes a forward pass."""
        _watch()
        _trained.add(self)
        use = Use()
        self.uses.add(use)
        return use

    @contextmanager
    def accumulating(self) -> Iterator[None]:
        """Context in which backward passes hold their gradients; the first pass after it runs the step of all."""
        before, self.adds_up = self.adds_up, True
        try:
            yield
        finally:
            self.adds_up = before

    def backward(self, module: Any, use: Use, batch: Batch) -> None:
        """Adds a gradient, and runs the step if no other gradient of this pass is pending."""
        self.uses.discard(use)
        if self.taken and self.beside_others:
            raise OperatorError(SECOND)
        scaler = scaling.in_use(self.scaler)
        if scaler is not None:
            batch.gradient, found = scaling.unscaled(batch.gradient, scaler, module)
            self.found.append(found)
        self.held.append(batch)
        if self.adds_up or self.at_the_end:
            return
        if len(self.uses):
            # Other gradients of this backward pass may follow: the step runs when the pass ends.
            self.at_the_end = True
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self.step(module))
            return
        self.step(module)

    def step(self, module: Any) -> None:
        """Runs one step with all held gradients, or drops them if one of them overflowed."""
        held, found = self.held, self.found
        self.held, self.found, self.at_the_end = [], [], False
        self.taken += 1
        if found and bool(torch.stack(found).any()):
            return
        module._take_step(merged(held, len(module.rows)))

    def others_stepped(self) -> None:
        """Notes a step of another optimizer."""
        if self.taken > 1 and not self.beside_others:
            warnings.warn(FIRST.format(self.taken), stacklevel=4)
        held, self.taken, self.beside_others = len(self.held), 0, True
        if held:
            self.next_step()
            raise OperatorError(LEFT.format(held))

    def __getstate__(self) -> Any:
        """An empty state: gradients and the scaler are valid only in this process."""
        return {}

    def __setstate__(self, state: Any) -> None:
        self.__init__()  # type: ignore[misc]


def _watch() -> None:
    if not _hooks:
        scaling.watch(_others_stepped)
        _hooks.append(register_optimizer_step_post_hook(lambda *_: _others_stepped()))


def _others_stepped() -> None:
    for training in list(_trained):
        training.others_stepped()
