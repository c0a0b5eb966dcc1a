"""The families of kernels and their share of the cases."""

from __future__ import annotations

import importlib
import importlib.util
from typing import List, Optional

from steptime.measure.case import Family
from steptime.operators import library

# Name and weight of each family. The position of a family is part of the numbers of its cases: append only.
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
    ("rare_shapes", 20.0),
    ("hard_shapes", 20.0),
    ("long_softmax", 2.0),
    ("scaled", 6.0),
    ("rare_layers", 10.0),
    ("third_party", 8.0),
    ("skewed", 16.0),
    ("sparse", 9.0),
    ("thin", 12.0),
    ("wide_heads", 2.0),
)
NAMES = tuple(name for name, _ in WEIGHTS)
# Earlier names, which `--families` accepts. The seeds of cases still contain them, so that a seed draws the same cases as before.
RENAMED = {"corners": "rare_shapes", "hard": "hard_shapes", "odd_rows": "long_softmax", "seldom": "rare_layers", "abroad": "third_party"}
# Module and function of families that are not the function `draw` of a module of their name.
DRAWN_BY = {
    "rare_shapes": ("mixtures", "rare_shapes"),
    "hard_shapes": ("mixtures", "hard_shapes"),
    "rare_layers": ("mixtures", "rare_layers"),
    "third_party": ("mixtures", "third_party"),
    "long_softmax": ("softmax_norm_loss", "long_rows"),
}


def missing(name: str) -> Optional[str]:
    """Requirement of a family that this machine lacks, with the remedy; None if it lacks nothing."""
    if name == "tbe" and importlib.util.find_spec("fbgemm_gpu") is None:
        return "FBGEMM, which is not installed: pip install fbgemm-gpu"
    if name == "operators" and not library.available():
        return f"steptime's own operators, whose library is not found: {library.REMEDY}"
    if name == "inductor" and any(importlib.util.find_spec(each) is None for each in ("torch", "triton")):
        return "Triton for torch.compile: pip install torch triton"
    if name == "scaled" and not _multiplies_8_bit_floats():
        return "a GPU that multiplies 8-bit floats: of compute capability 8.9 or later"
    return None


def _multiplies_8_bit_floats() -> bool:
    """Whether the GPU multiplies 8-bit floats; true without a GPU, so that cases can be listed."""
    if importlib.util.find_spec("torch") is None:
        return True
    import torch

    return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 9)


def available(name: str) -> bool:
    """Whether this machine has the libraries of a family."""
    return missing(name) is None


def load(names: Optional[List[str]] = None) -> List[Family]:
    """The families with these names, or all whose libraries this machine has."""
    chosen = []
    seeded = {new: old for old, new in RENAMED.items()}
    for slot, (name, weight) in enumerate(WEIGHTS):
        if names is not None and name not in names:
            continue
        if not available(name):
            continue
        module, function = DRAWN_BY.get(name, (name, "draw"))
        draw = getattr(importlib.import_module(f"steptime.measure.families.{module}"), function)
        chosen.append(Family(name, weight, slot, draw, seeded.get(name, "")))
    return chosen
