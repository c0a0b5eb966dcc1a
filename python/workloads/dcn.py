"""Deep & cross network v2: sparse EmbeddingBags (sum, 10 lookups per bag), three cross layers, MLP; SGD."""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

TABLES, ROWS, DIM, LOOKUPS, DENSE = pick((16, 500_000, 32, 10, 64), (3, 100, 4, 2, 8))
BATCH = batch_size(4096)
WIDTH = TABLES * DIM + DENSE


class Dcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=True) for _ in range(TABLES))
        self.crosses = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU())
        self.head = nn.Linear(WIDTH + 256, 1)

    def forward(self, dense, indices, offsets):
        x0 = torch.cat([dense, *(bag(indices[i], offsets) for i, bag in enumerate(self.bags))], dim=1)
        x = x0
        for cross in self.crosses:
            x = x0 * cross(x) + x
        return self.head(torch.cat([x, self.mlp(x0)], dim=1)).squeeze(1)


def steptime_setup():
    model = Dcn().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    offsets = torch.arange(0, BATCH * LOOKUPS, LOOKUPS)
    data = [
        (torch.rand(BATCH, DENSE), torch.randint(0, ROWS, (TABLES, BATCH * LOOKUPS)), offsets, torch.randint(0, 2, (BATCH,)).float())
        for _ in range(BATCHES)
    ]

    def step(batch):
        dense, indices, starts, label = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(dense, indices, starts), label)
        loss.backward()
        optimizer.step()

    return step, data, arguments("dcn", BATCH, model)
