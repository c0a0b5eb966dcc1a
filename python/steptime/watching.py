"""Records a few steps of a training loop that is not rewritten for it.

>>> import steptime
>>> with steptime.watch(model, optimizer, out="rec") as w:  # doctest: +SKIP
...     for batch in loader:
...         train(batch)
...         w.step()

The recording is that of `steptime.record`: the same plan, its steps run by the loop's owner. Once it is made, `step` does
nothing. What goes wrong while recording is a warning, and the training goes on.
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

# Shorter than those of `record`: somebody waits for the training.
WINDOWS, STEPS = 3, 20
# Steps under the profiler where every rank records: all must agree, and each measures its own pace.
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
    """Records steps of the loop that calls `step` at the end of each of them: once after each update.

    model: the nn.Module, or a name. optimizer: tells whether each step has one update.
    out: the folder to make. It appears when the recording is complete, and not at all if the loop ends or fails before.
    batch: samples of an update, all batches together where gradients of several are accumulated; guessed from what the model is called
        with in the first update.
    windows, steps, profiled, warmup, sync_events, probe: see `settings.Settings`; about a hundred steps by default.
    every_rank: of a distributed job every rank records the same steps, into `rank0`, `rank1`, ... below `out`, which can then be
    predicted together; else rank 0 alone records.
    overwrite: replace a recording that is already at `out`. quiet: print nothing.
    """
    if every_rank and profiled is None:
        profiled = PROFILED_TOGETHER
    given = {"windows": windows, "steps": steps, "profiled": profiled, "warmup": warmup, "sync_events": sync_events, "probe": probe}
    if out is None:
        raise UsageError('watch() needs a folder to write: watch(model, optimizer, out="rec")')
    return Watch(model, optimizer, Path(out).absolute(), batch, given, every_rank, overwrite, quiet)


class Watch:
    """A loop that is watched: a context, or `start` and `stop` by hand."""

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
        """Begins with the next step; of a distributed job on rank 0 alone, but where every rank is to record."""
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
        """Ends a training step. Costs nothing once the recording is made."""
        if self._plan is not None:
            self._steps += 1
            self._seen.samples.update()
            self._advance()

    def saw(self, batch: Any) -> None:
        """Counts the samples of a batch that the loop trains on, where its model is not called as a module."""
        if self._plan is not None:
            self._seen.samples.add(batch)

    def stop(self) -> None:
        """Ends watching. A recording that is not complete is not written, which is said."""
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
        """Goes on with the plan until the next step."""
        assert self._plan is not None
        try:
            next(self._plan)
        except StopIteration as end:
            self._finish(end.value)
        except Exception as error:  # the training is not to end for it
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
        """Leaves the loop alone from now on, and nothing half-written behind."""
        if self._plan is not None:
            self._plan.close()
        self._plan = None
        self._seen.detach()
        self._rest()

    def _rest(self) -> None:
        setattr(self, "step", _nothing)


class Seen:
    """What is seen of a loop from outside: the samples of an update, and how often its optimizer steps."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        # Accelerate has optimizers of its own around PyTorch's.
        self._optimizer = getattr(optimizer, "optimizer", optimizer)
        self._hook: Any = None
        self.samples = Samples(model)
        self.updates = 0

    def attach(self) -> None:
        """Begins to look."""
        self.samples.attach()
        if hasattr(self._optimizer, "register_step_post_hook"):
            self._hook = self._optimizer.register_step_post_hook(self._updated)

    def detach(self) -> None:
        """Looks no more."""
        self.samples.detach()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def guess_batch(self) -> Optional[describe.Samples]:
        """Samples of an update, by what the model was called with."""
        return self.samples.found

    def problems(self, steps: int, out: Path) -> List[str]:
        """Whether each step had one update, as far as is known. A captured update is replayed without its hooks."""
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
    """Where the time of a recorded step goes, in a line or two."""
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
    """The command that predicts a step recorded on a CPU, if its answer is not a refusal."""
    from steptime.prediction import predict

    try:
        predict(recording, device="h200")
    except Error as error:
        return [str(error)]
    return [f"recorded on a CPU; for a GPU: steptime predict {_shown(recording)} --device h200"]


def _shown(path: Path) -> str:
    """A path as short as it can be said."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def train() -> None:
    """What a step is called where no model says."""


def _nothing(*_: Any) -> None:
    """A step that is not watched."""


def _place() -> Tuple[int, int]:
    """This process's rank in a distributed job, and how many there are: as PyTorch knows, else as torchrun says."""
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
