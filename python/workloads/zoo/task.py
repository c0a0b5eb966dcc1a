"""What a model of the zoo gives: modules, a loss of one batch, batches on the host."""
from dataclasses import dataclass
from typing import Any, Callable, List, Tuple

import torch


@dataclass
class Task:
    """model: all parameters. loss: of a batch that is on the device. batches: on the host. optimizer: of the parameters."""

    model: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    batches: List[Any]
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam


def task(batch: int, tables: Tuple[str, ...] = ()) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Marks a function as a model of the zoo, with its usual batch size; `tables`: libraries that it takes as `tables=`, for
    its embedding tables by their operators."""

    def mark(make: Callable[..., Task]) -> Callable[..., Task]:
        make.batch, make.tables = batch, tables
        return make

    return mark


def several(make: Callable[[], Any], count: int = 4) -> List[Any]:
    """Batches, used in turn."""
    return [make() for _ in range(count)]
