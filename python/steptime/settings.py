"""Settings of a recording, with defaults and limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Optional, Tuple

from steptime.errors import UsageError


# Approximate duration of a window, unless `steps` is given.
WINDOW_SECONDS = 1.0
# Limits of the number of steps in a window.
STEPS_RANGE = (20, 250)
# Duration and limits of the profiled steps: the speed of a host changes within tenths of a second, and a trace should stay small.
PROFILED_SECONDS = 0.3
PROFILED_RANGE = (20, 60)
# Steps under the profiler before the first one that it keeps, while it allocates its buffers.
PROFILER_WARMUP = 5


@dataclass(frozen=True)
class Settings:
    """Settings of a recording.

    windows: number of un-profiled windows, about half of them before the profiled part, the rest after it.
    steps: steps in each window; None chooses 20 to 250 from the speed of the warm-up.
    profiled: steps in kineto.json.gz; None chooses 20 to 60 likewise.
    warmup: steps before anything is timed.
    sync_events: record `cuda_sync` events with Kineto, if this PyTorch supports them.
    probe: measure the host as well (a few seconds): `steptime.host`, `steptime.pulse`.
    """

    windows: int = 5
    steps: Optional[int] = None
    profiled: Optional[int] = None
    warmup: int = 10
    sync_events: bool = True
    probe: bool = True

    def __post_init__(self) -> None:
        least = {"windows": 2, "steps": 2, "profiled": 1, "warmup": 1}
        for name, minimum in least.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                raise UsageError(f"{name} is {value}, but must be at least {minimum}")

    @property
    def windows_before(self) -> int:
        """Number of windows before the profiled part: the larger half."""
        return (self.windows + 1) // 2

    def steps_per_window(self, step_seconds: float) -> int:
        """Number of steps in a window, for a warm step of `step_seconds`."""
        if self.steps is not None:
            return self.steps
        return _as_long_as(WINDOW_SECONDS, step_seconds, STEPS_RANGE)

    def profiled_steps(self, step_seconds: float) -> int:
        """Number of steps in kineto.json.gz, for a warm step of `step_seconds`."""
        if self.profiled is not None:
            return self.profiled
        return _as_long_as(PROFILED_SECONDS, step_seconds, PROFILED_RANGE)

    def enough_steps(self) -> int:
        """Number of steps that suffice for the whole recording, for steps of any duration."""
        in_windows = self.windows * (self.steps or STEPS_RANGE[1])
        return self.warmup + in_windows + PROFILER_WARMUP + (self.profiled or PROFILED_RANGE[1]) + 1

    def as_dict(self) -> Dict[str, Any]:
        """The settings as fields of meta.json."""
        return asdict(self)


def _as_long_as(seconds: float, step_seconds: float, limits: Tuple[int, int]) -> int:
    fewest, most = limits
    return max(fewest, min(most, round(seconds / max(step_seconds, 1e-9))))


def choose(*layers: Dict[str, Any]) -> Settings:
    """Settings from dictionaries: earlier ones take precedence, and None is ignored."""
    known = {field.name for field in fields(Settings)}
    chosen: Dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name in known and value is not None:
                chosen.setdefault(name, value)
    return Settings(**chosen)
