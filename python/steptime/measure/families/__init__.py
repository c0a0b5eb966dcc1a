"""The families of kernels and their share of the cases."""

from __future__ import annotations

import importlib
import importlib.util
from typing import List, Optional

from steptime.measure.case import Family
from steptime.operators import library

# name, weight. A family's place here is part of its cases' numbers: append only.
WEIGHTS = (
    ("gemm", 25.0),
    ("conv", 20.0),
    ("embedding", 10.0),
    ("elementwise", 12.0),
    ("reduce", 7.0),
    ("softmax_norm_loss", 8.0),
    ("batch_norm", 6.0),
    ("pool", 4.0),
    ("concat_index", 8.0),
    ("copy", 5.0),
    ("optimizer", 5.0),
    ("attention", 5.0),
    ("rnn", 2.0),
    ("tbe", 4.0),
    ("operators", 12.0),
    ("inductor", 2.0),
    ("layout", 12.0),
    ("corners", 20.0),
    ("hard", 20.0),
    ("odd_rows", 2.0),
    ("scaled", 6.0),
    ("seldom", 10.0),
    ("abroad", 8.0),
    ("skewed", 16.0),
    ("sparse", 9.0),
    ("thin", 12.0),
    ("wide_heads", 2.0),
)
NAMES = tuple(name for name, _ in WEIGHTS)


def missing(name: str) -> Optional[str]:
    """What this machine lacks to measure a family, and the remedy; None where nothing."""
    if name == "tbe" and importlib.util.find_spec("fbgemm_gpu") is None:
        return "FBGEMM, which is not installed: pip install fbgemm-gpu"
    if name == "operators" and not library.available():
        return f"steptime's own operators, whose library is not found: {library.REMEDY}"
    if name == "inductor" and any(importlib.util.find_spec(each) is None for each in ("torch", "triton")):
        return "what torch.compile makes, which needs Triton: pip install torch triton"
    if name == "scaled" and not _multiplies_8_bit_floats():
        return "a GPU that multiplies 8-bit floats: of compute capability 8.9 or later"
    return None


def _multiplies_8_bit_floats() -> bool:
    """Whether the GPU does; true where there is none, so that cases can be listed."""
    if importlib.util.find_spec("torch") is None:
        return True
    import torch

    return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 9)


def available(name: str) -> bool:
    """Whether this machine has the library that a family measures."""
    return missing(name) is None


def load(names: Optional[List[str]] = None) -> List[Family]:
    """These families, or all that this machine has libraries for."""
    chosen = []
    for slot, (name, weight) in enumerate(WEIGHTS):
        if names is not None and name not in names:
            continue
        if not available(name):
            continue
        module = importlib.import_module(f"steptime.measure.families.{name}")
        chosen.append(Family(name, weight, slot, module.draw))
    return chosen
