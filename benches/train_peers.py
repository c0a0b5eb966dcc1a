"""Times training steps of described models in turns with PyTorch's.

    cargo build --release -p steptime-runtime --example speed
    cargo build --release -p steptime-cuda-capi
    STEPTIME_CUDA_LIBRARY=target/release/libsteptime_cuda_c.so python benches/train_peers.py --out FILE.json        (needs a GPU)

A case is MODEL:BATCH:PRECISION, where MODEL is a path or a name in `examples/models`. In each round the example `speed` runs, then its
peers of `speed.py` in one process; other rounds run in reverse order. FILE.json has, for each case and peer, the median of the
rounds in ms, and the median over rounds of the ratio to `speed`. It is written after each round.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from train_cases import ROOT, checked

PEERS = ROOT / "crates/operators/runtime/examples/speed.py"
CASES = (
    *("dlrm_nvidia:2048:tf32", "dlrm_nvidia:65536:tf32", "dlrm_nvidia:65536:bf16", "dcn_v2:8192:tf32", "deepfm:8192:tf32"),
    *("two_towers:4096:tf32", "wide_and_deep:8192:tf32", "dlrm_default:2048:f32"),
)
PRECISIONS = {"f32": [], "tf32": ["--tf32"], "bf16": ["--bf16"]}
OURS = re.compile(r"([0-9.]+) ms a step without waiting")


class Failed(Exception):
    """A program that failed; the message has its last lines."""


def output(command, seconds):
    """Standard output of a program, which is stopped after a time."""
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        # Lines until then are answers of the peers that were complete.
        if error.stdout:
            return error.stdout if isinstance(error.stdout, str) else error.stdout.decode()
        raise Failed(f"no answer within {seconds:.0f} s") from None
    if done.returncode:
        raise Failed((done.stderr or done.stdout).strip()[-500:])
    return done.stdout


def ours(asked, case):
    """Answer of the example `speed`."""
    model, batch, precision = case
    command = [asked.speed, model, "--device", "cuda", "--batch", batch, "--steps", asked.steps, *PRECISIONS[precision]]
    try:
        found = OURS.search(output(command, asked.seconds))
        return [{"peer": "steptime", **({"ms": float(found[1])} if found else {"error": "there is no time in the output"})}]
    except Failed as error:
        return [{"peer": "steptime", "error": str(error)}]


def theirs(asked, case):
    """Answers of the peers."""
    model, batch, precision = case
    command = [sys.executable, PEERS, model, "--device", "cuda", "--batch", batch, "--steps", asked.steps, *PRECISIONS[precision]]
    command += ["--peers", asked.peers, "--modes", asked.modes]
    try:
        lines = [line for line in output(command, asked.seconds).splitlines() if line.startswith("{") and line.endswith("}")]
        return [json.loads(line) for line in lines]
    except Failed as error:
        return [{"peer": peer, "error": str(error)} for peer in asked.peers.split(",")]


def row(case, rounds):
    """Medians and ratios of a case."""
    base = [answer.get("steptime", {}).get("ms") for answer in rounds]
    peers = {}
    for name in dict.fromkeys(name for answer in rounds for name in answer):
        answers = [answer.get(name, {}) for answer in rounds]
        times = [answer["ms"] for answer in answers if "ms" in answer]
        last = next((answer for answer in reversed(answers) if answer), {})
        peers[name] = {key: last[key] for key in ("mode", "tables", "failed", "error") if last.get(key)}
        ratios = [answer["ms"] / own for answer, own in zip(answers, base) if own and "ms" in answer]
        if times:
            peers[name] |= {"ms": round(statistics.median(times), 4), "rounds_ms": times}
        if ratios and name != "steptime":
            peers[name]["ratio"] = round(statistics.median(ratios), 3)
    model, batch, precision = case
    return {"model": model.stem, "batch": batch, "precision": precision, "peers": peers}


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="MODEL:BATCH:PRECISION")
    parser.add_argument("--speed", type=Path, default=ROOT / "target/release/examples/speed", help="path of the example `speed`")
    parser.add_argument("--peers", default="eager,compile,bags,graph,fbgemm")
    parser.add_argument("--modes", default="default", help="modes of torch.compile; the first that works is used")
    parser.add_argument("--steps", type=int, default=50, help="steps of a timed window")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="longest time of a program")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    cases = checked(parser, asked.cases, PRECISIONS, asked.speed, "--speed")
    gpu = output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], 60).strip().splitlines()[0]
    result = {"made_by": "python benches/train_peers.py", "gpu": gpu, "steps": asked.steps, "library": os.environ.get("STEPTIME_CUDA_LIBRARY"), "rows": []}
    begin, rounds = time.perf_counter(), [[] for _ in cases]
    for at in range(asked.rounds):
        for case, found in zip(cases, rounds):
            answers = {}
            for side in (ours, theirs)[:: -1 if at % 2 else 1]:
                for answer in side(asked, case):
                    answers[answer["peer"]] = answer
                    shown = f"{answer['ms']:.4f} ms" if "ms" in answer else answer["error"][:200]
                    spent = time.perf_counter() - begin
                    print(f"{spent:6.0f} s  {case[0].stem} {case[1]} {case[2]}  {answer['peer']}: {shown}", flush=True)
            found.append(answers)
            result["rows"] = [row(case, found) for case, found in zip(cases, rounds) if found]
            asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
