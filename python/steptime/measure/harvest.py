"""Converts a trace to rows: GPU time of each operator that was called in a timed region.

A region is a span named `steptime:<case>:<state>:<repetition>`. An operator gives a row if it started work on the GPU
itself (not through an operator it called): its kernels, copies and fills have its `External id`. This module runs in
worker processes and needs no PyTorch.
"""

from __future__ import annotations

import bisect
import json
import os
from collections import Counter
from statistics import median
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

from steptime.measure.kernels import short

PREFIX = "steptime:"
LISTED = 64  # largest number of listed activities of an operator; some libraries start thousands, on several streams
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


class Region(NamedTuple):
    case: int
    state: str
    repetition: int
    start: float
    end: float


class Leaf(NamedTuple):
    """An operator, and its activities on the GPU."""

    op: Dict[str, Any]
    activities: List[Dict[str, Any]]


def region_name(case: int, state: str, repetition: int) -> str:
    return f"{PREFIX}{case}:{state}:{repetition}"


def harvest_file(path: str, cases: Dict[int, Dict[str, Any]], on_cpu: bool = False) -> List[Dict[str, Any]]:
    """Returns the rows of a trace file, and removes the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            events = json.load(file, strict=False)["traceEvents"]
    finally:
        os.unlink(path)
    return harvest(events, cases, on_cpu)


def harvest(events: List[Dict[str, Any]], cases: Dict[int, Dict[str, Any]], on_cpu: bool = False) -> List[Dict[str, Any]]:
    """Returns the rows of all cases. `cases` has the facts about each case that the trace lacks."""
    regions, ops, activities = [], [], {}
    for event in events:
        category = event.get("cat")
        if category in ON_DEVICE:
            activities.setdefault(event["args"].get("External id"), []).append(event)
        elif category == "cpu_op":
            ops.append(event)
        elif category == "user_annotation" and event["name"].startswith(PREFIX):
            regions.append(_region(event))
    if on_cpu:
        activities = _stand_ins(ops)
    found = _by_region(regions, ops, activities)
    together: Dict[Tuple[int, str], List[List[Leaf]]] = {}
    for region in sorted(regions, key=lambda each: each.repetition):
        together.setdefault((region.case, region.state), []).append(found.get(region, []))
    rows = []
    for (case, state), repetitions in together.items():
        if case in cases:
            rows.extend(_rows(case, state, repetitions, cases[case]))
    return rows


def _region(event: Dict[str, Any]) -> Region:
    case, rest = event["name"][len(PREFIX) :].split(":", 1)
    state, _, repetition = rest.rpartition(":")
    start = float(event["ts"])
    return Region(int(case), state, int(repetition), start, start + float(event["dur"]))


def _by_region(regions: List[Region], ops: List[Dict[str, Any]], activities: Dict[Any, List[Dict[str, Any]]]) -> Dict[Region, List[Leaf]]:
    """The leaves of each region, in call order."""
    regions = sorted(regions, key=lambda each: each.start)
    starts = [each.start for each in regions]
    found: Dict[Region, List[Leaf]] = {}
    for op in sorted(ops, key=lambda each: each["ts"]):
        mine = activities.get(op["args"].get("External id"))
        at = bisect.bisect_right(starts, op["ts"]) - 1
        if mine and at >= 0 and op["ts"] <= regions[at].end:
            found.setdefault(regions[at], []).append(Leaf(op, sorted(mine, key=lambda each: each["ts"])))
    return found


def _stand_ins(ops: List[Dict[str, Any]]) -> Dict[Any, List[Dict[str, Any]]]:
    """Activities for tests without a GPU: each operator that calls no other counts as one activity of the same duration."""
    result: Dict[Any, List[Dict[str, Any]]] = {}
    ordered = sorted(ops, key=lambda each: (each["tid"], each["ts"], -each["dur"]))
    for op, following in zip(ordered, ordered[1:] + [None]):
        calls = following is not None and following["tid"] == op["tid"] and following["ts"] + following["dur"] <= op["ts"] + op["dur"]
        if not calls:
            result[op["args"].get("External id")] = [dict(op, cat="kernel", name="on the CPU", args={})]
    return result


def _rows(case: int, state: str, repetitions: List[List[Leaf]], about: Dict[str, Any]) -> Iterable[Dict[str, Any]]:
    """One row for each leaf, over the repetitions that called the same operators."""
    names = Counter(tuple(leaf.op["name"] for leaf in leaves) for leaves in repetitions if leaves)
    if not names:
        return
    usual = names.most_common(1)[0][0]
    alike = [leaves for leaves in repetitions if tuple(leaf.op["name"] for leaf in leaves) == usual]
    for position, leaves in enumerate(zip(*alike)):
        if leaves[0].op["name"].startswith(about.get("ops", "")):
            yield _row(case, state, position, list(leaves), about)


def _row(case: int, state: str, position: int, leaves: List[Leaf], about: Dict[str, Any]) -> Dict[str, Any]:
    counts = Counter(len(leaf.activities) for leaf in leaves)
    usual = counts.most_common(1)[0][0]
    leaves = [leaf for leaf in leaves if len(leaf.activities) == usual]
    times = [sum(float(each["dur"]) for each in leaf.activities) for leaf in leaves]
    op, activities = leaves[0]
    args = described(op, about)
    return {
        "case": case,
        "family": about["family"],
        "op": op["name"],
        **args,
        "devices": about.get("devices", {}).get(op["name"], ""),
        "tf32": about.get("tf32", False),
        "indices": about.get("indices", ""),
        "state": state,
        "reps": len(leaves),
        "us": median(times),
        "us_min": min(times),
        "us_max": max(times),
        "kernels": compact([short(each["name"]) for each in activities[:LISTED]]),
        "kernel_us": [median(float(leaf.activities[i]["dur"]) for leaf in leaves) for i in range(min(usual, LISTED))],
        "grids": compact([_grid(each["args"]) for each in activities[:LISTED]]),
        "leaf": position,
        "span_us": median(_span(leaf.activities) for leaf in leaves),
    }


def described(op: Dict[str, Any], about: Dict[str, Any]) -> Dict[str, str]:
    """The operator's inputs from the trace, and its tensor lists from the case."""
    args = op["args"]
    dims, strides, types = (list(args.get(name, [])) for name in ("Input Dims", "Input Strides", "Input type"))
    concrete = list(args.get("Concrete Inputs", []))
    for position, (list_dims, list_strides, list_type) in about.get("lists", {}).get(op["name"], {}).items():
        for target, value, blank in ((dims, list_dims, []), (strides, list_strides, []), (types, list_type, "")):
            target.extend([blank] * (position + 1 - len(target)))
            target[position] = value
    return {"dims": compact(dims), "strides": compact(strides), "types": compact(types), "concrete": compact(concrete)}


def _span(activities: List[Dict[str, Any]]) -> float:
    """Time from the start of the first activity to the end of the last."""
    return max(float(each["ts"]) + float(each["dur"]) for each in activities) - min(float(each["ts"]) for each in activities)


def _grid(args: Dict[str, Any]) -> List[int]:
    grid, block = args.get("grid"), args.get("block")
    if not grid or not block:
        return []
    return [*grid, block[0] * block[1] * block[2]]


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
