"""The ranks of a distributed job: their predicted step, and their recorded activity."""

from __future__ import annotations

from typing import Any, List, Mapping, NoReturn, Optional, Tuple

from steptime import _html
from steptime._answer import Answer, Raw
from steptime._ask import Input, Value
from steptime.errors import UsageError
from steptime.side import Timed
from steptime.table import Table

# Attributes that a Prediction of one rank has and a JobPrediction does not.
OF_ONE_RANK = (
    *("active_ms", "families", "fits", "idle", "idle_by_name", "kernels", "modules", "ops", "peak_mb", "phases"),
    *("choose", "compare", "explain", "roofline", "timeline", "view", "what_if"),
)
# Columns of `Together.ranks` that add up to the step, and their names in a notebook.
PARTS = {"computes_ms": "computes", "moves_ms": "moves data", "waits_ms": "waits for others", "idles_ms": "idles"}


class Together(Raw):
    """Ranks that meet in collectives."""

    @property
    def world(self) -> int:
        """Number of ranks of the job, including ranks that the input lacks."""
        return int(self.raw["world"])

    @property
    def ranks(self) -> Table:
        """Time of each rank's device in a step, in milliseconds: computing, moving data, waiting for other ranks, idle; of a
        predicted step also the rank's step time without waits for other ranks, and its part of the critical path."""
        return self.table("ranks")

    @property
    def collectives(self) -> Table:
        """The collectives of a step, in order: op, ranks, bytes, milliseconds from the arrival of the last rank, the last rank, and
        the wait of each rank for the others."""
        return self.table("collectives")

    def parts(self) -> List[Tuple[str, float]]:
        """Parts of the step in milliseconds, as means over ranks: computing, moving data, waiting, idle."""
        ranks = self.ranks
        return [(name, sum(ranks[part]) / len(ranks)) for part, name in PARTS.items()] if len(ranks) else []

    def _shown(self, *more: str) -> str:
        """HTML of the parts as a bar, and of the ranks as a table with the columns `more`."""
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
        """Samples per second of all ranks together; None where the batch size is not known."""
        found = self.raw.get("samples_per_s")
        return None if found is None else float(found)

    @property
    def critical_path(self) -> Table:
        """The critical path over all ranks, in order: rank, place, what, phase, milliseconds. The place `exchange` is data in transit
        between ranks."""
        return self.table("critical_path")

    def on(self, device: str) -> "JobPrediction":
        """Predicts the same input for another GPU."""
        asked = {**self._options, "device": device}
        return JobPrediction(self._input.answer("predict", asked), self._input, asked)

    def __getattr__(self, name: str) -> NoReturn:
        """Raises OfOneRank for attributes that only a single rank has; the message shows how to predict one rank."""
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
    """Recorded activity of the ranks of a job in a step, including the profiler's cost."""

    @property
    def steps(self) -> int:
        """Number of steps that all ranks recorded."""
        return int(self.raw["steps"])

    @property
    def period_ms(self) -> float:
        """Median time from one step to the next, in milliseconds."""
        return float(self.raw["period_ms"])

    @property
    def stragglers(self) -> Table:
        """Ranks that others wait for, the worst first: milliseconds that others wait per step, share of the collectives at which the
        rank arrived last, whether its host or its device is late, and the cause."""
        return self.table("stragglers")

    @property
    def warnings(self) -> List[str]:
        """Reasons to distrust the recorded activity."""
        return [str(each) for each in self.raw.get("warnings", [])]

    def __repr__(self) -> str:
        return f"RecordedJob({self.world} ranks, {self.steps} steps: period {self.period_ms:.3f} ms, profiled)"

    def _repr_html_(self) -> str:
        return _html.lines(repr(self)[len("RecordedJob(") : -1], self.warnings) + self._shown() + self.stragglers._repr_html_()


class OfOneRank(UsageError, AttributeError):
    """A job lacks an attribute that only a single rank has. As an AttributeError, it makes `hasattr` return False."""


def of_one_rank(name: str, world: int) -> OfOneRank:
    """The exception for access to attribute `name` of a job."""
    return OfOneRank(f"{name} needs a single rank, and this is a job of {world} ranks: predict one of them with rank=N")
