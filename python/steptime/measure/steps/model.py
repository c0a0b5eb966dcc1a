"""A model with its batches and optimizers, and its training step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from steptime.measure.draw import Draw


@dataclass
class Model:
    """A model with all that its training step needs.

    what: short description of the model.
    loss: function from a batch on the device to a scalar.
    batches: host tensors, used in turn.
    pinned: whether they are in pinned memory, so that copies do not block.
    autocast: data type of automatic mixed precision; None without it.
    clip: largest norm of the gradients; None without clipping.
    read: whether each step reads the loss back to the host.
    """

    what: str
    batch: int
    module: nn.Module
    loss: Callable[..., Tensor]
    optimizers: List[Any]
    batches: List[Tuple[Tensor, ...]]
    pinned: bool = False
    autocast: Optional[torch.dtype] = None
    clip: Optional[float] = None
    read: bool = False
    last: List[float] = field(default_factory=list)

    def step(self, device: str) -> Callable[[Sequence[Tensor]], None]:
        """The training step: copies, forward, backward, optimizers."""

        def step(batch: Sequence[Tensor]) -> None:
            tensors = [each.to(device, non_blocking=self.pinned) for each in batch]
            for each in self.optimizers:
                each.zero_grad()
            if self.autocast is None:
                loss = self.loss(*tensors)
            else:
                with torch.autocast(torch.device(device).type, dtype=self.autocast):
                    loss = self.loss(*tensors)
            loss.backward()
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
            for each in self.optimizers:
                each.step()
            if self.read:
                self.last[:] = [loss.item()]

        return step

    def pin(self) -> None:
        """Moves the batches into pinned memory."""
        self.batches = [tuple(each.pin_memory() for each in batch) for batch in self.batches]
        self.pinned = True


def optimizer(rng: Draw, parameters: Any, weights: dict) -> Tuple[str, Any]:
    """Name and instance of an optimizer, drawn by weight; with PyTorch's defaults (foreach on a GPU), a few of them fused."""
    name = rng.weigh(weights)
    fused = {"fused": True} if rng.chance(0.12) and torch.cuda.is_available() else {}
    make = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=1e-3),
        "momentum": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, nesterov=rng.chance(0.2), weight_decay=rng.pick(0, 0, 1e-4)),
        "adam": lambda: torch.optim.Adam(parameters, lr=1e-4, weight_decay=rng.pick(0, 0, 1e-5), amsgrad=rng.chance(0.1), **fused),
        "adamw": lambda: torch.optim.AdamW(parameters, lr=1e-4, **fused),
        "adagrad": lambda: torch.optim.Adagrad(parameters, lr=1e-3),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, lr=1e-4),
    }
    return name, make[name]()


def activation(rng: Draw, *extra: str) -> Callable[[], nn.Module]:
    """A random activation for all layers of a model."""
    inplace = rng.chance(0.5)
    known = {
        "relu": lambda: nn.ReLU(inplace),
        "gelu": nn.GELU,
        "sigmoid": nn.Sigmoid,
        "tanh": nn.Tanh,
        "softplus": nn.Softplus,
        "silu": lambda: nn.SiLU(inplace),
        "relu6": lambda: nn.ReLU6(inplace),
        "leaky": lambda: nn.LeakyReLU(0.1, inplace),
        "elu": lambda: nn.ELU(inplace=False),
    }
    return known[rng.pick("relu", "relu", *extra)]
