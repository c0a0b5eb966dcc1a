"""Records random models in turn until the time is up."""

from __future__ import annotations

import gc
import itertools
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import torch

from steptime import checks, recording
from steptime.loop import Loop
from steptime.measure.draw import Draw
from steptime.measure.steps import cnn, mixed, recommender, transformer
from steptime.measure.steps.model import Model
from steptime.measure.steps.plan import Limits, kinds

BUILDERS: "dict[str, Callable[[Draw, Limits, str], Model]]" = {
    "recommender": recommender.build,
    "cnn": cnn.build,
    "transformer": transformer.build,
    "mixed": mixed.build,
}
# Slower steps are not recorded: their kernels are so long that earlier kernels hardly affect them.
SLOWEST_SECONDS = 0.06
# Only the profiled steps are used, so the other parts of a recording are as short as possible.
SETTINGS = {"windows": 2, "steps": 2, "profiled": 8, "warmup": 7}
# Number of failures in a row after which the GPU itself is assumed to have failed.
MOST_FAILURES = 6
# Number of steps before the step time is measured.
TRIAL = 3


class TooSlow(Exception):
    """A step is too slow to be recorded."""


@dataclass(frozen=True)
class Options:
    """Options of the command; `models`: stop after this many."""

    out: Path
    minutes: float
    seed: int
    device: str
    models: Optional[int] = None


def make(seed: int, index: int, kind: str, limits: Limits, device: str) -> Model:
    """Builds model `index` of a seed, reproducibly."""
    rng = Draw(f"steps/{seed}/{index}")
    torch.manual_seed(int(rng.random() * 2**31))
    return BUILDERS[kind](rng, limits, device)


def run(options: Options, limits: Limits) -> "Counter[str]":
    """Records until the time is up; returns numbers of models that were recorded, failed and were too slow.

    Existing recordings are kept, so that a second run continues where the first stopped.
    """
    end = time.monotonic() + 60 * options.minutes
    done: "Counter[str]" = Counter()
    failures = 0
    for index, kind in itertools.islice(kinds(), options.models):
        if time.monotonic() >= end:
            break
        out = options.out / f"steps_{options.seed}_{index:03}_{kind}"
        if out.exists():
            continue
        began = time.monotonic()
        result = _attempt(options, limits, index, kind, out)
        done[result.partition(":")[0]] += 1
        failures = failures + 1 if result.startswith("failed") else 0
        print(f"{out.name}: {result} ({time.monotonic() - began:.1f} s)", file=sys.stderr, flush=True)
        if failures == MOST_FAILURES:
            break  # the GPU itself has failed, and would fail for every later model of this process
        _tidy(options.device)
    return done


def _attempt(options: Options, limits: Limits, index: int, kind: str, out: Path) -> str:
    try:
        model = make(options.seed, index, kind, limits, options.device)
        if options.device != "cpu" and index % 4 == 0:
            model.pin()
        millis = 1e3 * _record(model, options.device, out)
    except TooSlow as slow:
        return f"too slow: {slow}"
    except Exception as error:  # out of memory, or an operator that this GPU lacks: the next model may succeed
        return f"failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return f"recorded: {millis:.2f} ms, {model.what}"


def _record(model: Model, device: str, out: Path) -> float:
    """Records the model; returns the seconds of a step."""
    step = model.step(device)
    loop = Loop(step, model.batches)
    for _ in range(TRIAL):
        loop.run()
    _synchronize(device)
    begin = time.perf_counter()
    loop.run()
    _synchronize(device)
    seconds = time.perf_counter() - begin
    if seconds > SLOWEST_SECONDS:
        raise TooSlow(f"{1e3 * seconds:.0f} ms, {model.what}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", checks.RecordWarning)  # windows of two steps are never steady
        recording.record(step, model.batches, out, model.batch, model=out.name, params=_parameters(model.module), **SETTINGS)
    return seconds


def _parameters(module: Any) -> int:
    return sum(each.numel() for each in module.parameters())


def _synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def _tidy(device: str) -> None:
    """Frees the memory of the last model, so that the next one starts as in a new process."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
