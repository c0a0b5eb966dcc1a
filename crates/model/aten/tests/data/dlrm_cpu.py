"""Records `dlrm_cpu.json.gz`: the model of `examples/dlrm_default_2048` with small tables and a small batch, on a CPU.

    python dlrm_cpu.py dlrm_cpu.json && gzip -9n dlrm_cpu.json
"""
import sys

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, record_function

TABLES, ROWS, DIM, LOOKUPS, BATCH = 8, 1000, 64, 10, 64


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.ModuleList(nn.Linear(a, b) for a, b in [(512, 512), (512, 64)])
        self.bags = nn.ModuleList(nn.EmbeddingBag(ROWS, DIM, mode="sum", sparse=True) for _ in range(TABLES))
        widths = [DIM + (TABLES + 1) * TABLES // 2, 1024, 1024, 1024, 1]
        self.top = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.rows, self.columns = torch.tril_indices(TABLES + 1, TABLES + 1, -1)

    def forward(self, dense, indices, offsets):
        with record_function("## bottom_mlp ##"):
            for layer in self.bottom:
                dense = torch.relu(layer(dense))
        with record_function("## embedding ##"):
            pooled = [bag(i, o) for bag, i, o in zip(self.bags, indices, offsets)]
        with record_function("## interaction ##"):
            vectors = torch.cat([dense] + pooled, dim=1).view(dense.shape[0], -1, DIM)
            products = torch.bmm(vectors, vectors.transpose(1, 2))
            x = torch.cat([dense, products[:, self.rows, self.columns]], dim=1)
        with record_function("## top_mlp ##"):
            for at, layer in enumerate(self.top):
                x = torch.sigmoid(layer(x)) if at == len(self.top) - 1 else torch.relu(layer(x))
        return x


def main(out):
    torch.manual_seed(0)
    model, loss = Dlrm(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    indices = [torch.randint(0, ROWS, (BATCH * LOOKUPS,)) for _ in range(TABLES)]
    offsets = [torch.arange(0, BATCH * LOOKUPS, LOOKUPS) for _ in range(TABLES)]
    batch = [torch.rand(BATCH, 512), *indices, *offsets, torch.rand(BATCH, 1)]

    def step():
        with record_function("## to_device ##"):
            dense, *sparse, label = [each.to("cpu") for each in batch]
        with record_function("## forward ##"):
            predicted = model(dense, sparse[:TABLES], sparse[TABLES:])
        with record_function("## loss ##"):
            error = loss(predicted, label)
        optimizer.zero_grad()
        with record_function("## backward ##"):
            error.backward()
        with record_function("## optimizer ##"):
            optimizer.step()

    step()
    observer = ExecutionTraceObserver()
    observer.register_callback(out)
    observer.start()
    step()
    observer.stop()
    observer.unregister_callback()


main(sys.argv[1])
