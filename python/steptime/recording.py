"""Makes a recording: un-profiled windows, profiled steps, one step in full, un-profiled windows again."""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Union

from steptime import checks, describe, execution, folder
from steptime.errors import UsageError
from steptime.host import NoProbe
from steptime.loop import Loop, Plan, Window, time_window
from steptime.profiling import TorchProfiler
from steptime.pulse import NoPulse, Pulses, apart
from steptime.settings import Settings, choose
from steptime.stats import median, quantiles

PathLike = Union[str, "os.PathLike[str]"]


@dataclass
class Command:
    """Options of the command line under which a script runs, and the recordings that the script has made so far."""

    out: Optional[Path] = None
    overwrite: bool = False
    only: Optional[str] = None
    settings: Dict[str, Any] = field(default_factory=dict)
    made: List[Path] = field(default_factory=list)


# Set by `python -m steptime record` while it runs a script.
command = Command()


def record(
    step: Callable[..., Any],
    data: Optional[Iterable[Any]] = None,
    out: Optional[PathLike] = None,
    batch: Optional[int] = None,
    *,
    model: Any = None,
    params: Optional[int] = None,
    windows: Optional[int] = None,
    steps: Optional[int] = None,
    profiled: Optional[int] = None,
    warmup: Optional[int] = None,
    sync_events: Optional[bool] = None,
    probe: Optional[bool] = None,
    only: Optional[str] = None,
    overwrite: bool = False,
) -> Path:
    """Records a training step into the folder `out` and returns its path.

    step: trains on one batch, an element of `data`, or takes no argument if `data` is None. It should contain all work of a real
        step (moving the batch to the GPU, `zero_grad`, `loss.item()`).
    data: a list of batches, a DataLoader or another iterable; started over when it ends.
    out: the folder to make. It appears when the recording is complete, and not at all if `step` raises.
    batch: batch size in samples, for meta.json; guessed from the first batch if not given.
    model: a name, or the nn.Module itself.
    params: number of parameters; counted in `model`, or in the modules that `step` refers to, if not given.
    windows, steps, profiled, warmup, sync_events, probe: see `settings.Settings`.
    only: "et" records the execution trace of one step without times, see `execution`.
    overwrite: replace an existing recording at `out`.

    The un-profiled times, above all `step_ms`, are the reference for predictions. They are host times: the clock is read at step
    boundaries, and the device is synchronised before and after a window but never inside one, so that timing does not slow a step.
    `windows_ms` is wall time, synchronised at both ends, divided by the number of steps. If the host runs far ahead of the GPU,
    single host times are meaningless; only then `step_ms` and `quantiles_ms` come from `windows_ms`, and `record.step_ms_from`
    has the source. Only the windows before the profiler count: after it has run, CUPTI stays attached and every CUDA call is
    slower (an H200's host-bound steps took up to 36 % longer). The later windows are in `windows_ms` and `steps_ms`, after the
    first `record.windows_before` windows. For the same reason a second recording in one process is less accurate than the first:
    `process` is "fresh" if no profiler had run in the process before the windows that count, else "profiled".

    Raises UsageError for invalid arguments; exceptions of `step` are passed on unchanged.
    Issues RecordWarning if the windows before the profiler drift, or if the traces do not agree.
    """
    settings = choose(
        command.settings,
        {"windows": windows, "steps": steps, "profiled": profiled, "warmup": warmup, "sync_events": sync_events, "probe": probe},
    )
    target = _target(out)
    overwrite = overwrite or command.overwrite
    folder.check_free(target, overwrite)
    loop = Loop(step, data)
    backend = TorchProfiler(settings.sync_events)
    about = {"model": describe.model_name(model, step), "batch": batch}
    facts = {"params": params if params is not None else describe.count_parameters(model, step)}
    if _only(only):
        warned = execution.make(loop, target, backend, about, facts, overwrite)
    else:
        guess = lambda: describe.guess_batch(loop.first_batch)  # noqa: E731
        warned = loop.follow(make(target, settings, backend, about, facts, guess, overwrite))
    command.made.append(target)
    for message in warned:
        warnings.warn(message, checks.RecordWarning, stacklevel=2)
    return target


def record_ops(step: Callable[..., Any], batch: Any, out: Path) -> Path:
    """Records the execution trace of one step on `batch`, or of a step without arguments, into `out`, without output."""
    loop = Loop(step, None if batch is None else [batch])
    about = {"model": describe.model_name(None, step), "batch": None}
    facts = {"params": describe.count_parameters(None, step)}
    for message in execution.make(loop, out, TorchProfiler(False), about, facts, quiet=True):
        warnings.warn(message, checks.RecordWarning, stacklevel=4)
    return out


def _only(asked: Optional[str]) -> bool:
    """Whether only the execution trace is recorded."""
    chosen = asked if asked is not None else command.only
    if chosen not in (None, "et"):
        raise UsageError(f"only={chosen!r}: it is 'et', or left out")
    return chosen == "et"


