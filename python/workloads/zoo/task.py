"""The training task of a model of the zoo: modules, a loss of one batch, batches on the host."""
from dataclasses import dataclass
from typing import Any, Callable, List, Tuple

import torch


@dataclass
class Task:
    """A training task. model: all parameters. loss: loss of a batch on the device. batches: batches on the host. optimizer: makes the
    optimizer of the parameters."""

    model: torch.nn.Module
    loss: Callable[..., torch.Tensor]
    batches: List[Any]
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam


def task(batch: int, tables: Tuple[str, ...] = ()) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Decorator that marks a function as a model of the zoo, with its usual batch size; `tables`: libraries that it accepts as
    `tables=`, whose operators then implement its embedding tables."""

    def mark(make: Callable[..., Task]) -> Callable[..., Task]:
        make.batch, make.tables = batch, tables
        return make

    return mark


def several(make: Callable[[], Any], count: int = 4) -> List[Any]:
    """Batches, used in turn."""
    return [make() for _ in range(count)]
