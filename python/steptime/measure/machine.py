"""Description of this machine's GPU, and its peak rates, measured in a few seconds."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import Any, Callable, Dict

from steptime.describe import cpu_name


def describe(torch: Any, device: str) -> Dict[str, str]:
    """The device and its software."""
    common = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda or ""), "cpu": cpu_name()}
    if device == "cpu":
        return {**common, "device": "cpu", "l2_bytes": "1000000"}
    properties = torch.cuda.get_device_properties(device)
    clock = getattr(properties, "clock_rate", 0)
    return {
        **common,
        "device": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "sm_count": str(properties.multi_processor_count),
        "l2_bytes": str(getattr(properties, "L2_cache_size", 0) or 0),
        "memory_bytes": str(properties.total_memory),
        "clock_mhz": str(round(clock / 1000)) if clock else query("clocks.max.sm"),
        "memory_clock_mhz": str(round(getattr(properties, "memory_clock_rate", 0) / 1000)),
        "driver": query("driver_version"),
        "cudnn": str(torch.backends.cudnn.version() or ""),
    }


def query(what: str) -> str:
    """A value that `nvidia-smi` reports for the first GPU; empty on failure."""
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.split("\n")[0].strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def peaks(torch: Any, device: str) -> Dict[str, str]:
    """Measured peak rates of this GPU: bytes per second of copies, operations per second of matrix products."""
    if device == "cpu":
        return {}
    result: Dict[str, float] = {}
    size = 1 << 30
    if torch.cuda.mem_get_info(device)[0] < 6 * size:
        size = 1 << 27
    a, b = torch.randn(size // 4, device=device), torch.empty(size // 4, device=device)
    one = torch.zeros((), device=device)
    result["copy_gb_s"] = 2 * size / _seconds(torch, lambda: b.copy_(a)) / 1e9
    result["read_gb_s"] = size / _seconds(torch, lambda: torch.sum(a, dim=0, out=one)) / 1e9
    result["write_gb_s"] = size / _seconds(torch, lambda: b.fill_(1.5)) / 1e9
    host = torch.empty(size // 16)
    host.fill_(1.0)
    here = a[: size // 16]
    for name, there in (("pageable", host), ("pinned", host.pin_memory())):
        fast = name == "pinned"
        result[f"h2d_{name}_gb_s"] = size / 4 / _seconds(torch, lambda: here.copy_(there, non_blocking=fast), 4) / 1e9
        result[f"d2h_{name}_gb_s"] = size / 4 / _seconds(torch, lambda: there.copy_(here, non_blocking=fast), 4) / 1e9
    del a, b, here, host, there
    n = 8192
    for name, dtype, tf32 in (("fp32", torch.float32, False), ("tf32", torch.float32, True), ("bf16", torch.bfloat16, False), ("fp16", torch.float16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        x, y = torch.randn(n, n, device=device, dtype=dtype), torch.randn(n, n, device=device, dtype=dtype)
        result[f"matmul_{name}_tflop_s"] = 2 * n**3 / _seconds(torch, lambda: torch.mm(x, y), 6) / 1e12
    torch.backends.cuda.matmul.allow_tf32 = False
    del x, y
    torch.cuda.empty_cache()
    return {f"peak_{name}": f"{value:.6g}" for name, value in result.items()}


def _seconds(torch: Any, run: Callable[[], Any], times: int = 20) -> float:
    """Duration of one run in seconds, by the GPU's clock."""
    run()
    run()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / times


def null_kernel(rows: Any) -> str:
    """Duration of the shortest kernel among the rows: the GPU's cost of starting and ending a kernel."""
    times = [us for row in rows for us, kernel in zip(row["kernel_us"], row["kernels"].split(",")) if "Mem" not in kernel]
    return f"{min(times):.4g}" if times else ""


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
