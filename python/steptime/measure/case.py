"""A case: one operator call to time, with shapes drawn at random. Case i of a family and seed is always the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from steptime.measure.draw import Draw

FAMILY_SLOTS = 64  # a case's number: its index in its family times this, plus its family's slot

LARGEST = 3e8  # elements of a tensor, in families that limit it

# Rough speeds, used only to keep cases short: bytes and floating-point operations per second.
MEMORY_RATE = 3e12
RATES = {"float32": 40e12, "tf32": 250e12, "bfloat16": 500e12, "float16": 500e12, "float8_e4m3fn": 900e12}


@dataclass
class Op:
    """A timed call: `run`, after `before` outside the timed region. Tensor lists, which traces lack, are given here."""

    run: Callable[[], Any]
    before: Optional[Callable[[], Any]] = None
    lists: Dict[str, Dict[int, Any]] = field(default_factory=dict)  # operator -> position of input -> its tensors, or tensor
    devices: Dict[str, List[str]] = field(default_factory=dict)  # operator -> device of each input
    indices: Any = ""  # distribution of the drawn indices, where it is not known before the setup


@dataclass
class Case:
    """A case: its setup, and estimates of its work."""

    what: str
    setup: Callable[[Any], Any]  # Maker -> Op, or the function to run
    bytes: float  # bytes moved, approximately
    flops: float = 0.0
    dtype: str = "float32"  # type of the arithmetic; "tf32" where matrix products may use TF32
    memory: Optional[float] = None  # bytes allocated; None for about `bytes`
    seconds: float = 0.0  # a lower bound on the time, where bytes and flops give none
    indices: str = ""  # distribution of indices: "", "uniform", "zipf:1.05"
    compile: Optional[Callable[[str], None]] = None  # compiles the case's kernels for a device, where they are cached
    prepare: float = 0.0  # seconds of preparation on the host, for cases where it is long
    ops: str = ""  # prefix of the operators whose times are kept; "" for all that the case runs
    # Set by `generate`:
    family: str = ""
    index: int = 0
    number: int = 0
    after: int = 0  # bytes to write between touching the operands and running again; 0: no such state

    @property
    def tf32(self) -> bool:
        return self.dtype == "tf32"

    @property
    def allocated(self) -> float:
        return self.bytes if self.memory is None else self.memory

    @property
    def arithmetic(self) -> float:
        return self.flops / RATES.get(self.dtype, RATES["float32"])

    @property
    def estimate(self) -> float:
        """Approximate duration in seconds."""
        return max(self.bytes / MEMORY_RATE, self.arithmetic, self.seconds)


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a case."""

    bytes: float = 4e9
    seconds: float = 0.020
    usual: float = 0.002  # duration above which only a share of the cases is kept
    longer: float = 0.15  # kept share of cases longer than `usual`
    brief: float = 0.5e-6  # duration below which the start and end of a kernel dominate
    briefer: float = 0.35  # kept share of cases shorter than `brief`


@dataclass(frozen=True)
class Family:
    """A named source of cases."""

    name: str
    weight: float
    slot: int
    draw: Callable[[Draw], Optional[Case]]
    seeded: str = ""  # the name in the seeds of its cases; "" for `name`


def generate(family: Family, seed: int, index: int, limits: Limits = Limits(), tries: int = 1000) -> Optional[Case]:
    """Case `index` of the family: redrawn until it is within the limits; None after `tries` attempts."""
    rng = Draw(f"{seed}/{family.seeded or family.name}/{index}")
    for _ in range(tries):
        case = family.draw(rng)
        if case is None or not _fits(case, limits, rng):
            continue
        case.family, case.index, case.number = family.name, index, index * FAMILY_SLOTS + family.slot
        if rng.chance(0.5):
            case.after = int(rng.real(64e3, 256e6)) // 4096 * 4096
        return case
    return None


def _fits(case: Case, limits: Limits, rng: Draw) -> bool:
    if case.allocated > limits.bytes or case.bytes > limits.bytes or case.estimate > limits.seconds:
        return False
    if case.estimate > limits.usual:
        return rng.chance(limits.longer)
    return case.estimate > limits.brief or rng.chance(limits.briefer)


def interleave(families: Sequence[Family], done: Dict[str, int]) -> Iterator[Tuple[Family, int]]:
    """Families in turn, in proportion to their weights, continuing after the cases in `done`."""
    counts = {family.name: done.get(family.name, 0) for family in families}
    total = sum(family.weight for family in families)
    while True:
        drawn = sum(counts.values()) + 1
        family = max(families, key=lambda each: each.weight / total * drawn - counts[each.name])
        yield family, counts[family.name]
        counts[family.name] += 1


# Sizes --------------------------------------------------------------------------------------------------------------

ITEM = {
    "float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "int64": 8, "int32": 4, "bool": 1, "uint8": 1,
}  # fmt: skip


def nbytes(dtype: str, *shapes: Sequence[int]) -> float:
    """Total size in bytes of tensors of these shapes."""
    return float(ITEM[dtype] * sum(math.prod(shape) for shape in shapes))
