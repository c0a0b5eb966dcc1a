"""Runs a batch of cases under PyTorch's profiler. A batch is set up and warmed before the profiler starts."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from steptime.measure.case import Case, Op
from steptime.measure.harvest import compact, region_name
from steptime.measure.tensors import Maker

WARMUPS, REPETITIONS = 2, 3
ONCE = 0.008  # seconds on the GPU above which a case runs only once
LONGEST = 0.040  # seconds, on the host or on the GPU, above which a case is left out
SCRATCH = 256_000_000  # largest number of bytes that an `after:` state writes
NAMES = {
    "torch.float32": "float", "torch.bfloat16": "c10::BFloat16", "torch.float16": "c10::Half", "torch.float64": "double",
    "torch.int64": "long int", "torch.int32": "int", "torch.bool": "bool", "torch.uint8": "unsigned char",
}  # fmt: skip


class TooSlow(Exception):
    """The call is too slow to be worth measuring."""


class DeviceFailed(Exception):
    """The GPU is unusable for the rest of this process."""


class Ready(NamedTuple):
    """A case that is warmed up and can be timed."""

    case: Case
    op: Op
    states: Tuple[str, ...]
    events: Tuple[Any, ...]  # before and after the last warm-up, on the GPU


class Runner:
    """The device, with buffers that bring its cache into a known state."""

    def __init__(self, torch: Any, device: str, l2_bytes: int) -> None:
        self.torch, self.device, self.l2_bytes = torch, device, l2_bytes
        self.on_gpu = device != "cpu"
        self.make = Maker(torch, device)
        self.skipped: Counter = Counter()
        self.tf32: Optional[bool] = None
        flushed = max(4 * l2_bytes, 64_000_000) if self.on_gpu else 4096
        self.large = torch.randn(flushed // 4, device=device)
        self.one = torch.zeros((), device=device)
        self.scratch = torch.ones(SCRATCH if self.on_gpu else 4096, dtype=torch.uint8, device=device)
        warnings.filterwarnings("ignore")

    # The state of the GPU --------------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def flush(self) -> None:
        """Replaces the contents of the cache by reading other memory."""
        self.torch.sum(self.large, dim=0, out=self.one)

    def overwrite(self, size: int) -> None:
        """Writes this many bytes to other memory."""
        self.scratch[:size].fill_(1)

    def allow_tf32(self, allowed: bool) -> None:
        if allowed != self.tf32:
            self.torch.backends.cuda.matmul.allow_tf32 = allowed
            self.tf32 = allowed

    def free(self) -> None:
        if self.on_gpu:
            self.torch.cuda.empty_cache()

    def free_if_full(self) -> None:
        """Frees unused memory before fragmentation leaves too little for the next batch."""
        if self.on_gpu:
            total = self.torch.cuda.get_device_properties(self.device).total_memory
            if self.torch.cuda.memory_reserved() > 0.6 * total:
                self.free()

    # A batch ---------------------------------------------------------------------------------------------------------

    def run(self, cases: List[Case], path: str) -> Dict[int, Dict[str, Any]]:
        """Times the cases into the trace file `path`, and returns the facts about them that the trace lacks."""
        ready = [each for each in map(self.ready, cases) if each is not None]
        try:
            self.synchronize()
        except RuntimeError as error:
            numbers = ", ".join(f"{case.number} ({case.what})" for case in cases)
            raise DeviceFailed(f"{error} in one of the cases {numbers}") from error
        activities = self.torch.profiler.ProfilerActivity
        chosen = [activities.CPU, activities.CUDA] if self.on_gpu else [activities.CPU]
        done = []
        with self.torch.profiler.profile(activities=chosen, record_shapes=True) as profiler:
            for each in ready:
                try:
                    self.time(each)
                    done.append(each)
                except Exception as error:
                    self._skip(each.case, error)
            self.synchronize()
        profiler.export_chrome_trace(path)
        return {each.case.number: about(each) for each in done}

    def ready(self, case: Case) -> Optional[Ready]:
        """The case with its tensors, warmed up; None (and counted as skipped) if this machine cannot run it."""
        try:
            self.torch.manual_seed(case.number)
            self.allow_tf32(case.tf32)
            op = case.setup(self.make)
            op = op if isinstance(op, Op) else Op(op)
            events = self._warm(op)
            return Ready(case, op, self._states(case), events)
        except Exception as error:
            self._skip(case, error)
            return None

    def _warm(self, op: Op) -> Tuple[Any, ...]:
        """Runs the case until the libraries have done their one-time work."""
        events = tuple(self.torch.cuda.Event(enable_timing=True) for _ in range(2)) if self.on_gpu else ()
        for number in range(WARMUPS):
            last = number == WARMUPS - 1
            if op.before:
                op.before()
            start = time.perf_counter()
            if events and last:
                events[0].record()
            op.run()
            if events and last:
                events[1].record()
        if time.perf_counter() - start > LONGEST:
            raise TooSlow("too long on the host")
        return events

    def _states(self, case: Case) -> Tuple[str, ...]:
        after = case.after and case.bytes < 2 * self.l2_bytes
        return ("cold", "warm", f"after:{case.after}") if after else ("cold", "warm")

    def time(self, ready: Ready) -> None:
        """Runs the case in each cache state, each run in a span of the trace."""
        case, op, states, events = ready
        seconds = events[0].elapsed_time(events[1]) / 1e3 if events else 0.0
        if seconds > LONGEST:
            raise TooSlow("too long on the GPU")
        self.allow_tf32(case.tf32)
        span = self.torch.profiler.record_function
        run, before = op.run, op.before
        for state in states:
            for repetition in range(1 if seconds > ONCE else REPETITIONS):
                if before:
                    before()
                if state == "cold":
                    self.flush()
                elif state != "warm":
                    if not before:
                        run()
                    self.overwrite(case.after)
                with span(region_name(case.number, state, repetition)):
                    run()

    def _skip(self, case: Case, error: Exception) -> None:
        text = str(error).strip().partition("\n")[0]
        if "out of memory" in text.lower() or "OutOfMemory" in type(error).__name__:
            text = "out of memory"
            self.free()
        elif "CUDA error" in text and "NOT_SUPPORTED" not in text or "device-side assert" in text:
            raise DeviceFailed(f"case {case.number} ({case.family}: {case.what}): {text}") from error
        self.skipped[f"{case.family}: {type(error).__name__}: {text[:100]}"] += 1


def about(ready: Ready) -> Dict[str, Any]:
    """Facts about a case that the trace lacks."""
    case, op = ready.case, ready.op
    lists = {name: {i: _list(each) for i, each in places.items()} for name, places in op.lists.items()}
    devices = {name: compact(each) for name, each in op.devices.items()}
    return {"family": case.family, "tf32": case.tf32, "indices": str(op.indices) or case.indices, "ops": case.ops, "lists": lists, "devices": devices}


def _list(tensors: Any) -> Tuple[List[Any], List[Any], str]:
    """Sizes, strides and type of a list of tensors, or of a tensor, in the profiler's format."""
    if hasattr(tensors, "shape"):
        return list(tensors.shape), list(tensors.stride()), NAMES.get(str(tensors.dtype), str(tensors.dtype))
    known = [each for each in tensors if each is not None]
    kind = NAMES.get(str(known[0].dtype), str(known[0].dtype)) if known else ""
    dims = [[] if each is None else list(each.shape) for each in tensors]
    strides = [[] if each is None else list(each.stride()) for each in tensors]
    return dims, strides, f"TensorList<{kind}>" if kind else "TensorList"
