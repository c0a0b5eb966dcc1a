"""Records the steps of `tests/rules/passes.rs` on a CPU: python passes.py FOLDER, with steptime's package on the path."""

import functools
import sys
from pathlib import Path

import steptime
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

torch.manual_seed(0)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


class Words(nn.Module):
    """A recurrent network before blocks, over a graph that is the same for every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.recurrent = nn.Embedding(50, 32), nn.LSTM(32, 32, batch_first=True)
        self.blocks, self.head = nn.ModuleList([Block() for _ in range(3)]), nn.Linear(32, 11)

    def forward(self, x, edges):
        h = self.recurrent(self.table(x))[0][:, -1]
        h = torch.zeros_like(h).index_add(0, edges[1], h[edges[0]])
        for block in self.blocks:
            h = block(h)
        return self.head(h)


class Clicks(nn.Module):
    """Two tables of one shape, stacked with the dense features."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(40, 16, mode="sum", sparse=True) for _ in range(2)])
        self.bottom, self.top = nn.Linear(5, 16), nn.Linear(19, 1)
        pairs = torch.tril_indices(3, 3, -1)
        self.register_buffer("rows", pairs[0])
        self.register_buffer("columns", pairs[1])

    def forward(self, dense, indices, offsets):
        dense = self.bottom(dense)
        all = torch.stack([dense] + [table(each, offsets) for table, each in zip(self.tables, indices)], 1)
        products = torch.bmm(all, all.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.rows, self.columns]], 1)).squeeze(1)


def words(batches: int, checkpointed: bool) -> None:
    model, edges = Words(), torch.randint(0, 6, (2, 17))
    if checkpointed:
        for block in model.blocks:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(data):
        optimizer.zero_grad()
        for x, y in data:
            # PyTorch's observer loses the op that an early stop ends, and all that follows is inside the wrong one.
            with set_checkpoint_early_stop(False):
                loss = nn.functional.cross_entropy(model(x, edges), y)
            (loss / batches if batches > 1 else loss).backward()
        optimizer.step()

    record(step, lambda: (torch.randint(0, 50, (6, 7)), torch.randint(0, 11, (6,))), batches, 6)


def clicks(batches: int, form: str) -> None:
    model = Clicks()
    tables = [table.weight for table in model.tables]
    sparse = {"adam": torch.optim.SparseAdam, "adagrad": torch.optim.Adagrad}[form](tables)
    dense = torch.optim.SGD([*model.bottom.parameters(), *model.top.parameters()], lr=0.1)

    def step(data):
        sparse.zero_grad()
        dense.zero_grad()
        for batch in data:
            loss = nn.functional.binary_cross_entropy_with_logits(model(*batch[:3]), batch[3])
            (loss / batches if batches > 1 else loss).backward()
        sparse.step()
        dense.step()

    def batch():
        indices = [torch.randint(0, 40, (24,)) for _ in range(2)]
        return torch.randn(8, 5), indices, torch.arange(0, 24, 3), torch.rand(8)

    record(step, batch, batches, 8)


def record(step, make, batches: int, size: int) -> None:
    steptime.record(step, [[make() for _ in range(batches)] for _ in range(2)], out=out, batch=size, only="et", overwrite=True)


for name, made in {
    "words": lambda: words(1, False),
    "words_2": lambda: words(2, False),
    "words_checkpointed": lambda: words(1, True),
    "clicks_adam": lambda: clicks(1, "adam"),
    "clicks_adam_2": lambda: clicks(2, "adam"),
    "clicks_adagrad": lambda: clicks(1, "adagrad"),
}.items():
    out = Path(sys.argv[1]) / name
    made()
