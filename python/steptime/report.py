"""Answers that are mostly tables: inspections, rooflines, differences, scores."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Union

from steptime import _html
from steptime._answer import Answer
from steptime._ask import Input, PathLike, Value, answer
from steptime.job import RecordedJob
from steptime.side import Side
from steptime.table import Table


class Report(Answer):
    """An answer whose lists are tables."""

    @property
    def tables(self) -> Dict[str, Table]:
        """Its tables by name; units stand in the names of their columns."""
        rows = {name: found for name, found in self.raw.items() if isinstance(found, list) and found and isinstance(found[0], dict)}
        return {name: Table(name, found) for name, found in rows.items()}

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({len(table)})" for name, table in self.tables.items())
        return f"{type(self).__name__}({self.raw.get('name', self.raw.get('command', ''))}: {tables})"

    def _repr_html_(self) -> str:
        return "".join(_html.lines(name, []) + table._repr_html_() for name, table in self.tables.items())


class Inspection(Report):
    """What is in an input.

    >>> found = inspect("examples/dlrm_default_2048")
    >>> found.threads["role"]
    ['main', 'autograd']
    """

    @property
    def threads(self) -> Table:
        """Host threads: role, ops and calls a step, busy milliseconds a step."""
        return self.table("threads")

    @property
    def streams(self) -> Table:
        """Streams of devices: kernels, copies, memsets, busy milliseconds a step."""
        return self.table("streams")

    @property
    def ops(self) -> Table:
        """Ops by name: count, host and device milliseconds a step, as measured."""
        return self.table("ops")

    @property
    def kernels(self) -> Table:
        """Kernels by name: count and device milliseconds a step, as measured."""
        return self.table("kernels")

    @property
    def overheads(self) -> Table:
        """The host's overheads T1 to T5, in microseconds: median, 10th and 90th percentile."""
        return self.table("overheads")

    @property
    def job(self) -> Optional[RecordedJob]:
        """What the ranks of a job did, and which kept the others waiting; None where the input is not ranks that meet."""
        found = self.raw.get("job")
        return RecordedJob(found) if found else None


class Roofline(Report):
    """How far each kernel is from what the device could do."""

    @property
    def kernels(self) -> Table:
        """Kernels: time in microseconds, bytes, flops, intensity (flops a byte), share of the attainable, what bounds each."""
        return self.table("kernels")


class Difference(Report):
    """Where the difference of two steps comes from. Columns hold two values each, of the first and of the second."""

    @property
    def first(self) -> Side:
        """The first step."""
        return Side(self.raw["a"])

    @property
    def second(self) -> Side:
        """The second step."""
        return Side(self.raw["b"])

    @property
    def longer(self) -> float:
        """How much longer the second takes, as a share of the first; negative where it is shorter."""
        return float(self.raw["longer"])

    @property
    def why(self) -> List[str]:
        """Where the difference comes from."""
        return [str(each) for each in self.raw["why"]]

    @property
    def ops(self) -> Table:
        """Ops whose time differs, in milliseconds."""
        return self.table("ops")


class Validation(Report):
    """Predictions beside what was measured."""

    @property
    def rows(self) -> Table:
        """The recordings: measured and predicted milliseconds, error, whether the interval holds."""
        return self.table("rows")

    @property
    def jobs(self) -> Table:
        """The jobs, where folders of ranks were given: measured and predicted milliseconds, error, whether the interval holds."""
        return self.table("jobs")


def inspect(what: PathLike, *, step: Optional[int] = None, rank: Optional[int] = None) -> Inspection:
    """What is in an input: steps, threads, streams, time by op and kernel, overheads."""
    return Inspection(Input(what, step, rank).answer("inspect", {}))


def roofline(
    what: PathLike,
    *,
    device: Optional[str] = None,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
    plot: Optional[PathLike] = None,
    step: Optional[int] = None,
    rank: Optional[int] = None,
) -> Roofline:
    """Each kernel against the roofline of a device; measured times without one. `plot` is an SVG to write."""
    options = {"device": device, "models": models, "indices": indices, "tf32": tf32, "plot": plot}
    return Roofline(Input(what, step, rank).answer("roofline", options))


def compare(a: PathLike, b: PathLike, *, device: Optional[str] = None, host: Optional[str] = None) -> Difference:
    """Where the difference of two inputs comes from."""
    return Difference(Input(a).answer("compare", {"device": device, "host": host}, Input(b)))


def validate(
    recordings: Union[PathLike, Sequence[PathLike]],
    *,
    host: Optional[str] = None,
    kernels: Optional[str] = None,
    lone: bool = False,
    replay_only: bool = False,
) -> Validation:
    """Predictions of recordings, or of folders of recordings, beside their measured steps."""
    paths = [recordings] if isinstance(recordings, (str, bytes)) or hasattr(recordings, "__fspath__") else list(recordings)
    options: Dict[str, Value] = {"host": host, "kernels": kernels, "lone": lone, "replay_only": replay_only}
    return Validation(answer(["validate", *map(str, paths)], options))
