"""Consistency checks of a recording. Each check returns a warning, or None."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from steptime.loop import Window
from steptime.stats import median, spread

# Largest accepted slowdown of the slowest un-profiled window relative to the fastest.
DRIFT_LIMIT = 0.10
# Relative difference of host times and wall times above which the host counts as running ahead.
AHEAD_LIMIT = 0.05

# Marks a region compiled by torch.compile, whose ops are not recorded.
COMPILED = "Torch-Compiled Region"

# Op names of each thread of a step, in order, with the number of threads that ran the same names. Thread ids are ignored.
Ops = FrozenSet[Tuple[Tuple[str, ...], int]]


class RecordWarning(UserWarning):
    """The recording is complete, but parts of it may be unreliable."""


def drift(windows: Sequence[Window]) -> Optional[str]:
    """Checks that the un-profiled windows ran at a steady speed."""
    means = [window.mean_ms for window in windows]
    apart = spread(means)
    if apart <= DRIFT_LIMIT:
        return None
    shown = ", ".join(f"{mean:.2f}" for mean in means)
    return f"un-profiled windows are {apart:.0%} apart ({shown} ms a step): the machine was not steady, record again"


def ran_ahead(windows: Sequence[Window]) -> bool:
    """Whether the host issued steps faster than the device ran them, so that `steps_ms` measures the host alone."""
    step = median([each for window in windows for each in window.steps_ms])
    mean = median([window.mean_ms for window in windows])
    drain = median([window.drain_ms for window in windows])
    return drain > step and abs(mean - step) > AHEAD_LIMIT * mean


def same_ops(timing: Dict[str, Any], single: Dict[str, Any]) -> Optional[str]:
    """Checks that the step of the execution trace ran the same ops, in the same order, as the timed steps."""
    steps = ops_of_steps(timing)
    if not steps:
        return "kineto.json.gz has no ProfilerStep mark: its steps cannot be told apart"
    one = ops(_cpu_ops(single))
    alike = sum(step == one for step in steps)
    if 2 * alike > len(steps):
        return None
    if any(COMPILED in name for thread, _ in one for name in thread):
        return "the step is compiled, and the ops inside are not recorded: record it without torch.compile to change it or to predict another GPU"
    return (
        f"the execution trace's step ran the same ops as only {alike} of {len(steps)} timed steps: "
        "steps differ from one another, so their times cannot all be given to its ops"
    )


def joined(execution_trace: Dict[str, Any], single: Dict[str, Any]) -> Optional[str]:
    """Checks that every op of the execution trace is in the Kineto trace of the same step."""
    ids = record_function_ids(execution_trace)
    known = {event.get("args", {}).get("Record function id") for event in single.get("traceEvents", ())}
    missing = sum(each not in known for each in ids)
    if ids and not missing:
        return None
    if missing == len(ids):
        return "no op of et.json.gz is in kineto_et.json.gz by rf_id: this PyTorch is too old to number both alike"
    return f"{missing} of {len(ids)} ops of et.json.gz are not in kineto_et.json.gz: they ran on threads that the profiler does not follow"


def record_function_ids(execution_trace: Dict[str, Any]) -> List[int]:
    """`rf_id` of each op, without the process and thread nodes, which have 0."""
    ids = [_attribute(node, "rf_id") for node in execution_trace.get("nodes", ())]
    return [each for each in ids if each]


def _attribute(node: Dict[str, Any], name: str) -> Optional[int]:
    for attribute in node.get("attrs", ()):
        if attribute.get("name") == name:
            found: Optional[int] = attribute.get("value")
            return found
    flat: Optional[int] = node.get(name)
    return flat  # schemas before 1.0.2 are flat


def step_marks(trace: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The `ProfilerStep#n` spans of the host, by start time."""
    marks = [
        event
        for event in trace.get("traceEvents", ())
        if event.get("ph") == "X" and event.get("cat") == "user_annotation" and event.get("name", "").startswith("ProfilerStep#")
    ]
    return sorted(marks, key=lambda mark: mark["ts"])


def ops_of_steps(trace: Dict[str, Any]) -> List[Ops]:
    """The ops of each marked step."""
    events = sorted(_cpu_ops(trace), key=lambda event: event["ts"])
    steps: List[Ops] = []
    at = 0
    for mark in step_marks(trace):
        end = mark["ts"] + mark["dur"]
        inside = []
        while at < len(events) and events[at]["ts"] < end:
            if events[at]["ts"] >= mark["ts"]:
                inside.append(events[at])
            at += 1
        steps.append(ops(inside))
    return steps


def ops(events: Iterable[Dict[str, Any]]) -> Ops:
    """Names by thread, in order. Ops that start together are ordered outermost first."""
    threads: Dict[Any, List[str]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event["ts"], -event.get("dur", 0))):
        threads[event.get("tid")].append(event["name"])
    return frozenset(Counter(tuple(names) for names in threads.values()).items())


def _cpu_ops(trace: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [event for event in trace.get("traceEvents", ()) if event.get("ph") == "X" and event.get("cat") == "cpu_op"]
