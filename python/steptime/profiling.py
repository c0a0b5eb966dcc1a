"""The three trace files of a recording, written by PyTorch's own profilers."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from steptime import describe, layouts
from steptime.errors import MissingTorch, NothingRecorded
from steptime.forms import OptimizerForms
from steptime.held import HeldMemory
from steptime.host import HostProbe
from steptime.inputs import KeptInputs
from steptime.lifetimes import Lifetimes
from steptime.loop import Plan
from steptime.lookups import Lookups
from steptime.marks import PlainMarks
from steptime.modules import ModuleCalls
from steptime.pulse import Pulses
from steptime.settings import PROFILER_WARMUP

# Values of `process` in meta.json: the state of the process before the un-profiled windows.
FRESH, PROFILED = "fresh", "profiled"
# Whether a profiler of this module has run in this process: CUPTI stays attached afterwards.
_has_profiled = False


def import_torch() -> Any:
    """Imports PyTorch when a recording needs it. Raises MissingTorch if it is not installed."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingTorch("recording needs PyTorch, which is not installed here: pip install torch") from error


def _note_profiler() -> None:
    global _has_profiled
    _has_profiled = True


class TorchProfiler:
    """The functions of PyTorch that a recording needs; tests replace this class by a fake."""

    def __init__(self, sync_events: bool = True) -> None:
        self.torch = import_torch()
        self._sync_events = sync_events
        self._modules = ModuleCalls(self.torch)
        self._forms = OptimizerForms()
        self._held = HeldMemory(self.torch)
        self._lookups = Lookups(self.torch)
        self._lifetimes = Lifetimes(self.torch)
        self._inputs = KeptInputs(self.torch)

    @property
    def on_gpu(self) -> bool:
        """Whether this process has used CUDA. Valid after the warm-up."""
        return bool(self.torch.cuda.is_available() and self.torch.cuda.is_initialized())

    def synchronize(self) -> None:
        """Waits until the current GPU has finished; on a CPU, does nothing."""
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def machine(self) -> Dict[str, str]:
        """The fields of meta.json on the machine and its software."""
        return describe.machine(self.torch, self.on_gpu)

    def settings(self) -> Dict[str, str]:
        """The fields of meta.json on PyTorch's settings."""
        return describe.settings(self.torch)

    def peak_memory(self) -> Dict[str, int]:
        """The fields of meta.json on peak memory."""
        return describe.peak_memory(self.torch, self.on_gpu)

    def modules(self) -> Dict[str, Any]:
        """The fields of meta.json on the observed steps: modules, optimizers, memory held, lookups, lifetimes and kept inputs."""
        noted = (self._modules, self._forms, self._held, self._lookups, self._lifetimes, self._inputs)
        return {name: value for each in noted for name, value in each.as_dict().items()}

    @contextlib.contextmanager
    def observed(self) -> Iterator[None]:
        """Context that notes kept inputs, lookups and lifetimes of a step that is neither timed nor profiled."""
        with self._inputs, self._lookups, self._lifetimes:
            yield

    def process(self) -> str:
        """`FRESH` while no profiler has run in this process, else `PROFILED`.

        Profilers of this module and a profiler that is running now are known. PyTorch does not report a profiler that other code
        of the process has run and ended.
        """
        enabled = getattr(self.torch.autograd, "_profiler_enabled", None)
        running = bool(enabled()) if enabled else False
        return PROFILED if _has_profiled or running else FRESH

    def probe(self) -> HostProbe:
        """A probe that measures this host, see `steptime.host`."""
        return HostProbe(self.torch, self.on_gpu, self._plain_profile)

    def _plain_profile(self) -> Any:
        """A profiler with the settings of `record_timing`."""
        _note_profiler()
        warnings.filterwarnings("ignore", message=".*Profiler clears events")
        return self.torch.profiler.profile(
            activities=self._activities(), record_shapes=False, with_stack=False, experimental_config=self._experimental_config()
        )

    def record_timing(self, steps: int, path: Path, pulses: Pulses) -> Plan[None]:
        """Profiles `steps` steps, each marked `ProfilerStep#n`, without shapes or stacks.

        A pulse is taken before each of them and after the last; it appears in no event.
        """
        profiler = self.torch.profiler
        _note_profiler()
        warnings.filterwarnings("ignore", message=".*Profiler clears events")  # there is only one cycle
        with profiler.profile(
            activities=self._activities(),
            schedule=profiler.schedule(wait=0, warmup=PROFILER_WARMUP, active=steps, repeat=1),
            on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
            record_shapes=False,
            with_stack=False,
            experimental_config=self._experimental_config(),
        ) as running:
            for _ in range(PROFILER_WARMUP - 1):
                yield
                running.step()
            for _ in range(steps + 1):
                yield
                pulses.profiled.append(pulses.pulse.take())
                running.step()

    def record_execution_trace(self, execution_trace: Path, timing: Path) -> Plan[Optional[str]]:
        """Runs one step under the execution-trace observer and, at the same time, the profiler with shapes.

        Both give the step's ops the same numbers: `rf_id` in one file is `Record function id` in the other. If the step has a tensor
        on which the observer may crash, writes neither file and returns the reason.
        """
        layout, hidden = layouts.held(self.torch), layouts.Hidden(self.torch)
        if layout is not None:
            return layouts.why(layout)
        profiler = self.torch.profiler
        _note_profiler()
        observer = profiler.ExecutionTraceObserver()
        observer.register_callback(str(execution_trace))
        try:
            self.synchronize()
            with profiler.profile(
                activities=self._activities(),
                record_shapes=True,
                with_stack=False,
                experimental_config=self._experimental_config(),
            ) as running:
                observer.start()
                try:
                    with self._modules, self._forms, self._held, hidden:
                        yield
                    self.synchronize()
                finally:
                    observer.stop()
        finally:
            observer.unregister_callback()
        if hidden.layout is not None:
            execution_trace.unlink(missing_ok=True)
            return layouts.why(hidden.layout)
        running.export_chrome_trace(str(timing))
        return None

    def record_ops(self, execution_trace: Path) -> Plan[None]:
        """Runs one step under the execution-trace observer alone. Raises NothingRecorded if the observer may crash."""
        layout, hidden = layouts.held(self.torch), layouts.Hidden(self.torch)
        if layout is not None:
            raise NothingRecorded(layouts.why(layout))
        observer = self.torch.profiler.ExecutionTraceObserver()
        observer.register_callback(str(execution_trace))
        try:
            observer.start()
            try:
                with self._modules, self._forms, self._held, self._inputs, hidden, PlainMarks():
                    yield
                self.synchronize()
            finally:
                observer.stop()
        finally:
            observer.unregister_callback()
        if hidden.layout is not None:
            raise NothingRecorded(layouts.why(hidden.layout))

    def _activities(self) -> List[Any]:
        kinds = self.torch.profiler.ProfilerActivity
        return [kinds.CPU, kinds.CUDA] if self.on_gpu else [kinds.CPU]

    def _experimental_config(self) -> Optional[Any]:
        """Profiler options that add synchronisation events, where there is a GPU and this PyTorch can record them."""
        if not (self._sync_events and self.on_gpu):
            return None
        config = getattr(self.torch.profiler, "_ExperimentalConfig", None)
        try:
            return config(enable_cuda_sync_events=True) if config else None
        except TypeError:
            return None
