"""A PyTorch module from a description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from steptime.errors import MissingTorch
from steptime.models import description
from steptime.models.description import Description

if TYPE_CHECKING:
    from steptime.models.networks import Network


def build(model: Union[str, Path, Description], device: Any = None) -> "Network":
    """Builds the module of `model.toml`, with new parameters on `device`.

    The module takes `(dense, lookups)`: dense features `[batch, dense]`, or None without any, and a list of the indices
    `[batch, lookups]` of each table. `module.loss(output, labels)` is the described loss. Tables are placed on one device.

    Raises NotFound, InputError for a file that does not describe a model, and MissingTorch.
    """
    of = model if isinstance(model, Description) else description.read(model)
    try:
        from steptime.models import networks
    except ImportError as error:
        if error.name != "torch":
            raise
        raise MissingTorch("the module of a model needs PyTorch, which is not installed here: pip install torch") from error
    if of.model == "two_towers":
        return networks.TwoTowers(of, device)
    if of.model in ("deepfm", "wide_and_deep"):
        return networks.WideAndDeep(of, device)
    return networks.Dlrm(of, device)
