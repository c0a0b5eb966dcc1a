"""What-if queries: a step before and after changes."""

from __future__ import annotations

import difflib
import inspect
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from steptime import _html
from steptime._answer import Answer
from steptime._ask import Input, PathLike, Value
from steptime.errors import UsageError
from steptime.side import Side
from steptime.table import Table


class Changed(Answer):
    """A step before and after a change.

    >>> found = what_if("examples/dlrm_default_2048", cuda_graph=True)
    >>> found.after.step_ms < found.before.step_ms
    True
    >>> found.transforms["name"]
    ['cuda-graph']
    """

    @property
    def before(self) -> Side:
        """The step as it is."""
        return Side(self.raw["before"])

    @property
    def after(self) -> Side:
        """The step with the change."""
        return Side(self.raw["after"])

    @property
    def step_ms(self) -> float:
        """The step with the change, in milliseconds."""
        return self.after.step_ms

    @property
    def speedup(self) -> float:
        """Step time before the change divided by step time after it."""
        return float(self.raw["speedup"])

    @property
    def why(self) -> List[str]:
        """Sentences on the causes of the difference."""
        return [str(each) for each in self.raw["why"]]

    @property
    def transforms(self) -> Table:
        """Effects of each rule: name, reason, and numbers of removed, inserted and changed ops."""
        return self.table("transforms")

    def __repr__(self) -> str:
        return f"Changed({self.before.step_ms:.3f} to {self.after.step_ms:.3f} ms, {self.speedup:.2f} times as fast)"

    def _repr_html_(self) -> str:
        title = f"{self.before.said()} → {self.after.said()}: {self.speedup:.2f} times as fast"
        head = _html.lines(title, [*self.doubts, *self.why])
        return head + _html.bar(self.before.parts()) + _html.bar(self.after.parts()) + self.transforms._repr_html_()


def what_if(what: PathLike, *, step: Optional[int] = None, rank: Optional[int] = None, **changes: Any) -> Changed:
    """Predicts the step of an input with changes. `changes` are the keyword arguments of `change`."""
    return change(Input(what, step, rank), **known(changes))


def known(changes: Dict[str, Any]) -> Dict[str, Any]:
    """Returns `changes` as given. Raises UsageError for a name that is not a change."""
    names = set(inspect.signature(change).parameters) - {"source"}
    for name in changes:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"the changes are {', '.join(sorted(names))}"
            raise UsageError(f"{name!r} is not a change: {hint}")
    return changes


def change(
    source: Input,
    *,
    batch: Optional[int] = None,
    recorded_batch: Optional[int] = None,
    batch_dim: Optional[int] = None,
    set: Union[None, str, Mapping[str, int], Sequence[str]] = None,
    fuse: Union[None, str, Sequence[str]] = None,
    among: Union[None, str, Sequence[str]] = None,
    operators: Optional[str] = None,
    dtype: Optional[str] = None,
    channels_last: bool = False,
    prefetch_inputs: bool = False,
    reorder: bool = False,
    no_sync: bool = False,
    checkpoint: Union[bool, int] = False,
    blocks: Union[None, str, Sequence[str]] = None,
    remove: Union[None, str, Sequence[str]] = None,
    on_stream: Union[None, str, Sequence[str]] = None,
    streams: Optional[int] = None,
    accumulate: Optional[int] = None,
    cuda_graph: bool = False,
    host_speed: Optional[float] = None,
    plan: Optional[PathLike] = None,
    timeline: Optional[PathLike] = None,
    graph: Optional[PathLike] = None,
    device: Optional[str] = None,
    host: Optional[str] = None,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
) -> Changed:
    """Predicts a step with one or several changes.

    batch: new batch size in samples. recorded_batch, batch_dim: the recorded batch size and batch dimension, where they cannot be
        inferred.
    set: new sizes of the model, `{"tables[0].rows": 1_000_000}` or "tables[*].columns=64".
    fuse: "embedding-bags", "optimizer", "elementwise", "linear", "casts", "bias-gradients", "cross-entropy", "concat", or several.
    among: ops to fuse, selected as in `remove`; all if not given.
    operators: "steptime" or "fbgemm" for embedding tables.
    dtype: "tf32" or "bf16".
    channels_last, prefetch_inputs, reorder, no_sync, cuda_graph: True to apply that change.
    checkpoint: True for each block, or a number of segments.
    blocks: blocks to recompute: module paths, ["module:Net.down.*", "module:Net.up.*"], "depth:2" or "whole".
    remove: ops to leave out together with their gradient ops, "aten::dropout", "aten::*norm*", "ops[17]",
        "module:DLRM.bottom", or several.
    on_stream: ops of the forward pass to run on a stream of their own, selected as in `remove`.
    streams: number of CUDA streams for independent branches. accumulate: number of batches whose gradients each update sums.
    host_speed: factor on all host times: 0.5 for a host twice as fast.
    plan: a TOML file of changes. timeline, graph: output files, as on the command line.
    device, host, models, indices, tf32: as in `predict`.

    Raises NotApplicable, with the reason, where a change does not apply to the step.
    """
    sizes = [f"{path}={value}" for path, value in set.items()] if isinstance(set, Mapping) else _listed(set)
    options: Dict[str, Value] = {
        "batch": batch,
        "recorded_batch": recorded_batch,
        "batch_dim": batch_dim,
        "set": sizes,
        "fuse": _listed(fuse),
        "among": _listed(among),
        "operators": operators,
        "dtype": dtype,
        "channels_last": channels_last,
        "prefetch_inputs": prefetch_inputs,
        "reorder": reorder,
        "no_sync": no_sync,
        "checkpoint": checkpoint,
        "blocks": _listed(blocks),
        "remove": _listed(remove),
        "on_stream": _listed(on_stream),
        "streams": streams,
        "accumulate": accumulate,
        "cuda_graph": cuda_graph,
        "host_speed": host_speed,
        "plan": plan,
        "timeline": timeline,
        "graph": graph,
        "device": device,
        "host": host,
        "models": models,
        "indices": indices,
        "tf32": tf32,
    }
    return Changed(source.answer("whatif", options))


def _listed(value: Union[None, str, Sequence[str]]) -> List[str]:
    """One name or several, as a list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not all(isinstance(each, str) for each in value):
        raise UsageError(f"{value!r}: expected a name or a list of names")
    return list(value)
