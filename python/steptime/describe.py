"""The fields of meta.json on the model, the batch and the machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Set


def machine(torch: Any, on_gpu: bool) -> Dict[str, str]:
    """Names of device and processor, and PyTorch's version."""
    cpu = cpu_name()
    return {
        "device": torch.cuda.get_device_name() if on_gpu else cpu,
        "torch": str(torch.__version__),
        "cpu": cpu,
    }


def settings(torch: Any) -> Dict[str, str]:
    """`matmul_precision`: `tf32` where float32 matrix products may run in TF32 on a GPU, else `float32`."""
    cuda = torch.backends.cuda.matmul
    named = getattr(cuda, "fp32_precision", None)  # since PyTorch 2.9
    allowed = named == "tf32" if named not in (None, "none") else bool(cuda.allow_tf32)
    return {"matmul_precision": "tf32" if allowed else "float32"}


def cpu_name(cpuinfo: str = "/proc/cpuinfo") -> str:
    """Name of the processor where the system reports it, else its architecture."""
    try:
        with open(cpuinfo, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_memory(torch: Any, on_gpu: bool) -> Dict[str, int]:
    """Peak bytes of tensors on the GPU; without a GPU, peak resident bytes of this process."""
    if on_gpu:
        return {"peak_memory_bytes": int(torch.cuda.max_memory_allocated())}
    try:
        import resource
    except ImportError:  # Windows
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}


def model_name(model: Any, step: Callable[..., Any]) -> str:
    """`model` if it is a name, else the name of its class; without a model, the step's name."""
    if isinstance(model, str):
        return model
    if model is not None:
        return type(model).__name__
    return getattr(step, "__qualname__", type(step).__name__)


def count_parameters(model: Any, step: Callable[..., Any]) -> Optional[int]:
    """Number of elements of the parameters of `model`, or of the modules that `step` refers to; None if there are no modules."""
    modules = [model] if _is_module(model) else [each for each in visible_to(step) if _is_module(each)]
    if not modules:
        return None
    seen: Set[int] = set()
    total = 0
    for module in modules:
        for parameter in module.parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                total += parameter.numel()
    return total


def visible_to(step: Callable[..., Any]) -> List[Any]:
    """Objects that a step refers to: itself, its `self` with attributes, its closure, the globals it names, and arguments of a partial."""
    found: List[Any] = [step]
    owner = getattr(step, "__self__", None)
    if owner is None and not hasattr(step, "__code__") and not hasattr(step, "func"):
        owner = step  # a callable object
    if owner is not None:
        found.append(owner)
        found.extend(getattr(owner, "__dict__", {}).values())
    if hasattr(step, "func"):  # functools.partial
        found.extend(getattr(step, "args", ()))
        found.extend((getattr(step, "keywords", None) or {}).values())
        found.extend(visible_to(step.func))
    code = getattr(step, "__code__", None)
    if code is not None:
        found.extend(_cells(step))
        names = getattr(step, "__globals__", {})
        found.extend(names[name] for name in code.co_names if name in names)
    return found


def _cells(step: Callable[..., Any]) -> Iterator[Any]:
    for cell in getattr(step, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet filled
            continue


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    module = getattr(getattr(torch, "nn", None), "Module", None)
    return module is not None and isinstance(value, module)


@dataclass(frozen=True)
class Samples:
    """Number of samples of a batch, and the source of that number."""

    count: int
    source: str


def given(about: Dict[str, Any], guessed: Optional[Samples]) -> Dict[str, Any]:
    """`about` with `batch` and `batch_source` of a recording. A batch in `about`, given by the script, goes before a guessed one."""
    if about.get("batch") is not None:
        return {**about, "batch_source": "given"}
    if guessed is None:
        return dict(about)
    return {**about, "batch": guessed.count, "batch_source": guessed.source}


def assumed(about: Dict[str, Any]) -> List[str]:
    """A warning where the batch is a guess."""
    source = about.get("batch_source", "given")
    if source == "given":
        return []
    return [f"the batch of {about['batch']} samples is a guess ({source}): batch=N of the recorder says it, --recorded-batch N of a question"]


def guess_batch(batch: Any) -> Optional[Samples]:
    """Number of samples of a batch of any form: its own count, else its images, else the most common first dimension of its tensors."""
    count = _said(batch)
    if count is not None:
        return count
    images = _images(batch)
    if images is not None:
        return Samples(images, "images in a list")
    sizes = list(_first_dimensions(batch))
    if not sizes:
        return None
    return Samples(max(sizes, key=sizes.count), "first dimension of most tensors")


def _said(batch: Any, depth: int = 3) -> Optional[Samples]:
    """The sample count stored in a batch: graphs of torch_geometric, seed nodes of its neighbour loaders, samples of a TensorDict."""
    if not isinstance(batch, (dict, list, tuple)):
        for name in ("num_graphs", "batch_size"):
            count = getattr(batch, name, None)
            count = count[0] if isinstance(count, (list, tuple)) and len(count) else count
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return Samples(count, name)
        return None
    parts = batch.values() if isinstance(batch, dict) else batch
    found = (_said(part, depth - 1) for part in parts if depth > 0)
    return next((each for each in found if each is not None), None)


def _images(batch: Any, depth: int = 3) -> Optional[int]:
    """Number of images in a list of image tensors [channels, height, width], which may differ in size."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if not isinstance(batch, (list, tuple)) or not batch:
        return None
    shapes = [tuple(getattr(each, "shape", ())) for each in batch]
    if all(len(shape) == 3 and shape[0] in (1, 3, 4) for shape in shapes):
        return len(batch)
    found = (_images(each, depth - 1) for each in batch if depth > 0)
    return next((count for count in found if count is not None), None)


def _first_dimensions(batch: Any) -> Iterator[int]:
    """The first dimension of each tensor in a batch."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        if len(shape):
            yield int(shape[0])
        return
    store = getattr(batch, "to_dict", None)
    if isinstance(batch, dict):
        parts: Any = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    elif callable(store) and not isinstance(batch, type):
        parts = store().values()
    else:
        return
    for part in parts:
        yield from _first_dimensions(part)
