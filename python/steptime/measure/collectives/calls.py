"""The calls of a rank for a case."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from steptime.measure.collectives.cases import DTYPES, Case
from steptime.measure.collectives.job import Job


def call(job: Job, case: Case) -> Callable[[], Any]:
    """Returns the function that this rank runs for a case."""
    dist, group, item, dtype = job.dist, job.groups[case.world], DTYPES[case.dtype], getattr(job.torch, case.dtype)
    share = case.bytes // case.world

    def first(size: int) -> Any:
        return job.first[:size].view(dtype)

    def second(size: int) -> Any:
        return job.second[:size].view(dtype)

    if case.op == "all_reduce":
        return partial(dist.all_reduce, first(case.bytes), group=group)
    if case.op == "reduce_scatter":
        return partial(dist.reduce_scatter_tensor, second(share), first(case.bytes), group=group)
    if case.op == "all_gather":
        return partial(dist.all_gather_into_tensor, first(case.bytes), second(share), group=group)
    if case.op == "all_to_all":
        return partial(dist.all_to_all_single, second(case.bytes), first(case.bytes), group=group)
    if case.op == "all_to_all_v":
        own = case.parts[job.rank]
        received, sent = second(sum(case.parts) * item), first(own * case.world * item)
        return partial(dist.all_to_all_single, received, sent, list(case.parts), [own] * case.world, group=group)
    if case.op == "broadcast":
        return partial(dist.broadcast, first(case.bytes), 0, group=group)
    # A batch uses the communicator of the group; a plain send would create another one.
    way, peer = (dist.isend, 1) if job.rank == 0 else (dist.irecv, 0)
    message = first(case.bytes)
    return lambda: [work.wait() for work in dist.batch_isend_irecv([dist.P2POp(way, message, peer, group)])]
