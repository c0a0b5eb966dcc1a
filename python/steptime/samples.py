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
        self.found: Optional[describe.Samples] = None
        self._sum = 0
        self._passes = 0
        self._source = ""
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
        if self.found is not None or self._counted:
            return
        guessed = describe.guess_batch(batch)
        if guessed is not None:
            self._sum += guessed.count
            self._passes += 1
            self._source, self._counted = guessed.source, True

    def update(self) -> None:
        """Ends the update: what was counted stands."""
        if self.found is None and self._sum > 0:
            passes = f", of {self._passes} passes an update" if self._passes > 1 else ""
            self.found = describe.Samples(self._sum, self._source + passes)
            self.detach()

    def _called(self, _module: Any, arguments: Any, named: Any) -> None:
        if sys.modules["torch"].is_grad_enabled():
            self.add([arguments, named])

    def _came(self, _parameter: Any) -> None:
        self._counted = False
