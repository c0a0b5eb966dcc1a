"""Callback that records a few steps of a transformers trainer: `Trainer(..., callbacks=[steptime.transformers.Watch(out="rec")])`."""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from steptime import watching


class Watch(TrainerCallback):
    """Records steps of the training into `out`; options are those of `steptime.watch`. A step is an update."""

    def __init__(self, out: str, **options: Any) -> None:
        self._out, self._options = out, options
        self._watch: Optional[watching.Watch] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Starts recording with the first update."""
        self._watch = watching.watch(given.get("model"), given.get("optimizer"), self._out, **self._options).start()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Ends a step."""
        if self._watch is not None:
            self._watch.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Stops recording."""
        if self._watch is not None:
            self._watch.stop()
