"""This rank in its job."""

from __future__ import annotations

import os
import socket
from typing import Any, List, Optional, Sequence

from steptime.errors import UsageError
from steptime.measure.collectives.cases import Case
from steptime.measure.collectives.topology import Member, tool


class Job:
    """This rank in its job: its device, its groups, and two buffers that all cases use."""

    def __init__(self, backend: str, rank: int, world: int, cases: Sequence[Case]) -> None:
        import torch
        import torch.distributed as dist

        self.torch: Any = torch
        self.dist: Any = dist
        self.backend, self.rank, self.world = backend, rank, world
        self.on_gpu = backend == "nccl"
        self.device = self._device()
        dist.init_process_group(backend)
        self.control = dist.new_group(backend="gloo")  # control messages between ranks, without the GPUs
        worlds = sorted({each.world for each in cases})
        self.groups = {size: dist.new_group(list(range(size)), backend=backend) for size in worlds}
        node = os.environ.get("GROUP_RANK", socket.gethostname())
        self.members: List[Member] = self.all(Member(node, self._number()))
        most = max(each.bytes for each in cases)
        self.first, self.second = (torch.zeros(most, dtype=torch.uint8, device=self.device) for _ in range(2))
        self.small = torch.zeros(1, device=self.device)
        self.mark = torch.zeros(1, device=self.device)

    def _device(self) -> str:
        torch, dist = self.torch, self.dist
        if not self.on_gpu:
            if not (dist.is_available() and dist.is_gloo_available()):
                raise UsageError("this PyTorch was built without gloo")
            return "cpu"
        here, ranks = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", self.world))
        if here < ranks:
            remedy = f"--nproc-per-node {here}" if here > 1 else "take a machine with 2 GPUs at least"
            raise UsageError(
                f"NCCL needs a GPU for each rank, so {ranks} on this node, and PyTorch sees {here}: {remedy}, "
                "or --backend gloo for the CPU"
            )
        if not dist.is_nccl_available():
            raise UsageError("this PyTorch was built without NCCL: --backend gloo measures the CPU")
        device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
        torch.cuda.set_device(device)
        return device

    def _number(self) -> Optional[int]:
        """Index in `nvidia-smi` of this rank's GPU."""
        if not self.on_gpu:
            return None
        own = str(getattr(self.torch.cuda.get_device_properties(self.device), "uuid", ""))
        for line in tool("--query-gpu=index,uuid", "--format=csv,noheader").splitlines():
            index, _, uuid = line.partition(",")
            if own and own in uuid:
                return int(index)
        return None

    def all(self, mine: Any) -> List[Any]:
        """Gathers the values of all ranks, on every rank."""
        everyone: List[Any] = [None] * self.world
        self.dist.all_gather_object(everyone, mine, group=self.control)
        return everyone

    def tell(self, said: Any) -> Any:
        """Returns the value of rank 0, on every rank."""
        told = [said]
        self.dist.broadcast_object_list(told, src=0, group=self.control)
        return told[0]

    def together(self, case: Case) -> None:
        """Synchronises the ranks of a case."""
        self.dist.all_reduce(self.small, group=self.groups[case.world])

    def synchronize(self) -> None:
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def end(self) -> None:
        self.dist.destroy_process_group()
