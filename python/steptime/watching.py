"""Records a few steps of an existing training loop.

>>> import steptime
>>> with steptime.watch(model, optimizer, out="rec") as w:  # doctest: +SKIP
...     for batch in loader:
...         train(batch)
...         w.step()

The recording is like that of `steptime.record`: the same plan, but the training loop runs the steps. Once it is complete, `step`
does nothing. Errors while recording become warnings, and the training continues.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Tuple, Type

from steptime import describe, folder
from steptime._ask import REMEDY, PathLike
from steptime.checks import RecordWarning
from steptime.errors import Error, InputError, MissingCore, UsageError
from steptime.loop import Plan
from steptime.profiling import TorchProfiler
from steptime.recording import make
from steptime.samples import Samples
from steptime.settings import choose

# Fewer than in `record`, because recording delays the training.
WINDOWS, STEPS = 3, 20
# Profiled steps where every rank records: a fixed number, because ranks would choose different ones from their own speed.
PROFILED_TOGETHER = 20


def watch(
    model: Any = None,
    optimizer: Any = None,
    out: Optional[PathLike] = None,
    batch: Optional[int] = None,
    *,
    windows: int = WINDOWS,
    steps: int = STEPS,
    profiled: Optional[int] = None,
    warmup: Optional[int] = None,
    sync_events: Optional[bool] = None,
    probe: Optional[bool] = None,
    every_rank: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> "Watch":
    """Records steps of a training loop, which calls `step` of the result once after each update.

    model: the nn.Module, or a name. optimizer: used to check that each step has one update.
    out: the folder to make. It appears when the recording is complete, and not at all if the loop ends or fails before.
    batch: samples per update, summed over all batches if gradients are accumulated; guessed from the arguments of the model in the
        first update if not given.
    windows, steps, profiled, warmup, sync_events, probe: see `settings.Settings`; about a hundred steps by default.
    every_rank: every rank of a distributed job records the same steps, into `rank0`, `rank1`, ... below `out`, which can then be
        predicted together; by default only rank 0 records.
    overwrite: replace an existing recording at `out`. quiet: print nothing.
    """
    if every_rank and profiled is None:
        profiled = PROFILED_TOGETHER
    given = {"windows": windows, "steps": steps, "profiled": profiled, "warmup": warmup, "sync_events": sync_events, "probe": probe}
    if out is None:
        raise UsageError('watch() needs a folder to write: watch(model, optimizer, out="rec")')
    return Watch(model, optimizer, Path(out).absolute(), batch, given, every_rank, overwrite, quiet)


class Watch:
    """Recorder of a training loop: a context manager, or used by `start` and `stop`."""

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        out: Path,
        batch: Optional[int],
        given: Dict[str, Any],
        every_rank: bool,
        overwrite: bool,
        quiet: bool,
    ) -> None:
        self._rank, world = _place()
        self._records = every_rank or self._rank == 0
        self.out = out / f"rank{self._rank}" if every_rank and world > 1 else out
        self.done = False
        self._settings = choose(given)
        self._plan: Optional[Plan[List[str]]] = None
        self._seen = Seen(model, optimizer)
        self._about: Dict[str, Any] = {"model": describe.model_name(model, train), "batch": batch}
        self._facts = {"params": describe.count_parameters(model, train)}
        if world > 1:
            self._about.update({"rank": self._rank, "world": world})
        self._overwrite, self._quiet = overwrite, quiet or self._rank != 0
        self._steps, self._began = 0, 0.0
        folder.check_free(self.out, overwrite)

    def start(self) -> "Watch":
        """Starts recording with the next step; in a distributed job only on rank 0, unless `every_rank` is set."""
        if not self._records:
            self._rest()
            return self
        backend = TorchProfiler(self._settings.sync_events)
        self._began = time.perf_counter()
        self._seen.attach()
        self._plan = make(self.out, self._settings, backend, self._about, self._facts, self._seen.guess_batch, self._overwrite)
        self._advance()
        return self

    def step(self) -> None:
        """Ends a training step. Does nothing once the recording is complete."""
        if self._plan is not None:
            self._steps += 1
            self._seen.samples.update()
            self._advance()

    def saw(self, batch: Any) -> None:
        """Counts the samples of a batch of the loop, for loops that do not call the model as a module."""
        if self._plan is not None:
            self._seen.samples.add(batch)

    def stop(self) -> None:
        """Stops recording. An incomplete recording is not written, and a warning is issued."""
        if self._plan is not None:
            self._drop()
            _warn(
                f"nothing was recorded: the loop ended after {self._steps} steps, and {self._settings.enough_steps()} are enough; "
                "run it for longer, or record fewer steps (steps=, windows=, warmup=, profiled=)"
            )

    def __enter__(self) -> "Watch":
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        if kind is None:
            self.stop()
        else:
            self._drop()

    def _advance(self) -> None:
        """Continues the plan until the next step."""
        assert self._plan is not None
        try:
            next(self._plan)
        except StopIteration as end:
            self._finish(end.value)
        except Exception as error:  # an error of the recorder must not end the training
            self._drop()
            _warn(f"nothing was recorded: {type(error).__name__}: {error}")

    def _finish(self, warned: List[str]) -> None:
        warned += self._seen.problems(self._steps, self.out)
        self._drop()
        self.done = True
        for message in warned:
            _warn(message)
        if not self._quiet:
            seconds = time.perf_counter() - self._began
            _say(f"recorded {self.out}: {self._steps} steps in {seconds:.1f} s")
            for line in summary(self.out):
                _say(line)

    def _drop(self) -> None:
        """Detaches from the loop and removes an incomplete recording."""
        if self._plan is not None:
            self._plan.close()
        self._plan = None
        self._seen.detach()
        self._rest()

    def _rest(self) -> None:
        setattr(self, "step", _nothing)


class Seen:
    """Observations of a loop: the number of samples of an update, and the number of optimizer steps."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        # Accelerate wraps PyTorch's optimizers.
        self._optimizer = getattr(optimizer, "optimizer", optimizer)
        self._hook: Any = None
        self.samples = Samples(model)
        self.updates = 0

    def attach(self) -> None:
        """Starts observing."""
        self.samples.attach()
        if hasattr(self._optimizer, "register_step_post_hook"):
            self._hook = self._optimizer.register_step_post_hook(self._updated)

    def detach(self) -> None:
        """Stops observing."""
        self.samples.detach()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def guess_batch(self) -> Optional[describe.Samples]:
        """Number of samples of an update, from the arguments of the model."""
        return self.samples.found

    def problems(self, steps: int, out: Path) -> List[str]:
        """A warning if steps and updates differ in number. Updates captured in a CUDA graph do not call hooks, and are not checked."""
        if self._hook is None or self.updates == steps:
            return []
        if not self.updates and replays_graphs(out):
            return []
        return [f"the optimizer stepped {self.updates} times in {steps} steps: call w.step() once after each update"]

    def _updated(self, *_: Any) -> None:
        self.updates += 1


