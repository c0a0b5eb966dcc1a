"""A single rank of a job without other processes."""

from __future__ import annotations

from typing import Any, List

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.testing._internal.distributed.fake_pg import FakeStore

Tensors = List[torch.Tensor]


def join(world: int) -> None:
    """Makes this process the first rank of a job of `world` ranks, unless it is in a job already."""
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())


class Completed(dist.ProcessGroup):
    """PyTorch's fake group of all ranks, whose collectives also return their tensors, which DistributedDataParallel reads."""

    def __init__(self) -> None:
        self.fake = dist.group.WORLD
        super().__init__(self.fake.rank(), self.fake.size())

    def getBackendName(self) -> str:  # noqa: N802  # PyTorch's name
        return "fake"

    def allreduce(self, tensors: Tensors, options: Any) -> Any:
        self.fake.allreduce(tensors, options)
        return _completed(tensors)

    def broadcast(self, tensors: Tensors, options: Any) -> Any:
        self.fake.broadcast(tensors, options)
        return _completed(tensors)

    def allgather(self, gathered: List[Tensors], tensors: Tensors, options: Any) -> Any:
        self.fake.allgather(gathered, tensors, options)
        return _completed(gathered)


def _completed(result: Any) -> Any:
    done: Any = torch.futures.Future()
    done.set_result(result)
    return _create_work_from_future(done)
