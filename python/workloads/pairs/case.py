"""A model as in a typical training script, small enough for a step in a second on a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Sequence, Tuple

import torch

Inputs = Tuple[torch.Tensor, ...]


@dataclass
class Case:
    """One model: its module, the loss on the tensors of a batch, and these tensors on the host.

    blocks: paths of the modules that a script would checkpoint or shard, `*` for any name.
    rows: whether the blocks are repeated in a row, so that `--checkpoint` finds them itself.
    sparse: whether parameters have sparse gradients, which NCCL cannot average: such scripts do not run on several GPUs.
    """

    model: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    inputs: Callable[[int], Inputs]
    optimizer: str = "adamw"
    blocks: Sequence[str] = ()
    rows: bool = True
    sparse: bool = False


@dataclass
class Maker:
    """A function that makes a case, and the changes that its script supports.

    sizes: for each size of `--set`, the arguments of the function that produce it.
    removed: `--remove` patterns, each with the paths of the modules that the script leaves out.
    images: whether the first input is a batch of images, so that channels last applies.
    values: whether the step reads values of tensors, such as offsets or edges, so that it needs tensors with storage.
    """

    make: Callable[..., Case]
    batch: int
    sizes: Dict[str, Dict[str, Any]] = field(default_factory=dict)
    removed: Dict[str, Sequence[str]] = field(default_factory=dict)
    images: bool = False
    values: bool = False


MAKERS: Dict[str, Maker] = {}


def case(batch: int, **known: Any) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Decorator that adds a function to the list of models, under its own name."""

    def enter(make: Callable[..., Case]) -> Callable[..., Case]:
        MAKERS[make.__name__] = Maker(make, batch, **known)
        return make

    return enter


def labels(classes: int, *shape: int) -> torch.Tensor:
    """Random integers below `classes`."""
    return torch.randint(0, classes, shape)


def classified(model: torch.nn.Module, images: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the scores that a model gives for a batch."""
    return torch.nn.functional.cross_entropy(model(images), classes)
