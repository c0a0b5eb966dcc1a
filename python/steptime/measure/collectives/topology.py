"""Nodes and GPUs of ranks, and the links between GPUs, as reported by `nvidia-smi`."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

LINKS = ("PIX", "PXB", "PHB", "NODE", "SYS")  # each slower than the one before; NVLink is faster than all


class Member(NamedTuple):
    """Node and GPU of a rank."""

    node: str
    gpu: Optional[int]  # its number in `nvidia-smi`


def link(group: Sequence[Member], between: Optional[Dict[Tuple[int, int], str]]) -> str:
    """The slowest link among these ranks; `between` has the links between GPUs."""
    if len({member.node for member in group}) > 1:
        return "NET"
    if between is None:
        return "HOST"
    gpus = [-1 if member.gpu is None else member.gpu for member in group]
    found = [between.get(pair, "") for pair in itertools.combinations(gpus, 2)]
    return "" if "" in found else max(found, key=slowness)


def slowness(name: str) -> int:
    """Sort key of links, from fast to slow; more NVLinks are faster."""
    nvlinks = re.fullmatch(r"NV(\d+)", name)
    return -int(nvlinks[1]) if nvlinks else 1 + (LINKS.index(name) if name in LINKS else len(LINKS))


def links(topology: str) -> Dict[Tuple[int, int], str]:
    """The links between GPUs, parsed from the output of `nvidia-smi topo -m`."""
    table = [[cell.strip() for cell in line.split("\t")] for line in topology.splitlines()]
    head = next((line for line in table if "GPU0" in line[1:]), [])
    found = {}
    for line in table:
        for column, cell in zip(head[1:], line[1:]):
            pair = re.fullmatch(r"GPU(\d+) GPU(\d+)", f"{line[0]} {column}")
            if pair and pair[1] != pair[2]:
                found[int(pair[1]), int(pair[2])] = cell
    return found


def tool(*arguments: str) -> str:
    """Output of `nvidia-smi` without colours; empty on failure."""
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", *arguments]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return re.sub(r"\x1b\[[0-9;]*m", "", printed)
