"""DLRM with Criteo Kaggle's tables (at most a million rows each, 128 columns): embeddings and interaction use steptime's operators
or, for comparison, PyTorch's, or embeddings use FBGEMM's; both MLPs use PyTorch.

STEPTIME_OPERATORS   steptime (default; needs STEPTIME_CUDA_LIBRARY), fbgemm, or torch: an EmbeddingBag per table, bmm and an index
STEPTIME_OPTIMIZER   optimizer of the tables: sgd (default), adagrad, rowwise_adagrad (not with torch), adam. The MLPs use SGD
STEPTIME_LOOKUPS     number of rows per bag (default 1)
"""
import os

import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

KAGGLE = [
    1460, 583, 1000000, 1000000, 305, 24, 12517, 633, 3, 93145, 5683, 1000000, 3194, 27, 14992, 1000000, 10, 5652, 2173,
    4, 1000000, 18, 15, 286181, 105, 142572,
]  # fmt: skip
ROWS, DIM, DENSE, BOTTOM, TOP = pick(
    (KAGGLE, 128, 13, [512, 256], [1024, 1024, 512, 256, 1]),
    ([100, 7, 40], 8, 4, [16], [16, 1]),
)
BATCH = batch_size(2048)
LOOKUPS = int(os.environ.get("STEPTIME_LOOKUPS", 1))
LIBRARY = os.environ.get("STEPTIME_OPERATORS", "steptime")
OPTIMIZER = os.environ.get("STEPTIME_OPTIMIZER", "sgd")
TORCH_OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.SparseAdam}


def mlp(sizes, last):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*(layers if last else layers[:-1]))


class TorchBags(nn.Module):
    """An EmbeddingBag per table, with concatenated outputs."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True) for rows in ROWS)

    def forward(self, indices, offsets):
        starts = offsets[:BATCH]
        return torch.cat([bag(part, starts) for bag, part in zip(self.bags, indices.view(len(ROWS), -1))], dim=1)


class TorchInteraction(nn.Module):
    """All pairwise products, of which a triangle is kept."""

    def __init__(self, vectors):
        super().__init__()
        rows, columns = torch.tril_indices(vectors, vectors, -1)
        self.register_buffer("triangle", rows * vectors + columns)

    def forward(self, vectors):
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.cat([vectors[:, 0], products.index_select(1, self.triangle)], dim=1)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        vectors = len(ROWS) + 1
        self.bottom = mlp([DENSE, *BOTTOM, DIM], last=True)
        self.top = mlp([DIM + vectors * (vectors - 1) // 2, *TOP], last=False)
        if LIBRARY == "steptime":
            from steptime.operators import EmbeddingBags, interaction

            self.bags = EmbeddingBags(ROWS, DIM, optimizer=OPTIMIZER, lr=0.01, longest=BATCH * LOOKUPS, device=DEVICE)
            self.interaction = interaction
        elif LIBRARY == "fbgemm":
            from zoo.tables import bags

            self.bags = bags("fbgemm", ROWS, DIM, TORCH_OPTIMIZERS[OPTIMIZER], 0.01)
            self.interaction = TorchInteraction(vectors)
        else:
            self.bags, self.interaction = TorchBags(), TorchInteraction(vectors)

    def forward(self, dense, indices, offsets):
        pooled = self.bags(indices, offsets).view(BATCH, len(ROWS), DIM)
        vectors = torch.cat([self.bottom(dense).unsqueeze(1), pooled], dim=1)
        return self.top(self.interaction(vectors)).squeeze(1)


def steptime_setup():
    model = Dlrm().to(DEVICE)
    optimizers = [torch.optim.SGD([*model.bottom.parameters(), *model.top.parameters()], lr=0.01)]
    if LIBRARY == "torch":
        optimizers.append(TORCH_OPTIMIZERS[OPTIMIZER](model.bags.parameters(), lr=0.01))
    offsets = torch.arange(0, len(ROWS) * BATCH * LOOKUPS + 1, LOOKUPS, device=DEVICE)
    data = [
        (
            torch.rand(BATCH, DENSE),
            torch.cat([torch.randint(0, rows, (BATCH * LOOKUPS,)) for rows in ROWS]),
            torch.randint(0, 2, (BATCH,)).float(),
        )
        for _ in range(BATCHES)
    ]

    def step(batch):
        dense, indices, label = (each.to(DEVICE) for each in batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(dense, indices, offsets), label)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    return step, data, arguments(f"dlrm_{LIBRARY}_{OPTIMIZER}", BATCH, model)
