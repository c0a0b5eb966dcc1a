"""One process of the campaign: `worker.py NAME DTYPE ROLE FOLDER`, started and paced by campaign.py.

ROLE "first" times plain steps and then records them; "second" only times them. It prints `ready` once PyTorch is imported and `warm`
once its kernels are loaded, and waits for a line on standard input after each, so that nothing else runs while it is timed.
"""
import json
import math
import os
import sys
import time
from pathlib import Path

import torch

from abroad import MODELS
from abroad.registry import parameters

WINDOWS = 4
SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "0.5"))
DEVICE = os.environ.get("CAMPAIGN_DEVICE", "cuda")
PROFILED = int(os.environ.get("CAMPAIGN_PROFILED", "12"))
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def say(word):
    print(word, flush=True)
    if not sys.stdin.readline():
        sys.exit("campaign.py is gone")


def settle():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def several(step, steps):
    """Total seconds of `steps` steps, and the host's seconds of each."""
    settle()
    marks = [time.perf_counter()]
    for _ in range(steps):
        step()
        marks.append(time.perf_counter())
    settle()
    return time.perf_counter() - marks[0], [b - a for a, b in zip(marks, marks[1:])]


def warm(step):
    """Runs steps for a second, at least ten; returns the seconds of one."""
    several(step, 3)
    took, count = 0.0, 7
    begin = time.perf_counter()
    while True:
        took = several(step, count)[0] / count
        if time.perf_counter() - begin > 0.7:
            return took
        count = max(7, min(100, math.ceil(0.3 / took)))


def window(step, seconds):
    steps = max(3, math.ceil(SECONDS / seconds))
    wall, each = several(step, steps)
    each = sorted(1e3 * t for t in each)
    return {
        "steps": steps,
        "mean_ms": 1e3 * wall / steps,
        "host_quantiles_ms": {str(q): round(each[int(q * (steps - 1))], 5) for q in QUANTILES},
    }


def record(training, usual, out):
    import steptime

    # The second precision is for kernels alone, not for the host: a shorter recording.
    how = dict(windows=3, steps=20, profiled=PROFILED) if usual else dict(windows=2, steps=10, profiled=min(6, PROFILED), probe=False)
    with steptime.watch(training.model, training.optimizer, out, training.batch, quiet=True, overwrite=True, **how) as watched:
        for _ in range(500):  # more than any recording takes
            training.step()
            watched.step()
            if watched.done:
                return
    sys.exit(f"{out} was not recorded")


def main():
    name, dtype, role, folder = sys.argv[1:]
    folder = Path(folder)
    say("ready")
    began = time.time()
    entry = MODELS[name]
    training = entry.build(torch.device(DEVICE), dtype)
    about = warm(training.step)
    say("warm")
    again = max(10, min(100, math.ceil(0.2 / about)))
    seconds = several(training.step, again)[0] / again
    settle()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    windows = [window(training.step, seconds) for _ in range(WINDOWS)]
    found = {"at": time.time(), "windows": windows}
    if DEVICE == "cuda":
        found["max_memory_allocated"] = torch.cuda.max_memory_allocated()
        found["max_memory_reserved"] = torch.cuda.max_memory_reserved()
        found["memory_allocated"] = torch.cuda.memory_allocated()
    key = name if dtype == entry.dtypes[0] else f"{name}.{dtype}"
    if role == "first":
        record(training, dtype == entry.dtypes[0], folder / "rec" / key)
        about = {"name": name, "dtype": dtype, "kinds": entry.kinds, "batch": training.batch, "parameters": parameters(training.model)}
        about["device"] = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
        about["torch"] = torch.__version__
    else:
        about = {}
    found["seconds"] = time.time() - began
    truth = folder / "truth" / f"{key}.json"
    truth.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(truth.read_text()) if truth.exists() else {}
    truth.write_text(json.dumps({**before, **about, role: found}) + "\n")


if __name__ == "__main__":
    main()
