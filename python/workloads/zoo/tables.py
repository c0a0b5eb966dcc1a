"""Tables of which each bag is one row, by steptime's operators: those of `nn.Embedding` modules, looked up by one call."""
import torch
from torch import nn

from common import DEVICE

OPTIMIZERS = {torch.optim.SGD: "sgd", torch.optim.Adagrad: "adagrad", torch.optim.Adam: "adam"}


class OneCall(nn.Module):
    """Tables of so many rows and columns, `bags` lookups of each; the optimizer's step is in the backward pass."""

    def __init__(self, rows, dims, bags, optimizer, lr):
        super().__init__()
        from steptime.operators import EmbeddingBags

        self.bags = EmbeddingBags(rows, dims, optimizer=OPTIMIZERS[optimizer], lr=lr, longest=bags, device=DEVICE)
        self.offsets = torch.arange(len(rows) * bags + 1, device=DEVICE)

    def forward(self, indices):
        """indices: table after table. Returns [bags, columns of all]."""
        return self.bags(indices, self.offsets)
