"""The ranks of a job: their step predicted together, and what they did as recorded."""

from __future__ import annotations

from typing import Any, List, Mapping, NoReturn, Optional, Tuple

from steptime import _html
from steptime._answer import Answer, Raw
from steptime._ask import Input, Value
from steptime.errors import UsageError
from steptime.side import Timed
from steptime.table import Table

# What a Prediction of one rank has, and that of a job has not.
OF_ONE_RANK = (
    *("active_ms", "families", "fits", "idle", "idle_by_name", "kernels", "modules", "ops", "peak_mb", "phases"),
    *("choose", "compare", "explain", "roofline", "timeline", "view", "what_if"),
)
# What a device does, see `Together.ranks`: these add up to the step.
PARTS = {"computes_ms": "computes", "moves_ms": "moves data", "waits_ms": "waits for others", "idles_ms": "idles"}


class Together(Raw):
    """Ranks that meet in collectives."""

    @property
    def world(self) -> int:
        """How many ranks the job has, also where not all of them are here."""
        return int(self.raw["world"])

    @property
    def ranks(self) -> Table:
        """What each rank's device does in a step, in milliseconds: it computes, moves data, waits for other ranks, idles; of a
        predicted step also its step if no other rank kept it waiting, and its part of the critical path."""
        return self.table("ranks")

    @property
    def collectives(self) -> Table:
        """The collectives of a step, in order: op, ranks, bytes, milliseconds once all ranks are there, which rank comes last, and
        how long each of its ranks waits for the others."""
        return self.table("collectives")

    def parts(self) -> List[Tuple[str, float]]:
        """What the step consists of, in milliseconds: what a device does, the mean over ranks."""
        ranks = self.ranks
        return [(name, sum(ranks[part]) / len(ranks)) for part, name in PARTS.items()] if len(ranks) else []

    def _shown(self, *more: str) -> str:
        """The parts as a bar, and what of the ranks a notebook shows."""
        columns = ("rank", *PARTS, *more)
        return _html.bar(self.parts()) + _html.table(columns, list(self.ranks))


class JobPrediction(Together, Timed, Answer):
    """A predicted step of a job, all ranks together.

    >>> rank = {"rank": 0, "computes_ms": 2.0, "moves_ms": 0.5, "waits_ms": 0.0, "idles_ms": 0.5}
    >>> p = JobPrediction({"name": "two", "world": 2, "step_ms": 3.0, "interval_ms": [2.8, 3.3], "ranks": [rank]}, Input("two"))
    >>> p
    JobPrediction(two, 2 ranks: step 3.000 ms, 90 % interval 2.800 to 3.300 ms)
    >>> p.parts()
    [('computes', 2.0), ('moves data', 0.5), ('waits for others', 0.0), ('idles', 0.5)]
    >>> hasattr(p, "what_if")
    False
    """

    def __init__(self, raw: Mapping[str, Any], source: Input, options: Optional[Mapping[str, Value]] = None) -> None:
        super().__init__(raw)
        self._input = source
        self._options = dict(options or {})

    @property
    def device(self) -> Optional[str]:
        """The GPU predicted for."""
        found = self.raw.get("device")
        return None if found is None else str(found)

    @property
    def samples_per_s(self) -> Optional[float]:
        """Samples a second, all ranks together; None where the batch is not known."""
        found = self.raw.get("samples_per_s")
        return None if found is None else float(found)

    @property
    def critical_path(self) -> Table:
        """The chain over all ranks that makes the step as long as it is, in order: rank, place, what, phase, milliseconds; the place
        `exchange` is data on its way between ranks."""
        return self.table("critical_path")

    def on(self, device: str) -> "JobPrediction":
        """The same question about another GPU."""
        asked = {**self._options, "device": device}
        return JobPrediction(self._input.answer("predict", asked), self._input, asked)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuses what is of a single rank, and says how to ask for one."""
        if name in OF_ONE_RANK:
            raise of_one_rank(name, self.world)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        place = f" on {self.device}" if self.device else ""
        return f"JobPrediction({self.raw['name']}, {self.world} ranks{place}: {self.said()})"

    def __str__(self) -> str:
        """The report that the command line prints."""
        return self._input.text("predict", self._options).rstrip()

    def _repr_html_(self) -> str:
        head = _html.lines(repr(self)[len("JobPrediction(") : -1], self.doubts)
        return head + self._shown("alone_ms", "critical_ms", "last")


class RecordedJob(Together):
    """What the ranks of a job did in a step as recorded, the profiler's cost included."""

    @property
    def steps(self) -> int:
        """How many steps all ranks recorded."""
        return int(self.raw["steps"])

    @property
    def period_ms(self) -> float:
        """From one step to the next, in milliseconds: the median."""
        return float(self.raw["period_ms"])

    @property
    def stragglers(self) -> Table:
        """Ranks that others wait for, the worst first: milliseconds a step that they wait, at which share of the collectives it came
        last, whether its host or its device is late, and what takes it longer."""
        return self.table("stragglers")

    @property
    def warnings(self) -> List[str]:
        """What speaks against it."""
        return [str(each) for each in self.raw.get("warnings", [])]

    def __repr__(self) -> str:
        return f"RecordedJob({self.world} ranks, {self.steps} steps: period {self.period_ms:.3f} ms, profiled)"

    def _repr_html_(self) -> str:
        return _html.lines(repr(self)[len("RecordedJob(") : -1], self.warnings) + self._shown() + self.stragglers._repr_html_()


class OfOneRank(UsageError, AttributeError):
    """Asked of a job what only a single rank can answer; `hasattr` takes it for a no."""


def of_one_rank(name: str, world: int) -> OfOneRank:
    """What is said where `name` is asked of a job."""
    return OfOneRank(f"{name} is of a single rank, and this is a job of {world}: predict one of its ranks with rank=N")
