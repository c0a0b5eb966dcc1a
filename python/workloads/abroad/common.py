"""Shared parts of models with attention."""
import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, cast

BOTH = ("fp32", "bf16")


def trained(device, dtype, net, optimizer, following, loss_of, batch, clip=None):
    """Training loop of models with attention."""

    def step():
        given = [t.to(device, non_blocking=True) for t in following()]
        optimizer.zero_grad(set_to_none=True)
        with cast(device, dtype):
            loss = loss_of(net, *given)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()

    return Training(step, net, optimizer, batch)


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * self.weight


def next_word(net, words):
    logits = net(words[:, :-1])
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), words[:, 1:].reshape(-1))
