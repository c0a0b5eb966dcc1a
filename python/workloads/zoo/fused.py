"""Ops of a model fused by its user: compiled pointwise chains, and linear layers with their activation in one product."""
import torch
from torch import nn


class LinearReLU(torch.autograd.Function):
    """A linear layer and its ReLU as one product with an epilogue; the backward pass runs the same kernels as without fusion."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        y = torch._addmm_activation(bias, x, weight.t())
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, weight, y = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward(grad, y, 0)
        return grad @ weight if ctx.needs_input_grad[0] else None, grad.t() @ x, grad.sum(0)


class FusedLinear(nn.Module):
    """A linear layer followed by a ReLU."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return LinearReLU.apply(x, self.linear.weight, self.linear.bias)


def fuse_linear(model):
    """Fuses every linear layer with the ReLU that follows it in a sequence."""
    for module in list(model.modules()):
        if isinstance(module, nn.Sequential):
            for at in range(len(module) - 1):
                if isinstance(module[at], nn.Linear) and isinstance(module[at + 1], nn.ReLU):
                    module[at], module[at + 1] = FusedLinear(module[at]), nn.Identity()


def fuse_pointwise(model):
    """Compiles each activation that consists of several ops."""
    for module in model.modules():
        name = type(module).__name__
        if name == "NewGELUActivation":
            module.forward = torch.compile(module.forward)
        elif name == "LlamaMLP":
            module.forward = gated(module, torch.compile(lambda gate, up: nn.functional.silu(gate) * up))
        elif hasattr(module, "pointwise"):
            module.pointwise = torch.compile(module.pointwise)


def gated(module, act):
    """The forward pass of a gated layer whose activation is `act`."""
    return lambda x: module.down_proj(act(module.gate_proj(x), module.up_proj(x)))
