"""Prediction of a step: its time, and the distribution of the time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

from steptime import _html
from steptime._answer import Answer
from steptime._ask import Input, PathLike, Value
from steptime.changes import Changed, change, known
from steptime.choosing import Choice, choose
from steptime.errors import UsageError
from steptime.explanation import Explanation
from steptime.job import JobPrediction, of_one_rank
from steptime.report import Difference, Roofline
from steptime.side import Side
from steptime.table import Table
from steptime.viewing import View, view

# Options of a prediction that other queries about the same step take over.
_SHARED = ("device", "host", "models", "indices", "tf32")


class Prediction(Side, Answer):
    """A predicted step.

    >>> p = predict("examples/dlrm_default_2048")
    >>> p
    Prediction(dlrm_default_2048 on NVIDIA H200: step 3.416 ms, 90 % interval 2.839 to 3.996 ms)
    >>> round(p.active_ms + sum(p.idle.values()), 3) == round(p.step_ms, 3)
    True
    >>> p.ops.columns
    ['name', 'count', 'host_ms', 'device_ms', 'critical_ms', 'slack_ms']
    """

    def __init__(self, raw: Mapping[str, Any], source: Input, options: Mapping[str, Value]) -> None:
        super().__init__(raw)
        self._input = source
        self._options = dict(options)

    @property
    def device(self) -> Optional[str]:
        """The GPU predicted for."""
        found = self.raw.get("device")
        return None if found is None else str(found)

    @property
    def ops(self) -> Table:
        """Top-level ops by name, the most expensive first: host, device and critical-path time in milliseconds per step."""
        return self.table("ops")

    @property
    def kernels(self) -> Table:
        """Kernels by name, the longest first: count and device time in milliseconds per step."""
        return Table("kernels", self.raw.get("kernels_by_name") or [])

    @property
    def critical_path(self) -> Table:
        """The critical path of the step, in order: place, what, phase, milliseconds."""
        return self.table("critical_path")

    @property
    def phases(self) -> Table:
        """Host and device time in milliseconds by phase of the step: input, forward, backward, optimizer, other."""
        return self.table("phases")

    @property
    def modules(self) -> Table:
        """Modules of the model, including their submodules: host time, device time of the forward and the backward pass, and time on
        the critical path, in milliseconds; empty where the recording has no modules."""
        return Table("modules", self.raw.get("modules") or [])

    @property
    def families(self) -> Table:
        """Device time by kernel family, with its source and the half-width of its interval; empty without a device profile."""
        return self.table("families")

    def what_if(self, **changes: Any) -> Changed:
        """Predicts the same step with changes, see `steptime.changes.change`: `p.what_if(batch=8192, fuse="embedding-bags")`.

        Raises NotApplicable, with the reason, where a change does not apply.
        """
        return change(self._input, **{**self._shared("what_if"), **known(changes)})

    def on(self, device: str) -> "Prediction":
        """Predicts the same step for another GPU; the input is not read again."""
        asked = {**self._options, "device": device}
        return Prediction(self._input.answer("predict", asked), self._input, asked)

    def explain(self) -> Explanation:
        """Explains what bounds the step, and which changes would make it shorter, the best first."""
        return Explanation(self._input.answer("explain", self._shared("explain")))

    def choose(
        self,
        device: Union[str, Sequence[str]] = "all",
        *,
        price: Optional[PathLike] = None,
        recorded_batch: Optional[int] = None,
    ) -> Choice:
        """Predicts the same step on other GPUs, at the recorded batch size and at the largest that fits; see `steptime.choose`."""
        asked = {name: value for name, value in self._shared("choose").items() if name != "device"}
        return choose(self._input, device=device, price=price, recorded_batch=recorded_batch, **asked)  # type: ignore[arg-type]

    def roofline(self) -> Roofline:
        """Compares each kernel with the limits of the device, and returns what bounds it."""
        options = {name: value for name, value in self._shared("roofline").items() if name != "host"}
        return Roofline(self._input.answer("roofline", options))

    def compare(self, other: Union["Prediction", PathLike]) -> Difference:
        """Compares the step with another one: the causes of the difference."""
        if isinstance(other, JobPrediction):
            raise of_one_rank("compare", other.world)
        against = other._input if isinstance(other, Prediction) else Input(other)
        return Difference(self._input.answer("compare", self._shared("compare"), against))

    def timeline(self, path: PathLike) -> Path:
        """Writes the predicted and the measured step as a Chrome trace, which ui.perfetto.dev opens; returns the path."""
        self._input.answer("predict", {**self._options, "timeline": path})
        return Path(path)

    def view(self, path: Optional[PathLike] = None) -> View:
        """Writes the step in the viewer as one HTML file, to `path` or to a temporary file. A notebook displays the result."""
        return view(self._input, path, device=self._shared("view").get("device"))

    def _shared(self, question: str) -> Dict[str, Value]:
        """The options of this prediction that other queries take. Raises UsageError for options that they do not."""
        if self._options.get("method") not in (None, "simulate") or self._options.get("keep_profiler"):
            raise UsageError(f"{question} needs a simulated step without the profiler: predict without method and keep_profiler")
        return {name: self._options.get(name) for name in _SHARED}

    def __repr__(self) -> str:
        place = f" on {self.device}" if self.device else ""
        return f"Prediction({self.raw['name']}{place}: {self.said()})"

    def __str__(self) -> str:
        """The report that the command line prints."""
        return self._input.text("predict", self._options).rstrip()

    def _repr_html_(self) -> str:
        head = _html.lines(repr(self)[len("Prediction(") : -1], self.doubts)
        return head + _html.bar(self.parts()) + self.ops[:10]._repr_html_()


def predict(
    what: Union[PathLike, Callable[..., Any]],
    batch: Any = None,
    *,
    device: Optional[str] = None,
    host: Optional[str] = None,
    host_speed: Optional[float] = None,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
    process: Optional[str] = None,
    method: Optional[str] = None,
    keep_profiler: bool = False,
    step: Optional[int] = None,
    rank: Optional[int] = None,
) -> Union[Prediction, JobPrediction]:
    """Predicts how long a training step takes. For a folder with the ranks of a job, returns a JobPrediction of all ranks together.

    what: a recording, a trace, an execution trace or a model description (.toml); or a function that trains on `batch`, of
        which one step is recorded on the device of its tensors (a CPU, the meta device) without keeping files.
    batch: argument of the function; without it, the function is called without arguments.
    device: GPU to predict for: the name of a shipped profile or the folder of a profile;
        without it, kernels keep their measured times.
    host: source of host times: "own", "default", or the file of a profile or probe.
    host_speed: factor on all host times of that profile, 0.05 to 50: 2 for a host half as fast.
    models: kernel models, "best", "paper", "analytic" or "learnt".
    indices: distribution of embedding lookups: "uniform", "zipf:1.05", "folded-zipf:1.2", or a file.
    tf32: run matrix products in TF32.
    process: state of the process, "profiled" or "fresh".
    method: "simulate", "paper", "paper-published" or "kernel-sum".
    keep_profiler: keep the profiler's own cost in the times.
    step, rank: number of a step or rank of the input; with either, one rank of a job is predicted by itself.

    Raises NotFound, InputError, UsageError; exceptions of a step function are passed on unchanged.
    """
    asked: Dict[str, Value] = {
        "device": device,
        "host": host,
        "host_speed": host_speed,
        "models": models,
        "indices": indices,
        "tf32": tf32,
        "process": process,
        "method": method,
        "keep_profiler": keep_profiler,
    }
    if callable(what):
        source = _recorded(what, batch)
    elif batch is not None:
        raise UsageError("batch is only for a step function; an input on disk has its own batch (p.what_if(batch=...) changes it)")
    else:
        source = Input(what, step, rank)
    found = source.answer("predict", asked)
    return JobPrediction(found, source, asked) if "ranks" in found else Prediction(found, source, asked)


def _recorded(step: Callable[..., Any], batch: Any) -> Input:
    """Records the execution trace of one step and reads it into memory."""
    from steptime.recording import record_ops

    with tempfile.TemporaryDirectory(prefix="steptime-") as folder:
        source = Input(record_ops(step, batch, Path(folder) / named_after(step)))
        source.open()
    return source


def named_after(step: Callable[..., Any]) -> str:
    """Name of a step function in answers."""
    name = str(getattr(step, "__name__", type(step).__name__))
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
