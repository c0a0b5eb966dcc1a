"""A network of independent branches, on several streams or all on one.

    STEPTIME_STREAMS=2 python -m steptime record workloads/branches.py --out recordings/branches_streams

STEPTIME_STREAMS   number of streams that the branches alternate on; 1 (default): all on the default stream
STEPTIME_BRANCHES  products (default): towers of matrix products that each fill half of a large GPU
                   mixed: images, text and lookups, mostly small kernels
"""
import os

import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

KIND = os.environ.get("STEPTIME_BRANCHES", "products")
STREAMS = int(os.environ.get("STEPTIME_STREAMS", "1"))
BATCH = batch_size(pick(256, 4))
WIDTH, ROWS, CLASSES = pick((2048, 500_000, 16), (16, 100, 4))


class Lookups(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table, self.mix = nn.EmbeddingBag(ROWS, 64, mode="sum"), nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, index):
        return self.mix(self.table(index))


class Text(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = nn.Embedding(1000, width)
        self.mix = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)

    def forward(self, index):
        return self.mix(self.table(index)).mean(dim=1)


def products():
    def tower():
        return nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())])

    return [tower(), tower()], 2 * WIDTH, [lambda: torch.randn(BATCH, WIDTH)] * 2


def mixed():
    images = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    data = [lambda: torch.randn(BATCH, 3, 32, 32), lambda: torch.randint(0, 1000, (BATCH, 32)), lambda: torch.randint(0, ROWS, (BATCH, 20))]
    return [images, Text(128), Lookups(128)], 3 * 128, data


class Branches(nn.Module):
    """Parallel branches, and a layer on top of all."""

    def __init__(self, branches, width):
        super().__init__()
        self.branches, self.top = nn.ModuleList(branches), nn.Linear(width, CLASSES)
        self.side = [torch.cuda.Stream() for _ in range(STREAMS - 1)] if DEVICE == "cuda" else []

    def forward(self, inputs):
        if not self.side:
            return self.top(torch.cat([branch(x) for branch, x in zip(self.branches, inputs)], dim=1))
        main, results = torch.cuda.current_stream(), []
        for stream in self.side:
            stream.wait_stream(main)
        for at, (branch, x) in enumerate(zip(self.branches, inputs)):
            stream = [main, *self.side][at % STREAMS]
            with torch.cuda.stream(stream):
                result = branch(x)
            if stream is not main:
                x.record_stream(stream)
                result.record_stream(main)
            results.append(result)
        for stream in self.side:
            main.wait_stream(stream)
        return self.top(torch.cat(results, dim=1))


def steptime_setup():
    branches, width, make = {"products": products, "mixed": mixed}[KIND]()
    model = Branches(branches, width).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = [([each() for each in make], torch.randint(0, CLASSES, (BATCH,))) for _ in range(BATCHES)]

    def step(batch):
        inputs, label = [each.to(DEVICE) for each in batch[0]], batch[1].to(DEVICE)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), label).backward()
        optimizer.step()

    return step, data, arguments(f"branches_{KIND}_{STREAMS}", BATCH, model)
