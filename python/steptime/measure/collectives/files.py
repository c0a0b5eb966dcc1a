"""The output files: the table, and the description of the machine and the measurement."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import statistics
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from steptime.errors import UsageError
from steptime.measure import machine
from steptime.measure.collectives.cases import BYTES, Case
from steptime.measure.collectives.job import Job
from steptime.measure.collectives.timing import Timing
from steptime.measure.collectives.topology import Member, link, links, tool

COLUMNS = ("op", "world", "nodes", "bytes", "dtype", "skew", "median_us", "min_us", "kernel_us", "link")


def check_out(out: Path) -> None:
    if out.suffix != ".csv":
        raise UsageError(f"{out} must end in .csv: the description of the machine is written to a file of that name ending in .json")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.absolute().parent} to write {out.name} to")


def rows(found: Dict[Case, List[Timing]], members: Sequence[Member], topology: Optional[str]) -> List[List[str]]:
    """Rows of the table, sorted by op, group, type and size; `topology` is None for the CPU."""
    between = None if topology is None else links(topology)
    names = list(BYTES)
    result = []
    for each in sorted(found, key=lambda case: (names.index(case.op), case.world, case.dtype, case.bytes, case.skew)):
        seen, group = found[each], members[: each.world]
        kernel = shared([one.kernels for one in seen])
        nodes = len({member.node for member in group})
        what = [each.op, str(each.world), str(nodes), str(each.bytes), each.dtype, f"{each.skew:.6g}"]
        times = [max(one.median for one in seen), max(one.shortest for one in seen)]
        numbers = [*(f"{us:.3f}" for us in times), "" if kernel is None else f"{kernel:.3f}"]
        result.append([*what, *numbers, link(group, between)])
    return result


def shared(kernels: Sequence[Sequence[float]]) -> Optional[float]:
    """Median over calls of the time of a call on the rank where it was shortest; None without kernel times."""
    if not kernels or not kernels[0] or len({len(each) for each in kernels}) > 1:
        return None
    return float(statistics.median(min(call) for call in zip(*kernels)))


def describe(job: Job, options: argparse.Namespace, planned: int, measured: int) -> Dict[str, Any]:
    """Description of the machine and the measurement."""
    nvlinks: Dict[str, List[str]] = {}
    for line in tool("nvlink", "-s").splitlines():
        gpu, one = re.match(r"GPU (\d+):", line), re.match(r"\s+Link \d+: (.*)", line)
        if gpu:
            nvlinks[gpu[1]] = []
        elif one and nvlinks:
            list(nvlinks.values())[-1].append(one[1].strip())
    settings = [name for name in sorted(os.environ) if name.startswith(("NCCL_", "TORCH_NCCL_"))]
    return {
        **machine.describe(job.torch, job.device),
        "backend": job.backend,
        "nccl": ".".join(map(str, job.torch.cuda.nccl.version())) if job.on_gpu else "",
        "gpus": job.world if job.on_gpu else 0,
        "ranks": job.world,
        "nodes": len({member.node for member in job.members}),
        "topology": tool("topo", "-m") if job.on_gpu else "",
        "nvlinks": nvlinks if job.on_gpu else {},
        "environment": {name: os.environ[name] for name in settings},
        "options": {name: value for name, value in vars(options).items() if name != "out"},
        "seed": options.seed,
        "date": machine.now(),
        "cases": planned,
        "measured": measured,
        "bytes": BYTES,
    }


def write(out: Path, lines: Sequence[Sequence[str]], about: Dict[str, Any]) -> None:
    """Writes both files atomically."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(lines)
    for path, content in ((out.with_suffix(".json"), json.dumps(about, indent=1) + "\n"), (out, text.getvalue())):
        beside = path.with_name(f".{path.name}.{os.getpid()}.part")
        beside.write_text(content, encoding="utf-8")
        os.replace(beside, path)
