"""The measured cases: ops, groups and sizes, the same on every rank for the same seed."""

from __future__ import annotations

import argparse
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from steptime.errors import UsageError
from steptime.measure.draw import Draw

BYTES = {
    "all_reduce": "the buffer, reduced in place",
    "reduce_scatter": "the input; the output is 1/world of it",
    "all_gather": "the output; the input is 1/world of it",
    "all_to_all": "the input, of which every rank gets 1/world; the output is as large",
    "all_to_all_v": "the input of the rank that sends most; bytes / skew is the mean input and every output",
    "broadcast": "the message",
    "send_receive": "the message",
}
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}
WHOLE = ("all_reduce", "broadcast", "send_receive")  # ops that do not divide a buffer between the ranks
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


class Case(NamedTuple):
    """One op with one size in one group."""

    op: str
    world: int
    bytes: int
    dtype: str
    parts: Tuple[int, ...] = ()  # for all_to_all_v: number of elements that each rank sends to every rank

    @property
    def skew(self) -> float:
        return max(self.parts) * len(self.parts) / sum(self.parts) if self.parts else 1.0


def plan(options: argparse.Namespace, world: int) -> List[Case]:
    """All cases in a random order, the same on every rank."""
    ops, dtypes = chosen(options.ops, BYTES, "op"), chosen(options.dtypes, DTYPES, "dtype")
    groups, low, high = group_sizes(options.groups, world), amount(options.low), amount(options.high)
    if not 0 < low <= high:
        raise UsageError(f"--from {options.low} --to {options.high} contains no size")
    if options.sizes_per_doubling < 0 or options.iterations < 1:
        raise UsageError("--sizes-per-doubling must be 0 or more, --iterations 1 or more")
    cases: Dict[Case, None] = {}
    for dtype in dtypes:
        for op in ops:
            for group in [2] if op == "send_receive" else groups:
                draw = Draw(f"{options.seed}/collectives/{op}/{group}/{dtype}")
                for size, drawn in sizes(low, high, options.sizes_per_doubling, draw):
                    cases[fitted(op, group, size, dtype, draw.uniform(0, 3) if drawn else 1.0)] = None
    if not cases:
        remedy = "--sizes-per-doubling 1 draws sizes"
        raise UsageError(f"no power of two is between --from {options.low} and --to {options.high}: {remedy}")
    return list(Draw(f"{options.seed}/collectives").some(list(cases), len(cases)))


def chosen(text: str, known: Iterable[str], what: str) -> List[str]:
    """Names of a comma-separated list. Raises UsageError for unknown ones."""
    names = list(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    for name in names:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}; there are {', '.join(known)}")
    if not names:
        raise UsageError(f"no {what} is named; there are {', '.join(known)}")
    return names


def group_sizes(text: Optional[str], world: int) -> List[int]:
    """Group sizes to measure, in ranks."""
    if text is None:
        return sorted({world, *(2**power for power in range(1, world.bit_length()))})
    try:
        groups = sorted({int(each) for each in text.split(",")})
    except ValueError:
        raise UsageError(f"--groups {text} is not a list of numbers such as 2,4") from None
    if groups[0] < 2 or groups[-1] > world:
        raise UsageError(f"--groups {text}: each must be from 2 to the {world} ranks of this job")
    return groups


def amount(text: str) -> int:
    """Number of bytes of a text such as `4096`, `1KiB`, `2.5MB`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]I?)?B?", text.strip().upper())
    if match is None:
        raise UsageError(f"{text!r} is not a number of bytes such as 4096 or 1KiB")
    return round(float(match[1]) * UNITS[match[2] or ""])


def sizes(low: int, high: int, per_doubling: int, draw: Draw) -> List[Tuple[int, bool]]:
    """Powers of two between `low` and `high`, and random log-uniform sizes; each with whether it is random."""
    found = [(2**power, False) for power in range(high.bit_length()) if 2**power >= low]
    while low < high:
        found += [(draw.log(low, min(2 * low, high)), True) for _ in range(per_doubling)]
        low *= 2
    return found


def fitted(op: str, world: int, size: int, dtype: str, power: float) -> Case:
    """The case of about this size, rounded down so that the ranks can share it evenly."""
    unit = DTYPES[dtype] * (1 if op in WHOLE else world)
    count = max(size // unit, 1)
    if op != "all_to_all_v":
        return Case(op, world, count * unit, dtype)
    parts = tuple(max(round(count * ((rank + 1) / world) ** power), 1) for rank in range(world))
    return Case(op, world, count * unit, dtype, parts)
