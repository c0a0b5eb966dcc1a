"""Records small steps on a CPU: gru.json.gz, attention.json.gz, attention_split.json.gz, graph.json.gz, and bags.json.gz twice, with memory
and without; on the meta device channels_last.json.gz.

    PYTHONPATH=python python crates/model/aten/tests/data/small_cpu.py FOLDER

loop_*.json.gz beside this file are `STEPTIME_TINY=1 STEPTIME_DEVICE=cpu STEPTIME_LOOP=...` of python/workloads/loops.py.
"""
import sys
from pathlib import Path

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import steptime


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.GRU(8, 16, 2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.net(x)[0]).mean(1)


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.net, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.net(x)).mean(1)


class Split(nn.Module):
    """Query, key and value from one product, as in GPT-2."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        heads = (each.view(8, 6, 4, 4).transpose(1, 2) for each in self.qkv(x).split(16, dim=2))
        given = nn.functional.scaled_dot_product_attention(*heads, dropout_p=0.1, is_causal=True)
        return self.head(self.out(given.transpose(1, 2).contiguous().view(8, 6, 16))).mean(1)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, 8, mode="sum", sparse=True) for rows in (50, 300))
        self.head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, indices):
        offsets = torch.arange(0, indices.shape[1], 5)
        return self.head(torch.cat([table(each, offsets) for table, each in zip(self.tables, indices)], 1))


class Graph(nn.Module):
    """A product with a sparse matrix, and one with its transpose for the gradient."""

    def __init__(self):
        super().__init__()
        ends = torch.tensor([[0, 1, 1, 3, 5, 7], [2, 0, 4, 3, 1, 6]])
        self.register_buffer("edges", torch.sparse_coo_tensor(ends, torch.ones(6), (8, 8)).coalesce())
        self.first, self.head = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.sparse.mm(self.edges, self.first(x)))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        parts = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3, 1, 1)]
        self.net, self.head = nn.Sequential(*parts), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.net(x).relu().mean((2, 3)))


def record(model, x, out, device="cpu"):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    y = torch.zeros(8, dtype=torch.int64)

    def step(batch):
        x, y = (each.to(device) for each in batch)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return steptime.record(step, [(x, y)] * 2, out=out, only="et", overwrite=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    made = {
        "gru": lambda out: record(Recurrent(), torch.randn(8, 6, 8), out),
        "attention": lambda out: record(Attending(), torch.randn(8, 6, 16), out),
        "attention_split": lambda out: record(Split(), torch.randn(8, 6, 16), out),
        "bags": lambda out: record(Bags(), torch.zeros(2, 40, dtype=torch.int64), out),
        "graph": lambda out: record(Graph(), torch.randn(8, 16), out),
        "channels_last": lambda out: record(
            Images().to("meta", memory_format=torch.channels_last),
            torch.randn(8, 3, 8, 8).to(memory_format=torch.channels_last),
            out,
            "meta",
        ),
    }
    for name, make in made.items():
        (make(folder / "out") / "et.json.gz").replace(folder / f"{name}.json.gz")
    with FakeTensorMode():
        (made["bags"](folder / "out") / "et.json.gz").replace(folder / "bags_fake.json.gz")
