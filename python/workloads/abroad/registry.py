"""Registry of the models: name -> function `build(device, dtype)` that returns a `Training`.

`device` is a PyTorch device. `dtype` is "fp32", or "bf16" or "fp16" for autocast, which is skipped on a CPU.
With ABROAD_SMALL=1 in the environment `size(real, small)` gives the small size, for a check on a CPU.
"""
import contextlib
import itertools
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Tuple

import torch

SMALL = os.environ.get("ABROAD_SMALL", "0") == "1"
BATCHES = 4  # batches on the host, used in turn


@dataclass
class Training:
    """Training loop of one model: `step()` runs one step of it."""

    step: Callable[[], None]
    model: Any
    optimizer: Any  # None where a step has several
    batch: int
    keeps: List[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """Model of the registry. `kinds` names the questions that its results answer. `dtypes` are measured; the first is the usual one."""

    name: str
    build: Callable[[torch.device, str], Training]
    kinds: Tuple[str, ...]
    dtypes: Tuple[str, ...] = ("fp32",)


MODELS: Dict[str, Entry] = {}


def model(*kinds: str, dtypes: Tuple[str, ...] = ("fp32",)) -> Callable[[Any], Any]:
    """Decorator that adds a build function to the registry."""

    def add(build: Any) -> Any:
        def seeded(device: torch.device, dtype: str) -> Training:
            torch.manual_seed(1234)
            return build(torch.device(device), dtype)

        MODELS[build.__name__] = Entry(build.__name__, seeded, kinds, dtypes)
        return build

    return add


def size(real: Any, small: Any) -> Any:
    """The real size, or the small one for a check on a CPU."""
    return small if SMALL else real


def cast(device: torch.device, dtype: str) -> Any:
    """Context of autocast on a GPU; a null context elsewhere."""
    if dtype == "fp32" or device.type != "cuda":
        return contextlib.nullcontext()
    return torch.autocast("cuda", {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype])


def cycle(make: Callable[[], Any]) -> Callable[[], Any]:
    """Function that returns the next of `BATCHES` batches made by `make`, without end."""
    batches = itertools.cycle([make() for _ in range(BATCHES)])
    return lambda: next(batches)


def parameters(module: torch.nn.Module) -> int:
    """Number of elements of all parameters."""
    return sum(each.numel() for each in module.parameters())
