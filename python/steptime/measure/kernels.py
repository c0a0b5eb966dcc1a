"""Short names of kernels."""

from __future__ import annotations

LONGEST = 120
# Libraries whose template arguments contain the tile sizes and data types of a kernel.
TELLING = ("cutlass", "xmma", "cudnn", "nvjet")
COPIES = ("Memcpy", "Memset")


def short(name: str) -> str:
    """The kernel's name without return type and arguments; with template arguments only where they contain the tile size."""
    if name.startswith(COPIES):
        return name
    name = name.replace("(anonymous namespace)", "anonymous")
    if name.startswith("void "):
        name = name[5:]
    if not any(each in name.partition("<")[0] or each in name.partition("(")[0] for each in TELLING):
        name = name.partition("<")[0]
    return _without_arguments(name).strip()[:LONGEST]


def _without_arguments(name: str) -> str:
    """The name up to the first parenthesis outside template arguments."""
    depth = 0
    for at, letter in enumerate(name):
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif letter == "(" and depth == 0:
            return name[:at]
    return name
