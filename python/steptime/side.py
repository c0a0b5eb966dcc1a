"""The figures of a step in any answer: its time and interval; for one rank also idle time and memory."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from steptime import _ask, _html
from steptime._answer import Raw


class Timed(Raw):
    """The time of a step: of one rank, or of all ranks of a job."""

    @property
    def step_ms(self) -> float:
        """Time from one step to the next, in milliseconds."""
        return float(self.raw["step_ms"])

    @property
    def interval_ms(self) -> Optional[Tuple[float, float]]:
        """90 % interval of the step time, in milliseconds; None for simpler methods."""
        found = self.raw.get("interval_ms")
        return (float(found[0]), float(found[1])) if found else None

    def said(self) -> str:
        """The step and its interval in words."""
        words = f"step {self.step_ms:.3f} ms"
        if self.interval_ms is not None:
            words += f", 90 % interval {self.interval_ms[0]:.3f} to {self.interval_ms[1]:.3f} ms"
        return words


class Side(Timed):
    """The figures of a step of one rank."""

    @property
    def active_ms(self) -> Optional[float]:
        """Active time of the device in a step, in milliseconds."""
        found = self.raw.get("active_ms")
        return None if found is None else float(found)

    @property
    def idle(self) -> Dict[str, float]:
        """Idle time of the device in milliseconds, by cause; causes are the keys of the JSON answer."""
        return {str(cause): float(ms) for cause, ms in self.raw.get("idle_ms", {}).items()}

    @property
    def peak_mb(self) -> Optional[Dict[str, float]]:
        """Peak device memory of tensors, in megabytes: `total`, and by kind; None where not known."""
        found = self.raw.get("peak_mb")
        return {str(kind): float(mb) for kind, mb in found.items()} if found else None

    @property
    def samples_per_s(self) -> Optional[float]:
        """Samples per second; None where the batch size is not known."""
        found = self.raw.get("samples_per_s")
        return None if found is None else float(found)

    @property
    def fits(self) -> Optional[bool]:
        """Whether the peak memory fits the GPU and leaves a tenth of its memory free; None where either is not known."""
        found = self.raw.get("fits")
        return None if found is None else bool(found)

    def idle_by_name(self) -> List[Tuple[str, float]]:
        """Idle time in milliseconds by cause, with the names that the command line and the viewer print."""
        names = dict(_ask.core().idle_causes())
        return [(names.get(cause, cause), ms) for cause, ms in self.idle.items()]

    def parts(self) -> List[Tuple[str, float]]:
        """Parts of the step in milliseconds: the device active, and idle by cause."""
        active = [] if self.active_ms is None else [("active", self.active_ms)]
        return active + self.idle_by_name()

    def __repr__(self) -> str:
        return f"Side({self.said()})"

    def _repr_html_(self) -> str:
        return _html.lines(self.said(), []) + _html.bar(self.parts())
