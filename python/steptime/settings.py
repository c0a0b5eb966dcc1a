"""How a recording is made: numbers, their defaults and their limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Dict, Optional, Tuple

from steptime.errors import UsageError


# A window lasts about this long unless `steps` is given ...
WINDOW_SECONDS = 1.0
# ... within these numbers of steps.
STEPS_RANGE = (20, 250)
# The same for the profiled steps: a host changes its speed within tenths of a second, and a trace should stay small.
PROFILED_SECONDS = 0.3
PROFILED_RANGE = (20, 60)
# Steps that the profiler runs along with before the first one it keeps: its buffers are made then.
PROFILER_WARMUP = 5


@dataclass(frozen=True)
class Settings:
    """Numbers of a recording.

    windows: un-profiled windows, about half of them before the profiled part, the rest after it.
    steps: steps in each window; None chooses 20 to 250 from the speed of the warm-up.
    profiled: steps in kineto.json.gz; None chooses 20 to 60 likewise.
    warmup: steps run before anything is timed.
    sync_events: ask Kineto for `cuda_sync` events, where this PyTorch can give them.
    probe: measure the host beside the step (a few seconds): `steptime.host`, `steptime.pulse`.
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
        """Windows before the profiled part: the larger half."""
        return (self.windows + 1) // 2

    def steps_per_window(self, step_seconds: float) -> int:
        """Steps in a window, given how long a warm step takes."""
        if self.steps is not None:
            return self.steps
        return _as_long_as(WINDOW_SECONDS, step_seconds, STEPS_RANGE)

    def profiled_steps(self, step_seconds: float) -> int:
        """Steps in kineto.json.gz, given how long a warm step takes."""
        if self.profiled is not None:
            return self.profiled
        return _as_long_as(PROFILED_SECONDS, step_seconds, PROFILED_RANGE)

    def enough_steps(self) -> int:
        """Number of steps that are enough for the whole recording, however short they are."""
        in_windows = self.windows * (self.steps or STEPS_RANGE[1])
        return self.warmup + in_windows + PROFILER_WARMUP + (self.profiled or PROFILED_RANGE[1]) + 1

    def as_dict(self) -> Dict[str, Any]:
        """For meta.json."""
        return asdict(self)


def _as_long_as(seconds: float, step_seconds: float, limits: Tuple[int, int]) -> int:
    fewest, most = limits
    return max(fewest, min(most, round(seconds / max(step_seconds, 1e-9))))


def choose(*layers: Dict[str, Any]) -> Settings:
    """Settings from dictionaries, the first that names a number deciding it; None does not count."""
    known = {field.name for field in fields(Settings)}
    chosen: Dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name in known and value is not None:
                chosen.setdefault(name, value)
    return Settings(**chosen)
