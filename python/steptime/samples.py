"""Samples of an update: those of all batches whose gradients it takes."""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from steptime import describe


class Samples:
    """The samples of the first update of a model, by its calls and its gradients.

    A pass is counted by the first call of the model in it, with gradients enabled. The next pass begins when a gradient has come.
    """

    def __init__(self, model: Any) -> None:
        self.count: Optional[int] = None
        self._sum = 0
        self._counted = False
        self._handles: List[Any] = []
        self._model = model

    def attach(self) -> None:
        """Begins to count."""
        if not hasattr(self._model, "register_forward_pre_hook"):
            return
        self._handles.append(self._model.register_forward_pre_hook(self._called, with_kwargs=True))
        for parameter in self._model.parameters():
            if parameter.requires_grad and hasattr(parameter, "register_post_accumulate_grad_hook"):
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._came))

    def detach(self) -> None:
        """Leaves the model alone."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def add(self, batch: Any) -> None:
        """Counts a batch, where none of its pass was."""
        if self.count is None and not self._counted:
            self._sum += describe.guess_batch(batch) or 0
            self._counted = self._sum > 0

    def update(self) -> None:
        """Ends the update: what was counted stands."""
        if self.count is None and self._sum > 0:
            self.count = self._sum
            self.detach()

    def _called(self, _module: Any, arguments: Any, named: Any) -> None:
        if sys.modules["torch"].is_grad_enabled():
            self.add([arguments, named])

    def _came(self, _parameter: Any) -> None:
        self._counted = False
