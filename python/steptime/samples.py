"""Number of samples of an optimizer update: the sum over all batches whose gradients it uses."""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from steptime import describe


class Samples:
    """Counts the samples of the first update of a model, from its calls and its gradients.

    A forward pass is counted by its first call of the model with gradients enabled. The next pass begins after a gradient was computed.
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
        """Starts counting."""
        if not hasattr(self._model, "register_forward_pre_hook"):
            return
        self._handles.append(self._model.register_forward_pre_hook(self._called, with_kwargs=True))
        for parameter in self._model.parameters():
            if parameter.requires_grad and hasattr(parameter, "register_post_accumulate_grad_hook"):
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._came))

    def detach(self) -> None:
        """Removes all hooks from the model."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def add(self, batch: Any) -> None:
        """Counts a batch, unless one of the same pass was counted."""
        if self.found is not None or self._counted:
            return
        guessed = describe.guess_batch(batch)
        if guessed is not None:
            self._sum += guessed.count
            self._passes += 1
            self._source, self._counted = guessed.source, True

    def update(self) -> None:
        """Ends the update: the count is final if there is one."""
        if self.found is None and self._sum > 0:
            passes = f", of {self._passes} passes an update" if self._passes > 1 else ""
            self.found = describe.Samples(self._sum, self._source + passes)
            self.detach()

    def _called(self, _module: Any, arguments: Any, named: Any) -> None:
        if sys.modules["torch"].is_grad_enabled():
            self.add([arguments, named])

    def _came(self, _parameter: Any) -> None:
        self._counted = False
