"""Parameters of a module from a checkpoint of `steptime-train`, by their names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Union

from steptime.errors import InputError
from steptime.models import description
from steptime.models.building import build

if TYPE_CHECKING:
    from torch import nn

    from steptime.models.shards import Checkpoint

# Names of optimizer states, after that of their parameter.
STATES = ("sum", "exp_avg", "exp_avg_sq")


def load(model: "Union[str, Path, nn.Module]", checkpoint: "Union[str, Path, Checkpoint]", device: Any = None) -> "nn.Module":
    """Loads the parameters of a checkpoint and returns the module.

    model: the description, from which a module is built on `device`; or a module, which keeps its device. The parameters of a module
    that `build` did not build have the names and shapes of the checkpoint, too.
    checkpoint: its folder, or the folder of a run, of which the last checkpoint is loaded.

    Optimizer states remain in the checkpoint. Raises NotFound, InputError (another model, a missing tensor, another shape, a
    damaged file) and MissingTorch; the module is unchanged then.
    """
    module = build(model, device) if isinstance(model, (str, Path)) else model
    from steptime.models.shards import Checkpoint

    opened = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    _compare_models(module, opened)
    parameters = dict(module.named_parameters())
    _compare_tensors(parameters, opened)
    import torch

    pieces = {name: list(opened.pieces(name)) for name in parameters}
    with torch.no_grad():
        for name, parameter in parameters.items():
            for first, piece in pieces[name]:
                (parameter[first : first + len(piece)] if piece.dim() else parameter).copy_(piece)
    return module


def _compare_models(module: "nn.Module", opened: "Checkpoint") -> None:
    """Compares the description of a built module with that of the checkpoint."""
    own = getattr(module, "description", None)
    if not isinstance(own, description.Description):
        return
    there = description.parse(opened.text, f"the model of {opened.folder}")
    _refuse(opened, own.differences(there), "it is of another model")


def _compare_tensors(parameters: Any, opened: "Checkpoint") -> None:
    """Compares names and shapes."""
    faults: List[str] = []
    for name, parameter in parameters.items():
        entry = opened.tensors.get(name)
        if entry is None:
            faults.append(f"{name} is missing")
        elif entry.shape != tuple(parameter.shape):
            faults.append(f"{name} is {list(entry.shape)} there, and {list(parameter.shape)} here")
    for name in opened.tensors:
        owner, _, state = name.rpartition(".")
        if name not in parameters and not (state in STATES and owner in parameters):
            faults.append(f"{name} is no parameter of the module")
    _refuse(opened, faults, "its tensors are not those of the module")


def _refuse(opened: "Checkpoint", faults: List[str], what: str) -> None:
    if faults:
        more = f", and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise InputError(f"{opened.folder}: {what}: {'; '.join(faults[:5])}{more}. Give the model.toml of its run")
