"""The tensors of a case: random values (a GPU is faster on zeros), in a given layout."""

from __future__ import annotations

import math
from typing import Any, Sequence

# Number of first ranks of Zipf's law with exact weights.
SINGLE_RANKS = 8


class Maker:
    """Makes tensors on the measured device."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch = torch
        self.device = device
        self.aten = torch.ops.aten

    def type(self, name: str) -> Any:
        return self.torch.float32 if name == "tf32" else getattr(self.torch, name)

    def new(self, shape: Sequence[int], dtype: str = "float32", device: str = "") -> Any:
        """A tensor of random values: normal floats, integers from 1 to 99, or booleans, half of them true."""
        torch, device, shape = self.torch, device or self.device, tuple(shape)
        if dtype == "bool":
            return torch.rand(shape, device=device) < 0.5
        if dtype in ("int64", "int32", "uint8"):
            return torch.randint(1, 100, shape, dtype=self.type(dtype), device=device)
        return torch.randn(shape, dtype=self.type(dtype), device=device)

    def positive(self, shape: Sequence[int], dtype: str = "float32") -> Any:
        """A tensor of values between 0.05 and 0.95 (integers as in `new`)."""
        if dtype in ("int64", "int32", "bool", "uint8"):
            return self.new(shape, dtype)
        return self.torch.rand(tuple(shape), dtype=self.type(dtype), device=self.device).mul_(0.9).add_(0.05)

    def laid(self, shape: Sequence[int], dtype: str = "float32", layout: str = "plain") -> Any:
        """A tensor as of `new`, in a layout: plain, offset (begins at the second element), transposed, sliced, channels_last."""
        shape = tuple(shape)
        if layout == "offset":
            count = 1
            for size in shape:
                count *= size
            return self.new((count + 1,), dtype)[1:].view(shape)
        if layout == "transposed" and len(shape) >= 2:
            return self.new(shape[:-2] + (shape[-1], shape[-2]), dtype).transpose(-1, -2)
        if layout == "sliced":
            wide = shape[:-1] + (shape[-1] + max(shape[-1] // 2, 3),)
            return self.new(wide, dtype)[..., : shape[-1]]
        if layout == "channels_last" and len(shape) == 4:
            return self.new(shape, dtype).contiguous(memory_format=self.torch.channels_last)
        return self.new(shape, dtype)

    def matrix(self, rows: int, columns: int, dtype: str, transposed: bool = False) -> Any:
        """A matrix, or the transposed view of one."""
        return self.new((columns, rows), dtype).t() if transposed else self.new((rows, columns), dtype)

    def indices(self, shape: Sequence[int], high: int, spread: str = "uniform", dtype: str = "int64") -> Any:
        """Row numbers below `high`: uniform, or `zipf:<s>` with the frequent rows scattered, as in `steptime_launch::Sampler`."""
        torch = self.torch
        kind, _, exponent = spread.partition(":")
        if kind != "zipf":
            return torch.randint(0, high, tuple(shape), device=self.device, dtype=self.type(dtype))
        rank = self.zipf_ranks(shape, high, float(exponent))
        scattered = (rank * 2654435761 + 12345) % high if high % 2654435761 else rank  # a permutation of the rows
        return scattered.to(self.type(dtype))

    def zipf_ranks(self, shape: Sequence[int], high: int, exponent: float) -> Any:
        """Random ranks from 0 below `high`, with probability of rank r in proportion to (r + 1)^-exponent.

        The first ranks have exact weights, the others those of the integral between the midpoints around them: the same
        frequencies as in the predictions.
        """
        torch, singles = self.torch, min(SINGLE_RANKS, high)
        up_to = (torch.arange(1, singles + 1, device=self.device, dtype=torch.float64) ** -exponent).cumsum(0)
        counted, start, power = float(up_to[-1]), singles + 0.5, 1 - exponent
        logarithmic = abs(power) < 1e-9
        rest = math.log((high + 0.5) / start) if logarithmic else ((high + 0.5) ** power - start**power) / power
        wanted = torch.rand(tuple(shape), device=self.device, dtype=torch.float64) * (counted + rest)
        area = (wanted - counted).clamp_(min=0)
        end = start * area.exp() if logarithmic else (start**power + area * power) ** (1 / power)
        beyond = (end.round().long() - 1).clamp_(min=singles)
        first = torch.searchsorted(up_to, wanted, right=True)
        return torch.where(wanted < counted, first, beyond).clamp_(0, high - 1)

    def grad(self, tensor: Any) -> Any:
        """The tensor with `requires_grad` set."""
        return tensor.requires_grad_(True)

    def backward(self, output: Any, inputs: Sequence[Any], grad: Any = None) -> Any:
        """A function that runs the backward pass of `output`, any number of times."""
        grads = None if grad is None and output.dim() == 0 else [grad if grad is not None else self.torch.randn_like(output)]
        autograd, inputs = self.torch.autograd.grad, list(inputs)
        return lambda: autograd([output], inputs, grads, retain_graph=True)
