"""Records only the execution trace of a step: in seconds instead of the minutes of a full recording, on any device.

The step runs twice: once so that the optimizer has its state, and once observed. A rank of a job runs it three times, because
DistributedDataParallel reorders its buckets in the second step. Nothing is timed, so tensors may be fake:
on the `meta` device, or under `FakeTensorMode`, a model larger than the machine's memory is recorded by its shapes alone.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set

from steptime import describe, folder
from steptime.autocast_lists import CudaLists
from steptime.checks import COMPILED
from steptime.clipping import ForeachClipping
from steptime.errors import NothingRecorded
from steptime.identity import Identity
from steptime.loop import Loop

# Names of autograd functions begin with ENGINE, those of optimizer steps with OPTIMIZER.
ENGINE, OPTIMIZER = "autograd::engine::", "Optimizer.step"
# Exceptions of fake tensors where an op reads values.
WITHOUT_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException")


def make(loop: Loop, out: Path, backend: Any, about: Dict[str, Any], facts: Dict[str, Any], overwrite: bool = False, quiet: bool = False) -> List[str]:
    """Writes `et.json.gz` and `meta.json` into `out`; returns warnings."""
    say = _silent if quiet else _loud
    with folder.whole(out, overwrite) as partial:
        say("one step so that everything is there")
        began = time.perf_counter()
        identity, lists = Identity(backend.torch), CudaLists(backend.torch)
        with lists, Autocasts() as autocasts, backend.observed(), identity, _wanted_values():
            loop.run()
        if _is_a_rank(backend.torch):
            with lists, _wanted_values():
                loop.run()
        say(f"one step watched (the first took {time.perf_counter() - began:.1f} s)")
        trace = partial / "et.json"
        with lists, ForeachClipping(backend.torch), identity.shown(), _wanted_values():
            loop.follow(backend.record_ops(trace))
        found = Found(_nodes(trace))
        warned = found.problems() + autocasts.problems(found)
        kind = f", {found.kind} tensors" if found.kind else ""
        say(f"{found.ops} ops{kind}")
        folder.compress(trace, partial / folder.EXECUTION_TRACE)
        about = describe.given(about, describe.guess_batch(loop.first_batch))
        noted = backend.modules()
        if loop.first_batch is not None:  # an argument of the step is the batch, even if it is the same in each step
            noted.pop("kept_inputs", None)
        meta = {**about, **backend.machine(), **backend.settings(), **facts, **noted, "record": {"only": "et", "warnings": warned}}
        (partial / folder.META).write_text(json.dumps(meta) + "\n", encoding="utf-8")
    say(f"done: {out}")
    if not quiet:
        print(f"steptime predict {out} --device h200")
    return [*warned, *describe.assumed(about)]


def _is_a_rank(torch: Any) -> bool:
    """Whether this process is a rank of a distributed job."""
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


@contextlib.contextmanager
def _wanted_values() -> Iterator[None]:
    """Turns errors of a step that needs the values of fake or meta tensors into NothingRecorded with the reason."""
    try:
        yield
    except RuntimeError as error:
        line = str(error).partition("\n")[0]
        said, fake = line.partition(". ")[0], type(error).__name__ in WITHOUT_VALUES
        if "SparseMeta" in said:
            why = f"PyTorch has no such op for sparse tensors on the meta device ({said}): use dense gradients (sparse=False)"
        elif fake or "meta" in line or "Meta" in said:
            those = "fake tensors" if fake else "tensors on the meta device"
            why = (
                f"the step needs values, and {those} have none ({said}): leave out what reads them "
                "(a GradScaler, .item(), an optimizer with fused=True)"
            )
        else:
            raise
        raise NothingRecorded(f"{why}, or record it on the CPU") from error


class Autocasts:
    """Notes the device types for which a step enters autocast."""

    def __init__(self) -> None:
        import torch

        self.kinds: Set[str] = set()
        self.fake = False
        self._torch = torch
        self._class = torch.amp.autocast_mode.autocast
        self._enter = self._class.__enter__

    def __enter__(self) -> "Autocasts":
        enter = self._enter

        def noted(context: Any) -> Any:
            kind = str(context.device)
            # Checkpoints enter contexts that are not enabled. Without a GPU, contexts for CUDA are not enabled either.
            if getattr(context, "_enabled", True) or (kind != "cpu" and not self._torch.cuda.is_available()):
                self.kinds.add(kind)
                self.fake = self.fake or _fakes()
            return enter(context)

        setattr(self._class, "__enter__", noted)
        return self

    def __exit__(self, *_: object) -> None:
        setattr(self._class, "__enter__", self._enter)

    def problems(self, found: "Found") -> List[str]:
        """Warnings for autocast of a device type that no tensor was on."""
        if not found.devices:
            return []
        # Ops of fake tensors call those of the meta device, although the tensors are on another device.
        there = set() if found.kind == "meta" and not self.fake else {device.split(":")[0] for device in found.devices}
        unheard = sorted(self.kinds - there)
        return [
            f'torch.autocast("{kind}") does nothing for tensors that are not there: the step was recorded without it; '
            'ask for it of the prediction, what_if(dtype="bf16") or --dtype bf16, '
            'or record it with torch.autocast("cpu") on the CPU, which tensors on "meta" do not hear'
            for kind in unheard
        ]


def _fakes() -> bool:
    """Whether a FakeTensorMode is active."""
    from torch.utils import _python_dispatch

    modes: List[Any] = getattr(_python_dispatch, "_get_current_dispatch_mode_stack", list)()
    return any(type(mode).__name__ == "FakeTensorMode" for mode in modes)


class Found:
    """Contents of an execution trace, as far as warnings depend on them."""

    def __init__(self, nodes: List[Dict[str, Any]]) -> None:
        names = [node.get("name", "") for node in nodes]
        self.ops = sum(name.startswith("aten::") for name in names)
        self.compiled = any(COMPILED in name for name in names)
        self.backward = any(name.startswith(ENGINE) for name in names)
        self.cut_short = _is_cut_short(nodes)
        self.optimizer = any(name.startswith(OPTIMIZER) for name in names)
        self.devices = {tensor[5] for node in nodes for tensor in _tensors(node) if tensor[4]}
        self.addressed = any(tensor[1] for node in nodes for tensor in _tensors(node) if tensor[3])

    @property
    def kind(self) -> Optional[str]:
        """Kind of tensors without memory, "meta" or "fake"; None for real tensors."""
        if "meta" in self.devices:
            return "meta"
        return None if self.addressed or not self.ops else "fake"

    def problems(self) -> List[str]:
        """Warnings about the trace. Raises NothingRecorded if it has no ops."""
        if not self.ops:
            raise NothingRecorded(
                "the step ran and no op was seen: it must call PyTorch in this process and thread "
                + ("and not be compiled: leave torch.compile out" if self.compiled else "(not in a subprocess)")
            )
        found = []
        if self.compiled:
            found.append("part of the step is compiled, and what is inside is not seen: record it without torch.compile")
        if self.cut_short:
            found.append(
                "a checkpoint (use_reentrant=False) ended early, and PyTorch recorded what came after inside it: record the step "
                "without checkpoints, and ask for them of the prediction, what_if(checkpoint=...) or --checkpoint"
            )
        if not self.backward:
            found.append("no backward pass was seen: the step should call loss.backward()")
        elif not self.optimizer:
            found.append("no optimizer's step was seen: the step should call optimizer.step()")
        return found


def _is_cut_short(nodes: List[Dict[str, Any]]) -> bool:
    """Whether autograd functions are nested in others that do not call the engine: a function that an exception ended is left open."""
    parents = {node["id"]: node for node in nodes if "id" in node}
    for node in nodes:
        around = parents.get(node.get("ctrl_deps"))
        if not node.get("name", "").startswith(ENGINE) or around is None:
            continue
        names = []
        while around is not None and around is not parents.get(around.get("ctrl_deps")):
            names.append(around.get("name", ""))
            around = parents.get(around.get("ctrl_deps"))
        engine = [at for at, name in enumerate(names) if name.startswith(ENGINE)]
        # A function that calls the engine again is written in Python: its name does not end in a digit.
        if engine and names[engine[0] - 1][-1:].isdigit():
            return True
    return False


def _tensors(node: Dict[str, Any]) -> List[List[Any]]:
    """Tensors among the arguments and results of a node: `[tensor, storage, offset, elements, bytes of an element, device]`."""
    return [
        value
        for side in ("inputs", "outputs")
        for value in node.get(side, {}).get("values", ())
        if isinstance(value, list) and len(value) == 6 and isinstance(value[5], str)
    ]


def _nodes(trace: Path) -> List[Dict[str, Any]]:
    try:
        with open(trace, encoding="utf-8", errors="replace") as source:
            nodes: List[Dict[str, Any]] = json.load(source).get("nodes", [])
            return nodes
    except (OSError, ValueError) as error:
        raise NothingRecorded(f"PyTorch's ExecutionTraceObserver wrote nothing that can be read: {error}") from error


def _silent(_: str) -> None:
    """Prints nothing."""


def _loud(what: str) -> None:
    print(f"steptime: {what}", file=sys.stderr, flush=True)
