"""Device and host profiles, kernel predictions, and launch orders of embedding lookups."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from steptime._ask import PathLike, Value, answer, text
from steptime.report import Report
from steptime.table import Table


def devices() -> Table:
    """The shipped device profiles: name, specification, and the data that each was fitted on.

    >>> "h200" in devices()["name"]
    True
    """
    return Table("devices", json.loads(text("device list", {"json": True})))


def device_profile(name: PathLike) -> Report:
    """A device profile, by the name of a shipped one or by its folder: specification, kernel families, scores."""
    return Report(answer("device show", {"name": name}))


def host_profile(file: Optional[PathLike] = None) -> Dict[str, Any]:
    """A host profile as a dictionary: that of `file`, or the shipped one. Times are in microseconds."""
    return answer("host show", {"file": file})


def fit_host_profile(recordings: Sequence[PathLike], output: PathLike, others: Sequence[PathLike] = ()) -> str:
    """Fits a host profile on recordings and writes it to `output`; returns the output of the command line."""
    return text("host fit", {"recordings": list(recordings), "others": list(others), "output": output})


def fit_device_profile(
    sweeps: Sequence[PathLike],
    output: PathLike,
    *,
    onto: Optional[PathLike] = None,
    spec: Optional[PathLike] = None,
    steps: Sequence[PathLike] = (),
    without: Sequence[PathLike] = (),
    search: Optional[str] = None,
    seed: Optional[int] = None,
) -> str:
    """Fits a device profile on sweeps (`python -m steptime.measure`) and writes its folder; returns the output of the command line."""
    options: Dict[str, Value] = {
        "sweeps": list(sweeps),
        "onto": onto,
        "spec": spec,
        "steps": list(steps),
        "without": list(without),
        "search": search,
        "seed": seed,
        "output": output,
    }
    return text("device fit", options)


def kernels(
    queries: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
    *,
    device: str,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
) -> List[Dict[str, Any]]:
    """Predicts the kernels of ops: one answer per query, times in microseconds.

    >>> found = kernels({"op": "aten::relu", "shapes": [[512, 512]]}, device="h200")
    >>> found[0]["kernels"][0]["family"]
    'elementwise'

    Raises InputError, naming the query, if one of them cannot be answered.
    """
    asked = [queries] if isinstance(queries, Mapping) else list(queries)
    lines = "".join(json.dumps(query) + "\n" for query in asked)
    options: Dict[str, Value] = {"device": device, "models": models, "indices": indices, "tf32": tf32, "json": True}
    return [json.loads(line) for line in text("kernels predict", options, given=lines).splitlines()]


def gather_plan(
    rows: int,
    dim: int,
    lookups: int,
    *,
    zipf: Optional[float] = None,
    indices: Optional[PathLike] = None,
    device: str = "h200",
) -> Report:
    """Reads from device memory of each launch order of embedding lookups: `lookups` rows of a table of `rows` x `dim` floats."""
    options: Dict[str, Value] = {"rows": rows, "dim": dim, "lookups": lookups, "zipf": zipf, "indices": indices, "device": device}
    return Report(answer("gather-plan", options))
