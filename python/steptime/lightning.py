"""Callback that records a few steps of a Lightning trainer: `Trainer(callbacks=[steptime.lightning.Watch(out="rec")])`."""

from __future__ import annotations

from typing import Any, Optional

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the older package of the same project
    from pytorch_lightning import Callback

from steptime import watching


class Watch(Callback):
    """Records steps of the training into `out`; options are those of `steptime.watch`. A step is an update."""

    def __init__(self, out: str, **options: Any) -> None:
        self._out, self._options = out, options
        self._watch: Optional[watching.Watch] = None
        self._updates = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Starts recording with the first batch."""
        optimizers = trainer.optimizers or [None]
        self._updates = trainer.global_step
        self._watch = watching.watch(pl_module, optimizers[0], self._out, **self._options).start()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Counts the samples of a batch: Lightning calls `training_step`, which need not call the module itself."""
        if self._watch is not None:
            self._watch.saw(batch)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Ends a step after an update; with `accumulate_grad_batches`, an update takes several batches."""
        if self._watch is not None and trainer.global_step != self._updates:
            self._updates = trainer.global_step
            self._watch.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Stops recording."""
        if self._watch is not None:
            self._watch.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Discards an incomplete recording."""
        if self._watch is not None:
            self._watch.__exit__(type(exception), exception, None)
