"""Measures the slowdown of kernels during collectives: python benches/beside.py JOB ... --out benches/results/beside.json

JOB is a folder with a recording of each rank (`steptime.watch(.., every_rank=True)`). A kernel is identified by its position in the step.
If it overlapped a collective of another stream in some steps and none in others, the medians of both are compared. All ranks leave a
collective together: on the rank that arrived last its time is data transfer (`move`); the additional time on other ranks is waiting
(`wait`). Kernels of one shape are one row; every second one, by time, is held out of the fit of the model in `sim/src/sharing/collective_slowdown.rs`.
"""

import argparse
import gzip
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path

ALONE, BESIDE = 0.01, 0.9
"""Largest overlap with a collective of a kernel that counts as alone, and smallest overlap of one that counts as beside, as shares of its time."""
FEWEST = 4
"""Smallest number of kernels of a row."""


def steps_of(rank: Path) -> dict:
    """Launched activities of each recorded step, in the order of launches."""
    with gzip.open(rank / "kineto.json.gz", "rt", encoding="utf-8") as text:
        events = [event for event in json.load(text)["traceEvents"] if event.get("ph") == "X"]
    runtime = (event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver"))
    launched = {event["args"]["correlation"]: event["ts"] for event in runtime if "correlation" in event.get("args", {})}
    spans = [event for event in events if event["name"].startswith("ProfilerStep#") and event.get("cat") == "user_annotation"]
    found = defaultdict(list)
    for event in events:
        at = launched.get(event.get("args", {}).get("correlation"))
        if at is None or event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        step = next((span["name"] for span in spans if span["ts"] <= at < span["ts"] + span["dur"]), None)
        if step:
            found[step].append((at, event["ts"], event))
    return {step: [event for _, _, event in sorted(rows, key=lambda row: row[:2])] for step, rows in found.items()}


def is_collective(event: dict) -> bool:
    """Whether an event is a kernel of NCCL."""
    return event["name"].startswith("nccl")


def overlap(event: dict, start: float, end: float) -> float:
    """Share of an event between two times."""
    return max(0.0, min(event["ts"] + event["dur"], end) - max(event["ts"], start)) / event["dur"]


def beside(kernel: dict, met: list) -> tuple:
    """State of a kernel, `alone`, `wait`, `move` or None for others, and the collective that it overlaps."""
    shares, longest = {"wait": 0.0, "move": 0.0}, (0.0, None)
    for collective, moving in met:
        if collective["args"]["stream"] == kernel["args"]["stream"]:
            continue
        end = collective["ts"] + collective["dur"]
        both = overlap(kernel, collective["ts"], end - moving), overlap(kernel, end - moving, end)
        shares["wait"] += both[0]
        shares["move"] += both[1]
        longest = max(longest, (sum(both), collective), key=lambda pair: pair[0])
    if sum(shares.values()) < ALONE:
        return "alone", None
    way = next((way for way, share in shares.items() if share > BESIDE), None)
    return way, longest[1]


def shape(event: dict) -> tuple:
    """Launch geometry of a kernel."""
    args = event["args"]
    return tuple(args["grid"]), tuple(args["block"]), args["registers per thread"], args["shared memory"]


def compare(job: Path, rows: dict) -> None:
    """Adds the kernels of a job."""
    ranks = [steps_of(rank) for rank in sorted(job.glob("rank*"))]
    common = set.intersection(*(set(rank) for rank in ranks))
    own = [{step: [event for event in rank[step] if is_collective(event)] for step in common} for rank in ranks]
    common = [step for step in sorted(common) if len({len(rank[step]) for rank in own}) == 1]
    moving = {step: [min(parts, key=lambda event: event["dur"])["dur"] for parts in zip(*(rank[step] for rank in own))] for step in common}
    for rank, collectives in zip(ranks, own):
        places = defaultdict(lambda: defaultdict(list))
        for step in common:
            met = list(zip(collectives[step], moving[step]))
            others = (event for event in rank[step] if not is_collective(event))
            for place, kernel in enumerate(others):
                if kernel["cat"] == "kernel" and kernel["dur"] > 0:
                    way, collective = beside(kernel, met)
                    places[place, kernel["name"]][way].append((kernel, collective))
        for ways in places.values():
            if len(ways["alone"]) < 2:
                continue
            alone = statistics.median(kernel["dur"] for kernel, _ in ways["alone"])
            for way in ("wait", "move"):
                for kernel, collective in ways[way]:
                    key = kernel["name"], shape(kernel), shape(collective), way
                    rows[key].append((alone, kernel["dur"] / alone))


def launch(of: tuple) -> dict:
    """A launch geometry as a dictionary."""
    return dict(zip(("grid", "block", "registers", "shared"), of))


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="+", type=Path)
    parser.add_argument("--gpu", default="NVIDIA H200")
    parser.add_argument("--sms", type=int, default=132)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = defaultdict(list)
    for job in args.jobs:
        compare(job, rows)
    table = [
        {
            "name": (re.sub(r"[<(].*", "", name.removeprefix("void ")) or "kernel")[:40],
            **launch(own),
            "beside": launch(collective),
            "way": way,
            "us": round(statistics.median(alone for alone, _ in found), 2),
            "times": round(statistics.median(times for _, times in found), 3),
            "count": len(found),
        }
        for (name, own, collective, way), found in rows.items()
        if len(found) >= FEWEST
    ]
    table.sort(key=lambda row: (-row["us"], json.dumps(row)))
    for place, row in enumerate(table):
        row["held"] = place % 2 == 1
    head = json.dumps({"gpu": args.gpu, "sms": args.sms, "jobs": [job.name for job in args.jobs]})
    lines = ",\n".join(f"  {json.dumps(row)}" for row in table)
    args.out.write_text(f'{head[:-1]}, "kernels": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