def replays_graphs(recording: Path) -> bool:
    """Whether the timed steps of a recording launch CUDA graphs."""
    with gzip.open(recording / folder.TIMING, "rt", encoding="utf-8", errors="replace") as lines:
        return any("cudaGraphLaunch" in line for line in lines)


def summary(recording: Path) -> List[str]:
    """Time of a recorded step and its parts, in one or two lines."""
    from steptime.prediction import predict

    try:
        found = predict(recording)
    except InputError:
        if not (recording / folder.EXECUTION_TRACE).exists():
            return []  # a warning has said why
        return _for_a_gpu(recording)
    except MissingCore:
        return [f"complete; a prediction needs the native half of steptime: {REMEDY}"]
    except Error as error:
        return [str(error)]
    idle = sorted(found.idle_by_name(), key=lambda each: -each[1])[:3]
    causes = ", ".join(f"{cause} {ms / found.step_ms:.0%}" for cause, ms in idle if ms > 0)
    busy = f"; the device works {found.active_ms / found.step_ms:.0%} of it" if found.active_ms is not None else ""
    return [*found.doubts, f"{found.said()}{busy}" + (f", idle: {causes}" if causes else "")]


def _for_a_gpu(recording: Path) -> List[str]:
    """The command that predicts a step recorded on a CPU; the error message if such a prediction fails."""
    from steptime.prediction import predict

    try:
        predict(recording, device="h200")
    except Error as error:
        return [str(error)]
    return [f"recorded on a CPU; for a GPU: steptime predict {_shown(recording)} --device h200"]


def _shown(path: Path) -> str:
    """The path, relative to the current folder where possible."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def train() -> None:
    """Stands for a step without a model: gives its name and refers to no modules."""


def _nothing(*_: Any) -> None:
    """The `step` of a recorder that has stopped."""


def _place() -> Tuple[int, int]:
    """Rank of this process in a distributed job, and number of ranks: from PyTorch, else from torchrun's variables."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        rank = int(os.environ.get("RANK", "0"))
        return rank, max(int(os.environ.get("WORLD_SIZE", "1")), rank + 1)
    except ValueError:
        return 0, 1


def _say(what: str) -> None:
    print(f"steptime: {what}", file=sys.stderr, flush=True)


def _warn(message: str) -> None:
    warnings.warn(message, RecordWarning, stacklevel=3)
