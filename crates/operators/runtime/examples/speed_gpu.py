"""Time of a training step of a described DLRM in PyTorch on a GPU, beside that of the example `speed` with `--device cuda`.

    python speed_gpu.py MODEL.toml [--batch 2048] [--steps 20] [--tf32] [--bf16] [--peers eager,compile,bags,graph]

eager    an EmbeddingBag per table with sparse gradients, bmm and an index, SGD
compile  the same with torch.compile
bags     steptime's operators for tables and interaction, torch.compile for the rest (needs STEPTIME_CUDA_LIBRARY)
graph    the same, the whole step captured as one CUDA graph
fbgemm   FBGEMM's table-batched bags with torch.compile, the whole step captured as one CUDA graph

Indices are uniform, bags have one size, the batch is on the GPU, no loss is read. The first steps are not counted.
"""
import argparse
import time
import tomllib

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--batch", type=int, default=2048)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--tf32", action="store_true")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--peers", default="eager,compile,bags,graph")
given = parser.parse_args()
torch.backends.cuda.matmul.allow_tf32 = given.tf32
torch.backends.cudnn.allow_tf32 = given.tf32
with open(given.model, "rb") as file:
    of = tomllib.load(file)
tables = [table for table in of["tables"] for _ in range(table.get("count", 1))]
batch, width = given.batch, of["bottom_mlp"][-1]


def mlp(width: int, widths: list[int], rectified: bool) -> nn.Sequential:
    layers = []
    for at, to in enumerate(widths):
        layers.append(nn.Linear(width, to))
        if rectified or at + 1 < len(widths):
            layers.append(nn.ReLU())
        width = to
    return nn.Sequential(*layers)


class TorchBags(nn.Module):
    """An EmbeddingBag per table."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(t["rows"], t["columns"], mode="sum", sparse=True) for t in tables)

    def forward(self, indices, offsets):
        at, rows = 0, []
        for bag, table in zip(self.bags, tables):
            count = batch * table.get("lookups", 1)
            rows.append(bag(indices[at : at + count], offsets[:batch]))
            at += count
        return torch.cat(rows, 1)


class Interaction(nn.Module):
    def __init__(self, count):
        super().__init__()
        rows, columns = torch.tril_indices(count, count, -1)
        self.register_buffer("triangle", rows * count + columns)

    def forward(self, vectors):
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return torch.cat([vectors[:, 0], products.index_select(1, self.triangle)], 1)


class Dlrm(nn.Module):
    def __init__(self, peer):
        super().__init__()
        count = len(tables) + 1
        self.bottom = mlp(of["dense"], of["bottom_mlp"], True)
        self.top = mlp(width + count * (count - 1) // 2, of["top_mlp"], False)
        rows, longest = [t["rows"] for t in tables], batch * max(t.get("lookups", 1) for t in tables)
        if peer in ("bags", "graph"):
            from steptime.operators import EmbeddingBags, interaction

            self.bags = EmbeddingBags(rows, width, optimizer="sgd", lr=0.01, longest=longest, device="cuda")
            self.interaction = interaction
        elif peer == "fbgemm":
            from fbgemm_gpu.split_embedding_configs import EmbOptimType
            from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
            from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen

            specs = [(count, width, EmbeddingLocation.DEVICE, ComputeDevice.CUDA) for count in rows]
            self.bags = SplitTableBatchedEmbeddingBagsCodegen(specs, optimizer=EmbOptimType.EXACT_SGD, learning_rate=0.01, device=torch.device("cuda"))
        else:
            self.bags = TorchBags()
        if peer not in ("bags", "graph"):
            self.interaction = Interaction(count)
        if peer in ("compile", "bags", "graph", "fbgemm"):
            self.bottom, self.top = torch.compile(self.bottom), torch.compile(self.top)
            if isinstance(self.interaction, nn.Module):
                self.interaction = torch.compile(self.interaction)

    def forward(self, dense, indices, offsets):
        first = self.bottom(dense)
        rows = self.bags(indices, offsets)
        vectors = torch.cat([first, rows], 1).view(batch, -1, width)
        return self.top(self.interaction(vectors))


def timed(peer):
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Dlrm(peer)
    model = model.cuda()
    dense = torch.rand(batch, of["dense"], device="cuda")
    labels = torch.randint(2, (batch, 1), device="cuda").float()
    lookups = [t.get("lookups", 1) for t in tables]
    indices = torch.cat([torch.randint(t["rows"], (batch * n,), device="cuda") for t, n in zip(tables, lookups)])
    starts, at = [], 0
    for n in lookups:
        starts.append(torch.arange(batch, device="cuda") * n + at)
        at += batch * n
    offsets = torch.cat([*starts, torch.tensor([at], device="cuda")])
    own = [p for n, p in model.named_parameters() if not (n.startswith("bags.") and peer in ("bags", "graph", "fbgemm"))]
    optimizer = torch.optim.SGD(own, lr=0.01)
    loss_of = nn.MSELoss() if of.get("loss") == "mse" else nn.BCEWithLogitsLoss()

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=given.bf16):
            output = model(dense, indices, offsets)
        loss = loss_of(torch.sigmoid(output.float()) if of.get("loss") == "mse" else output.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss

    run = step
    if peer in ("graph", "fbgemm"):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        run = graph.replay
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(given.steps):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / given.steps)
    return sorted(times)[2] * 1e3


precision = "bf16" if given.bf16 else "tf32" if given.tf32 else "f32"
for peer in given.peers.split(","):
    try:
        print(f"{peer} {precision} batch {batch}: {timed(peer):.4f} ms", flush=True)
    except Exception as error:  # a peer that is not installed or fails is named, and the others run
        print(f"{peer} {precision} batch {batch}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    torch.cuda.empty_cache()
