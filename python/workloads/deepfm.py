"""DeepFM: 26 sparse nn.Embedding tables of 100k x 16 (and x 1 for first order), FM, MLP.

The tables take sparse gradients by SGD, the rest Adagrad.
"""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

TABLES, ROWS, DIM, DENSE = pick((26, 100_000, 16, 13), (4, 100, 4, 3))
BATCH = batch_size(2048)


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, DIM, sparse=True) for _ in range(TABLES))
        self.first_order = nn.ModuleList(nn.Embedding(ROWS, 1, sparse=True) for _ in range(TABLES))
        self.linear = nn.Linear(DENSE, 1)
        self.mlp = nn.Sequential(
            nn.Linear(TABLES * DIM + DENSE, 400), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(400, 400), nn.ReLU(), nn.Dropout(0.1), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1),
        )

    def forward(self, dense, sparse):
        vectors = torch.stack([table(sparse[:, i]) for i, table in enumerate(self.tables)], dim=1)
        first = torch.cat([table(sparse[:, i]) for i, table in enumerate(self.first_order)], dim=1).sum(1, keepdim=True)
        second = 0.5 * (vectors.sum(1).pow(2) - vectors.pow(2).sum(1)).sum(1, keepdim=True)
        deep = self.mlp(torch.cat([vectors.flatten(1), dense], dim=1))
        return (self.linear(dense) + first + second + deep).squeeze(1)


def steptime_setup():
    model = DeepFM().to(DEVICE)
    embeddings = [*model.tables.parameters(), *model.first_order.parameters()]
    sparse_optimizer = torch.optim.SGD(embeddings, lr=0.01)
    dense_optimizer = torch.optim.Adagrad([*model.linear.parameters(), *model.mlp.parameters()], lr=0.01)
    data = [
        (torch.rand(BATCH, DENSE), torch.randint(0, ROWS, (BATCH, TABLES)), torch.randint(0, 2, (BATCH,)).float())
        for _ in range(BATCHES)
    ]

    def step(batch):
        dense, sparse, label = (each.to(DEVICE) for each in batch)
        sparse_optimizer.zero_grad()
        dense_optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(dense, sparse), label)
        loss.backward()
        sparse_optimizer.step()
        dense_optimizer.step()

    return step, data, arguments("deepfm", BATCH, model)
