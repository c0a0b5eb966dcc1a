"""Records the steps of `tests/rules/sharded_recorded.rs` on a CPU: python sharded.py FOLDER, with steptime's package on the path.

Collectives of a fake process group return at once.
"""

import sys
from pathlib import Path

import steptime
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS = 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(96, 32)

    def forward(self, x):
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


class Blocks(nn.Module):
    """Two rows of blocks with a sum between them: they do not follow one another."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(50, 32), nn.Linear(32, 11)
        self.down, self.up = (nn.ModuleList([Block()]) for _ in range(2))

    def forward(self, x):
        first = self.down[0](self.table(x))
        return self.head(self.up[0](first.flip(1) + first).mean(1))


def record(name: str, sharded: bool) -> None:
    torch.manual_seed(0)
    model = Blocks()
    if sharded:
        mesh = init_device_mesh("cpu", (RANKS,))
        for block in (*model.down, *model.up):
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch):
        x, y = batch
        optimizer.zero_grad()
        # The divisor and the loss are numbers, whose memory others have in the optimizer's step.
        (nn.functional.cross_entropy(model(x), y) / 3.0).backward()
        optimizer.step()

    data = [(torch.randint(0, 50, (6, 7)), torch.randint(0, 11, (6,))) for _ in range(2)]
    steptime.record(step, data, out=Path(sys.argv[1]) / name, batch=6, only="et", overwrite=True)


torch.set_num_threads(1)
dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
record("blocks", False)
record("blocks_sharded", True)
