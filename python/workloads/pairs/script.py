"""The training script of a case, with switches for its changes."""

from __future__ import annotations

import contextlib
import fnmatch
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from .case import Case, Maker
from .changes import WORLD, Switches
from .early_stop import checkpointed

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
FORMS: Dict[str, Dict[str, bool]] = {"": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}
OPTIMIZERS = {
    "sgd": lambda parameters, **form: torch.optim.SGD(parameters, lr=0.01, **form),
    "momentum": lambda parameters, **form: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **form),
    "adam": lambda parameters, **form: torch.optim.Adam(parameters, lr=1e-3, **form),
    "adamw": lambda parameters, **form: torch.optim.AdamW(parameters, lr=1e-3, **form),
    "adagrad": lambda parameters, **form: torch.optim.Adagrad(parameters, lr=1e-2, **form),
    "sparseadam": lambda parameters, **form: _Both(parameters, **form),
}


def _Both(parameters: Any, **form: bool) -> torch.optim.Optimizer:  # noqa: N802
    """SparseAdam for tables with sparse gradients; other parameters are not updated."""
    tables = [each for each in parameters if each.dim() == 2 and each.shape[0] >= 10_000]
    return torch.optim.SparseAdam(tables, lr=1e-3, **form)


Step = Callable[[Tuple[torch.Tensor, ...]], None]


def built(maker: Maker, switches: Switches, device: str) -> Tuple[Step, Callable[[], List[Any]], torch.nn.Module, torch.optim.Optimizer]:
    """A training step, its batches on the host, the model and its optimizer."""
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = switches.tf32
    with torch.device(device):
        case = maker.make(**switches.sizes)
    model = case.model.train()
    for path in switches.removed:
        _replaced(model, path, lambda _: torch.nn.Identity())
    if switches.channels_last:
        model.to(memory_format=torch.channels_last)
    if switches.checkpoint:
        for pattern in case.blocks:
            for path in _paths(model, pattern):
                block = model.get_submodule(path)
                block.forward = checkpointed(block.forward)
    trained = _parallel(model, case, switches.parallel)
    make = OPTIMIZERS[switches.optimizer or case.optimizer]
    optimizer = make(trained.parameters(), **FORMS[switches.form])

    def placed(tensor: torch.Tensor) -> torch.Tensor:
        there = tensor.to(device)
        return there.to(memory_format=torch.channels_last) if switches.channels_last and there.dim() == 4 else there

    cast = (lambda: torch.autocast("cpu", DTYPES[switches.dtype])) if switches.dtype else contextlib.nullcontext

    def step(batches: Any) -> None:
        optimizer.zero_grad()
        for batch in batches:
            there = [placed(each) for each in batch]
            with cast():
                loss = case.loss(trained, *there)
            if switches.accumulate > 1:
                loss = loss / switches.accumulate
            loss.backward()
        optimizer.step()

    def data() -> List[Any]:
        return [tuple(case.inputs(switches.batch) for _ in range(switches.accumulate))]

    return step, data, model, optimizer


def _paths(model: torch.nn.Module, pattern: str) -> Iterator[str]:
    """Paths of modules that match a pattern part by part; a pattern of one part matches at any depth."""
    for path, _ in model.named_modules():
        parts, wanted = path.split("."), pattern.split(".")
        if len(wanted) == 1:
            parts = parts[-1:]
        if path and len(parts) == len(wanted) and all(map(fnmatch.fnmatch, parts, wanted)):
            yield path


def _replaced(model: torch.nn.Module, pattern: str, make: Callable[[torch.nn.Module], torch.nn.Module]) -> None:
    """Replaces the modules that match a pattern."""
    for path in list(_paths(model, pattern)):
        around, _, name = path.rpartition(".")
        owner = model.get_submodule(around)
        setattr(owner, name, make(getattr(owner, name)))


def _parallel(model: torch.nn.Module, case: Case, how: str) -> torch.nn.Module:
    """The model as a single rank of a job without other processes: collectives of a fake process group return at once."""
    if not how:
        return model
    from . import ranks

    ranks.join(WORLD)
    if how == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, process_group=ranks.Completed())
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (WORLD,))
    for pattern in case.blocks:
        for path in _paths(model, pattern):
            fully_shard(model.get_submodule(path), mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model
