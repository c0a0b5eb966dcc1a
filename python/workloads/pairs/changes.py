"""Changes of a script, each with the flags that apply the same change to a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence

from .case import Case, Maker

WORLD = 8
"""Ranks of the jobs."""
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "adagrad")
WITH_ALL_OPTIMIZERS = ("perceptron", "resnet18", "gpt2", "dlrm", "conformer")


@dataclass
class Switches:
    """Changes of a script."""

    batch: int
    dtype: str = ""
    optimizer: str = ""
    form: str = ""
    accumulate: int = 1
    checkpoint: bool = False
    channels_last: bool = False
    tf32: bool = False
    parallel: str = ""
    removed: Sequence[str] = ()
    sizes: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Pair:
    """One recording: its name; for a change also its kind, the recording before the change and the flags of `steptime whatif`."""

    name: str
    switches: Switches
    kind: str = ""
    before: str = "base"
    flags: Sequence[str] = ()
    after_flags: Sequence[str] = ()


def pairs(name: str, maker: Maker, case: Case) -> List[Pair]:
    """All recordings of a model, with those that others are compared with first."""
    batch, optimizer = maker.batch, case.optimizer
    root = type(case.model).__name__
    named = ["--blocks", ",".join(f"module:{root}.{path}" for path in case.blocks) or "whole"]

    def switched(**what: Any) -> Switches:
        return Switches(**{"batch": batch, **what})

    def changed(kind: str, flags: Sequence[str], label: str = "", **what: Any) -> Pair:
        return Pair(label or kind.replace(" ", "-"), switched(**what), kind, "base", flags)

    found = [Pair("base", switched())]
    found += [changed(kind, ["--batch", str(size)], batch=size) for kind, size in (("batch x4", 4 * batch), ("batch x0.5", batch // 2), ("batch 1", 1))]
    found += [changed(dtype, ["--dtype", dtype], dtype=dtype) for dtype in ("bf16", "fp16")]
    found.append(changed("tf32", ["--dtype", "tf32"], tf32=True))
    found.append(changed("accumulate 2", ["--accumulate", "2"], accumulate=2))
    if case.blocks:
        found.append(changed("checkpoint", ["--checkpoint", *([] if case.rows else named)], checkpoint=True))
        found.append(Pair("checkpoint-x4", switched(checkpoint=True, batch=4 * batch), "checkpointed, batch x4", "checkpoint", ["--batch", str(4 * batch)]))
    if maker.images:
        found.append(changed("channels last", ["--channels-last"], channels_last=True))
    found += [changed("remove", ["--remove", what], f"remove-{at}", removed=paths) for at, (what, paths) in enumerate(maker.removed.items()) if paths]
    found += [changed("sizes", ["--set", what], f"size-{at}", sizes=sizes) for at, (what, sizes) in enumerate(maker.sizes.items())]
    found += _forms("", "base", batch)
    for other in OPTIMIZERS if name in WITH_ALL_OPTIMIZERS else ():
        if other != optimizer:
            found.append(Pair(f"{other}", switched(optimizer=other)))
            found += _forms(other, other, batch)
    if not case.sparse:
        found.append(Pair("ddp", switched(parallel="ddp"), "data parallel", "base", ["--data-parallel", str(WORLD)]))
        found.append(Pair("fsdp", switched(parallel="fsdp"), "fsdp", "base", ["--world", str(WORLD), "--parallel", "fsdp", *named]))
    return found


def _forms(optimizer: str, before: str, batch: int) -> List[Pair]:
    """Pairs for the implementations of an optimizer's step; the default on a GPU are ops over lists of tensors."""
    prefix = f"{optimizer}-" if optimizer else ""

    def form(name: str) -> Switches:
        return Switches(batch=batch, optimizer=optimizer, form=name)

    fuse = ["--fuse", "optimizer"]
    return [
        Pair(f"{prefix}foreach", form("foreach"), "foreach as on a GPU", before),
        Pair(f"{prefix}fused", form("fused"), "fused optimizer", before, fuse),
        Pair(f"{prefix}loop", form("loop")),
        Pair(f"{prefix}loop-fused", form("fused"), "loop to fused", f"{prefix}loop", fuse),
    ]
