"""PyTorch's own tools on the same scripts: `torch.distributed._tools`, which need no GPU for fake tensors."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict
from unittest import mock

import torch

PEAKS = {torch.float32: 67.0, torch.bfloat16: 989.0, torch.float16: 989.0}
"""An H200's data sheet: TFLOP/s without TF32."""
BANDWIDTH = 4800.0
"""GB/s of its memory."""


def measured(step: Callable[[Any], None], batches: Any, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Dict[str, float]:
    """Peak memory in bytes and step time in ms, as far as each tool runs here; keys ending in `_says` have the errors."""
    found: Dict[str, Any] = {}
    for name, tool in (("memory", _memory), ("time", _time)):
        try:
            found[name] = tool(step, batches, model, optimizer)
        except Exception as error:  # the tools raise many types of exceptions
            found[f"{name}_says"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return found


def _memory(step: Callable[[Any], None], batches: Any, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Peak memory by MemTracker of a step with existing optimizer states."""
    from torch.distributed._tools.mem_tracker import MemTracker

    step(batches[0])
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        step(batches[0])
    peaks = tracker.get_tracker_snapshot("peak")
    return float(max(kinds["Total"] for kinds in peaks.values()))


def _time(step: Callable[[Any], None], batches: Any, *_: Any) -> float:
    """Step time by RuntimeEstimator, in ms. It reads the peak rates of a GPU, which are replaced by those of an H200's data sheet."""
    from torch.distributed._tools.runtime_estimator import RuntimeEstimator

    step(batches[0])
    estimator = RuntimeEstimator()
    here = "torch.utils._runtime_estimation"
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("torch.cuda.is_available", lambda: True))
        stack.enter_context(mock.patch(f"{here}.get_device_tflops", lambda dtype: PEAKS.get(dtype, PEAKS[torch.float32])))
        stack.enter_context(mock.patch(f"{here}.get_gpu_dram_gbps", lambda: BANDWIDTH))
        stack.enter_context(estimator(estimate_mode_type="operator-level-cost-model"))
        step(batches[0])
    return float(estimator.total_runtime)
