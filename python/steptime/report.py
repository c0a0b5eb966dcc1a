"""Answers that consist mostly of tables: inspections, rooflines, differences, validations."""

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
        """Tables by name; column names contain units."""
        rows = {name: found for name, found in self.raw.items() if isinstance(found, list) and found and isinstance(found[0], dict)}
        return {name: Table(name, found) for name, found in rows.items()}

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({len(table)})" for name, table in self.tables.items())
        return f"{type(self).__name__}({self.raw.get('name', self.raw.get('command', ''))}: {tables})"

    def _repr_html_(self) -> str:
        return "".join(_html.lines(name, []) + table._repr_html_() for name, table in self.tables.items())


class Inspection(Report):
    """Contents of an input.

    >>> found = inspect("examples/dlrm_default_2048")
    >>> found.threads["role"]
    ['main', 'autograd']
    """

    @property
    def threads(self) -> Table:
        """Host threads: role, ops and calls per step, busy milliseconds per step."""
        return self.table("threads")

    @property
    def streams(self) -> Table:
        """Streams of devices: kernels, copies, memsets, busy milliseconds per step."""
        return self.table("streams")

    @property
    def ops(self) -> Table:
        """Ops by name: count, host and device milliseconds per step, as measured."""
        return self.table("ops")

    @property
    def kernels(self) -> Table:
        """Kernels by name: count and device milliseconds per step, as measured."""
        return self.table("kernels")

    @property
    def overheads(self) -> Table:
        """The host's overheads T1 to T5, in microseconds: median, 10th and 90th percentile."""
        return self.table("overheads")

    @property
    def job(self) -> Optional[RecordedJob]:
        """Activity of the ranks of a job, and ranks that others wait for; None where the input is not ranks with common collectives."""
        found = self.raw.get("job")
        return RecordedJob(found) if found else None


class Roofline(Report):
    """Each kernel compared with the limits of the device."""

    @property
    def kernels(self) -> Table:
        """Kernels: time in microseconds, bytes, flops, arithmetic intensity (flops per byte), share of the attainable, bound."""
        return self.table("kernels")


class Difference(Report):
    """Causes of the difference between two steps. Columns hold two values each, of the first and of the second step."""

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
        """Difference of the second step's time to the first, as a share of the first; negative if the second is shorter."""
        return float(self.raw["longer"])

    @property
    def why(self) -> List[str]:
        """Sentences on the causes of the difference."""
        return [str(each) for each in self.raw["why"]]

    @property
    def ops(self) -> Table:
        """Ops whose time differs, in milliseconds."""
        return self.table("ops")


class Validation(Report):
    """Predicted and measured steps."""

    @property
    def rows(self) -> Table:
        """Recordings: measured and predicted milliseconds, error, whether the measurement is within the interval."""
        return self.table("rows")

    @property
    def jobs(self) -> Table:
        """Jobs, for folders of ranks: measured and predicted milliseconds, error, whether the measurement is within the interval."""
        return self.table("jobs")


def inspect(what: PathLike, *, step: Optional[int] = None, rank: Optional[int] = None) -> Inspection:
    """Reads an input: steps, threads, streams, time by op and kernel, overheads."""
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
    """Compares each kernel with the roofline of a device. Without `device`, times are the measured ones. `plot` is an SVG file to write."""
    options = {"device": device, "models": models, "indices": indices, "tf32": tf32, "plot": plot}
    return Roofline(Input(what, step, rank).answer("roofline", options))


def compare(a: PathLike, b: PathLike, *, device: Optional[str] = None, host: Optional[str] = None) -> Difference:
    """Compares the steps of two inputs: the causes of their difference."""
    return Difference(Input(a).answer("compare", {"device": device, "host": host}, Input(b)))


def validate(
    recordings: Union[PathLike, Sequence[PathLike]],
    *,
    host: Optional[str] = None,
    kernels: Optional[str] = None,
    lone: bool = False,
    replay_only: bool = False,
) -> Validation:
    """Compares predictions of recordings, or of folders of recordings, with their measured steps."""
    paths: List[PathLike] = [recordings] if isinstance(recordings, (str, bytes)) or hasattr(recordings, "__fspath__") else list(recordings)
    options: Dict[str, Value] = {"recordings": paths, "host": host, "kernels": kernels, "lone": lone, "replay_only": replay_only}
    return Validation(answer("validate", options))
