"""Scores predictions of jobs from one rank: python benches/one_rank.py RECORDINGS JOBS.. [--steptime PROGRAM]

JOBS are folders of ranks whose `meta.json` has the measured step. Each job is predicted from each of its ranks alone, and, if RECORDINGS has
the same model and batch size on one GPU, from that with `--world`, with tables placed in turn. Errors are those of the step.
"""

import argparse
import json
import math
import re
import subprocess
from pathlib import Path


def predicted(program: str, *args: str) -> dict:
    """JSON answer of `steptime predict`."""
    return json.loads(subprocess.run([program, "predict", *args, "--json"], capture_output=True, text=True, check=True).stdout)


def told(answer: dict, measured: float) -> tuple[float, bool]:
    """The relative error, and whether the measurement is within the interval."""
    low, high = answer["interval_ms"]
    return answer["step_ms"] / measured - 1, low <= measured <= high


def summary(name: str, rows: list[tuple[float, bool]]) -> str:
    """A line with the means of rows."""
    errors = [abs(error) for error, _ in rows]
    gmae = math.exp(sum(math.log(max(error, 1e-4)) for error in errors) / len(errors))
    inside = sum(holds for _, holds in rows)
    return f"{name}: {len(rows)} predictions, GMAE {gmae:.1%}, mean {sum(errors) / len(errors):.1%}, worst {max(errors):.1%}, {inside} inside"


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("recordings", type=Path)
    parser.add_argument("jobs", type=Path, nargs="+")
    parser.add_argument("--steptime", default="steptime")
    asked = parser.parse_args()
    ranks, worlds = [], []
    for job in asked.jobs:
        folders = sorted(job.glob("rank*"))
        meta = json.loads((folders[0] / "meta.json").read_text())
        own = [told(predicted(asked.steptime, str(folder)), meta["step_ms"]) for folder in folders]
        ranks += own
        print(job.name, "each rank:", " ".join(f"{error:+.1%}" for error, _ in own))
        alone = asked.recordings / re.sub(r"_(rr|greedy|bad)?_x\d+$", "", job.name)
        in_turn = all(table % len(folders) == rank for rank, tables in enumerate(meta["placement"]) for table in tables)
        if alone.is_dir() and in_turn:
            sizes = "--world", str(len(folders)), "--global-batch", str(meta["global_batch"])
            row = told(predicted(asked.steptime, str(alone), *sizes), meta["step_ms"])
            worlds.append(row)
            print(job.name, f"from one GPU's: {row[0]:+.1%}")
    print(summary("each rank by itself", ranks))
    if worlds:
        print(summary("one GPU's recording and --world", worlds))


if __name__ == "__main__":
    main()
