"""Gradients under `torch.amp.GradScaler`: they are unscaled, and those that overflowed are skipped.

Tables run their step inside the backward pass, so the scale must be known there, not in `scaler.step`. Calls of `scaler.scale` are
observed after the first training of a module, to find the scaler of the loss; a module with its own `scaler` uses that one.
Overflow is checked in the gradient of the tables, as in fused optimizers, and noted where `scaler.update` reads it.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, List, Optional, Tuple

import torch
from torch import Tensor

from steptime.operators.library import OperatorError

_in_use: "weakref.WeakSet[Any]" = weakref.WeakSet()  # scalers that have scaled since their last update
_updated: List[Callable[[], None]] = []  # called after each update


def watch(updated: Callable[[], None]) -> None:
    """Observes all scalers from now on, and calls `updated` after each of their updates."""
    scaler = torch.amp.GradScaler
    if not _updated:
        scaler.scale = _around(scaler.scale, _has_scaled)
        scaler.update = _around(scaler.update, _is_updated)
    if updated not in _updated:
        _updated.append(updated)


def _around(function: Any, after: Callable[[Any], Any]) -> Any:
    @functools.wraps(function)
    def watched(self: Any, *arguments: Any, **named: Any) -> Any:
        result = function(self, *arguments, **named)
        after(self)
        return result

    return watched


def _has_scaled(scaler: Any) -> None:
    if scaler.is_enabled():
        _in_use.add(scaler)


def _is_updated(scaler: Any) -> None:
    _in_use.discard(scaler)
    for each in _updated:
        each()


def in_use(own: Optional[Any]) -> Optional[Any]:
    """The scaler that scaled a gradient: a module's own, else the one that has scaled a loss since its last update."""
    if own is not None:
        return own if own.is_enabled() else None
    scalers = list(_in_use)
    if len(scalers) > 1:
        raise OperatorError(f"{len(scalers)} GradScalers are in use: set the one that scales the loss of these tables, tables.scaler = scaler")
    return scalers[0] if scalers else None


def unscaled(gradient: Tensor, scaler: Any, owner: Any) -> Tuple[Tensor, Tensor]:
    """Returns the unscaled gradient, and whether it has infinities or NaNs, as a tensor [1] of 0 or 1. Notes it for `scaler.update`.

    Raises OperatorError if the scaler has not scaled a loss yet, or during the capture of a CUDA graph: the host decides whether a step
    is skipped.
    """
    if gradient.is_cuda and torch.cuda.is_current_stream_capturing():
        raise OperatorError("the host decides whether a scaled gradient takes a step: capture steps without a GradScaler, for example in bfloat16")
    scale = scaler._scale
    if scale is None:
        raise OperatorError("the scaler of these tables has not scaled a loss yet: call scaler.scale(loss).backward()")
    inverse = scale.double().reciprocal().float().to(gradient.device)
    found = torch.zeros(1, device=gradient.device)
    gradient = gradient.clone(memory_format=torch.contiguous_format)
    torch._amp_foreach_non_finite_check_and_unscale_([gradient], found, inverse)
    noted = scaler._per_optimizer_states[id(owner)]["found_inf_per_device"]
    noted[gradient.device] = noted[gradient.device] + found if gradient.device in noted else found.clone()
    return gradient, found