def _target(out: Optional[PathLike]) -> Path:
    if out is not None:
        return Path(out).absolute()
    if command.out is None:
        raise UsageError("record() needs a folder to write: record(step, data, out=...)")
    target = command.out.absolute()
    if target in command.made:
        raise UsageError("the script records more than once: give each call its own out=...")
    return target


def make(
    out: Path,
    settings: Settings,
    backend: Any,
    about: Dict[str, Any],
    facts: Dict[str, Any],
    guess_batch: Callable[[], Optional[describe.Samples]],
    overwrite: bool = False,
) -> Plan[List[str]]:
    """Plan that makes the recording with `backend` (see `profiling.TorchProfiler`) and returns warnings."""
    with folder.whole(out, overwrite) as partial:
        seconds = yield from _warm_up(settings.warmup, backend)
        steps, profiled = settings.steps_per_window(seconds), settings.profiled_steps(seconds)
        every = apart(seconds, steps) if settings.probe else 0
        host: Any = backend.probe() if settings.probe else NoProbe()
        pulses = Pulses(host.pulse if settings.probe else NoPulse())
        host.before()
        before = yield from _windows(settings.windows_before, steps, backend, every, pulses.pulse, pulses.before)
        process = backend.process()
        yield from backend.record_timing(profiled, partial / "kineto.json", pulses)
        without = yield from backend.record_execution_trace(partial / "et.json", partial / "kineto_et.json")
        host.under()
        left = settings.windows - settings.windows_before
        after = yield from _windows(left, steps, backend, every, pulses.pulse, pulses.after)
        host.after()
        windows = before + after

        warned = _problems(before, partial) if without is None else _problems_without(before, without)
        about = describe.given(about, guess_batch())
        machine = {**backend.machine(), **backend.settings()}
        meta = {**about, **machine, **times(windows, len(before)), "process": process, **facts, **backend.peak_memory()}
        if without is None:
            meta.update(backend.modules())
        measured = {"host_probe": host.as_dict(), "pulses": pulses.as_dict()}
        meta.update({name: value for name, value in measured.items() if value is not None})
        meta["record"] = {
            **settings.as_dict(),
            "steps": steps,
            "profiled": profiled,
            "windows_before": len(before),
            "step_ms_from": "windows_ms" if checks.ran_ahead(before) else "steps_ms",
            "warnings": warned,
        }
        written = (folder.TIMING, folder.EXECUTION_TRACE, folder.TIMING_OF_EXECUTION_TRACE)
        for name in written if without is None else written[:1]:
            folder.compress(partial / name[: -len(".gz")], partial / name)
        (partial / folder.META).write_text(json.dumps(meta) + "\n", encoding="utf-8")
    return [*warned, *describe.assumed(about)]


def _windows(count: int, steps: int, backend: Any, every: int, pulse: Any, taken: List[Dict[str, float]]) -> Plan[List[Window]]:
    """Times `count` windows, and appends a pulse to `taken` after every `every` steps."""
    take = lambda: taken.append(pulse.take())  # noqa: E731
    windows = []
    for _ in range(count):
        windows.append((yield from time_window(steps, backend.synchronize, pulse=take, every=every)))
    return windows


def _warm_up(steps: int, backend: Any) -> Plan[float]:
    """Runs `steps` steps; returns the mean seconds of those of the second half. The last step of the first half is observed."""
    first = steps // 2
    for at in range(first):
        if at == first - 1:
            with backend.observed():
                yield
        else:
            yield
    backend.synchronize()
    begin = time.perf_counter()
    for _ in range(steps - first):
        yield
    backend.synchronize()
    return (time.perf_counter() - begin) / (steps - first)


def times(windows: List[Window], count: Optional[int] = None) -> Dict[str, Any]:
    """The times of meta.json, in ms; `step_ms` and its quantiles are those of the first `count` windows, or of all."""
    means = [window.mean_ms for window in windows]
    singles = [each for window in windows for each in window.undisturbed_ms]
    true = windows[:count]
    truth = means[:count] if checks.ran_ahead(true) else [each for window in true for each in window.undisturbed_ms]
    return {
        "step_ms": median(truth),
        "quantiles_ms": quantiles(truth),
        "windows_ms": means,
        "steps_ms": [round(each, 6) for each in singles],
    }


def _problems(windows: List[Window], partial: Path) -> List[str]:
    timing, execution_trace, single = (_load(partial / name) for name in ("kineto.json", "et.json", "kineto_et.json"))
    found = [
        checks.drift(windows),
        checks.same_ops(timing, single),
        checks.joined(execution_trace, single),
    ]
    return [each for each in found if each is not None]


def _problems_without(windows: List[Window], why: str) -> List[str]:
    """Warnings of a recording without the execution trace."""
    lost = f"recorded without the execution trace, which a prediction for another GPU needs: {why}"
    return [each for each in (checks.drift(windows), lost) if each is not None]


def _load(path: Path) -> Dict[str, Any]:
    with open(path, encoding="utf-8", errors="replace") as source:
        found: Dict[str, Any] = json.load(source)
        return found
