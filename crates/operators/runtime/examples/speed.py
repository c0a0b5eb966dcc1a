"""Time of a training step of a described DLRM in PyTorch eager on the CPU, beside that of the example `speed`.

    python speed.py MODEL.toml [--batch 2048] [--threads 2] [--steps 20] [--compile]

Indices are uniform, bags have one size, gradients of tables are sparse, and the optimizer is SGD. The first steps are not counted.
"""
import argparse
import time
import tomllib

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--batch", type=int, default=2048)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--compile", action="store_true")
given = parser.parse_args()
torch.set_num_threads(given.threads)
with open(given.model, "rb") as file:
    of = tomllib.load(file)
tables = [table for table in of["tables"] for _ in range(table.get("count", 1))]
batch = given.batch


def mlp(width: int, widths: list[int], rectified: bool) -> nn.Sequential:
    layers = []
    for at, to in enumerate(widths):
        layers.append(nn.Linear(width, to))
        if rectified or at + 1 < len(widths):
            layers.append(nn.ReLU())
        width = to
    return nn.Sequential(*layers)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        width, count = of["bottom_mlp"][-1], len(tables) + 1
        self.bottom = mlp(of["dense"], of["bottom_mlp"], True)
        self.tables = nn.ModuleList(nn.EmbeddingBag(t["rows"], t["columns"], mode="sum", sparse=True) for t in tables)
        self.top = mlp(width + count * (count - 1) // 2, of["top_mlp"], False)
        self.register_buffer("below", torch.tril_indices(count, count, -1))

    def forward(self, dense, lookups):
        first = self.bottom(dense)
        rows = [table(*lookup) for table, lookup in zip(self.tables, lookups)]
        vectors = torch.cat([first, *rows], 1).view(batch, -1, first.shape[1])
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.below[0], self.below[1]]
        return self.top(torch.cat([first, products], 1))


model = Dlrm()
run = torch.compile(model) if given.compile else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss_of = nn.MSELoss() if of.get("loss") == "mse" else nn.BCEWithLogitsLoss()
dense, labels = torch.rand(batch, of["dense"]), torch.randint(2, (batch, 1)).float()
lookups = [(torch.randint(t["rows"], (batch * t.get("lookups", 1),)), torch.arange(batch) * t.get("lookups", 1)) for t in tables]
times = []
for step in range(3 + given.steps):
    start = time.perf_counter()
    output = run(dense, lookups)
    loss = loss_of(torch.sigmoid(output) if of.get("loss") == "mse" else output, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
    times.append(time.perf_counter() - start)
times = sorted(times[3:])
print(f"PyTorch {torch.__version__}{' with compile' if given.compile else ''}: median {times[len(times) // 2] * 1e3:.1f} ms, least {times[0] * 1e3:.1f} ms")
