"""Comparison of a step on several GPUs and batch sizes."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from steptime import _html
from steptime._answer import Answer
from steptime._ask import Input, PathLike, Value
from steptime.errors import UsageError
from steptime.table import Table

# Columns of a table of GPUs that have the same names in an answer.
_POINT = ("batch", "step_ms", "samples_per_s", "fits", "bound", "saved_by_gpu", "host_bound", "cost")


class Choice(Answer):
    """A step on several GPUs, the best first.

    >>> found = choose("examples/resnet50_32", device=["h100", "t4"])
    >>> found.gpus
    ['h100', 't4']
    >>> found.recorded["batch"]
    [32, 32]
    >>> found.largest["fits"]
    [True, True]
    """

    def __init__(self, raw: Mapping[str, Any], source: Input, options: Mapping[str, Value]) -> None:
        super().__init__(raw)
        self._input = source
        self._options = dict(options)

    @property
    def gpus(self) -> List[str]:
        """The GPUs, the best first: by cost where prices are given, else by samples a second at the largest batch that fits."""
        return [str(gpu["name"]) for gpu in self.raw["gpus"]]

    @property
    def says(self) -> List[str]:
        """Conclusions in sentences: where the host bounds the step, which GPUs are too close to rank, which changes make the step fit."""
        return [str(each) for each in self.raw["says"]]

    @property
    def recorded(self) -> Table:
        """Each GPU at the recorded batch size: step time in milliseconds, samples per second, peak memory and memory of the GPU in
        megabytes, bound of the step, cost per billion samples, and samples per second relative to the first GPU with its interval."""
        return Table("recorded", [_row(gpu, gpu["recorded"]) for gpu in self.raw["gpus"]])

    @property
    def largest(self) -> Table:
        """The same columns at the largest batch size that leaves a tenth of the memory free; GPUs without a known one are left out."""
        return Table("largest", [_row(gpu, gpu["largest"]) for gpu in self.raw["gpus"] if gpu["largest"]])

    @property
    def remedies(self) -> Table:
        """Changes tried where the recorded batch does not fit: options of the command line, whether the step fits with them,
        milliseconds, samples per second, peak megabytes, or the reason why they do not apply."""
        return Table("remedies", [{"gpu": gpu["name"], **each} for gpu in self.raw["gpus"] for each in gpu["remedies"]])

    def __repr__(self) -> str:
        return f"Choice({self.raw['name']}: {', '.join(self.gpus)})"

    def __str__(self) -> str:
        """The report that the command line prints."""
        return self._input.text("choose", self._options).rstrip()

    def _repr_html_(self) -> str:
        return _html.lines(repr(self)[len("Choice(") : -1], [*self.doubts, *self.says]) + self.largest._repr_html_() + self.recorded._repr_html_()


def _row(gpu: Mapping[str, Any], point: Mapping[str, Any]) -> Dict[str, Any]:
    """The row of a GPU at one batch size."""
    ratio, (low, high), peak = point["of_first"] or {}, point["interval_ms"], point["peak_mb"] or {}
    row = {"gpu": gpu["name"], **{name: point[name] for name in _POINT}}
    ends = ratio.get("interval") or (None, None)
    sides = {"low_ms": low, "high_ms": high, "peak_mb": peak.get("total"), "memory_mb": gpu["memory_mb"]}
    return {**row, **sides, "of_first": ratio.get("times"), "of_first_low": ends[0], "of_first_high": ends[1], "sure": ratio.get("sure")}


def choose(
    what: Union[PathLike, Input],
    *,
    device: Union[str, Sequence[str]] = "all",
    price: Optional[PathLike] = None,
    recorded_batch: Optional[int] = None,
    host: Optional[str] = None,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
    step: Optional[int] = None,
    rank: Optional[int] = None,
) -> Choice:
    """Compares GPUs and batch sizes: what fits, step time, bound, cost, and how certain the order is.

    what: a recording with an execution trace, an execution trace, or a model description (.toml).
    device: names or folders of profiles, or "all" for all shipped ones.
    price: a TOML file with prices per GPU-hour, one line per GPU: h100 = 2.50.
    recorded_batch: batch size of the recorded step in samples, where the recording does not have it.
    host, models, indices, tf32: as in `predict`.
    """
    named = device if isinstance(device, str) else list(device)
    if not named:
        raise UsageError("device names no GPU: give names, or \"all\"")
    options: Dict[str, Value] = {"device": named, "price": price, "recorded_batch": recorded_batch}
    options.update({"host": host, "models": models, "indices": indices, "tf32": tf32})
    source = what if isinstance(what, Input) else Input(what, step, rank)
    return Choice(source.answer("choose", options), source, options)
