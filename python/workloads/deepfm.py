"""DeepFM: 26 sparse nn.Embedding tables of 100k x 16 (and x 1 for first order), FM, MLP.

The tables have sparse gradients and SGD, the rest Adagrad.

STEPTIME_OPERATORS   torch (default), steptime: all tables use steptime's operators (needs STEPTIME_CUDA_LIBRARY), or fbgemm: tables of
                     16 columns use FBGEMM's, which do not support tables of one column
"""
import os

import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

TABLES, ROWS, DIM, DENSE = pick((26, 100_000, 16, 13), (4, 100, 4, 3))
BATCH = batch_size(2048)
LIBRARY = os.environ.get("STEPTIME_OPERATORS", "torch")
OURS = LIBRARY == "steptime"


def embeddings(dim):
    """A table of `dim` columns for each field."""
    if OURS or LIBRARY == "fbgemm" and dim > 1:
        from zoo.tables import OneCall

        return OneCall(LIBRARY, [ROWS] * TABLES, dim, BATCH, torch.optim.SGD, 0.01)
    return nn.ModuleList(nn.Embedding(ROWS, dim, sparse=True) for _ in range(TABLES))


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables, self.first_order = embeddings(DIM), embeddings(1)
        self.linear = nn.Linear(DENSE, 1)
        self.mlp = nn.Sequential(
            nn.Linear(TABLES * DIM + DENSE, 400), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(400, 400), nn.ReLU(), nn.Dropout(0.1), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1),
        )

    def forward(self, dense, sparse):
        indices = None if LIBRARY == "torch" else sparse.t().reshape(-1)
        if indices is None:
            vectors = torch.stack([table(sparse[:, i]) for i, table in enumerate(self.tables)], dim=1)
        else:
            vectors = self.tables(indices).view(BATCH, TABLES, DIM)
        if OURS:
            first = self.first_order(indices).sum(1, keepdim=True)
        else:
            first = torch.cat([table(sparse[:, i]) for i, table in enumerate(self.first_order)], dim=1).sum(1, keepdim=True)
        second = 0.5 * (vectors.sum(1).pow(2) - vectors.pow(2).sum(1)).sum(1, keepdim=True)
        deep = self.mlp(torch.cat([vectors.flatten(1), dense], dim=1))
        return (self.linear(dense) + first + second + deep).squeeze(1)


def steptime_setup():
    model = DeepFM().to(DEVICE)
    optimizers = [torch.optim.Adagrad([*model.linear.parameters(), *model.mlp.parameters()], lr=0.01)]
    if not OURS:
        tables = [] if LIBRARY == "fbgemm" else model.tables.parameters()
        optimizers.insert(0, torch.optim.SGD([*tables, *model.first_order.parameters()], lr=0.01))
    data = [
        (torch.rand(BATCH, DENSE), torch.randint(0, ROWS, (BATCH, TABLES)), torch.randint(0, 2, (BATCH,)).float())
        for _ in range(BATCHES)
    ]

    def step(batch):
        dense, sparse, label = (each.to(DEVICE) for each in batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(dense, sparse), label)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step, data, arguments(f"deepfm_{LIBRARY}" if LIBRARY != "torch" else "deepfm", BATCH, model)
