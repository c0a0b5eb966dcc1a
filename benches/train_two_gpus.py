"""Training steps on several GPUs against one, with the same number of samples a GPU.

    cargo build --release -p steptime-train-cli
    python benches/train_two_gpus.py --out FILE.json        (needs two GPUs and NCCL)

For each precision: one GPU, then all of them twice, on a dataset of planted rows that is written first. The two runs must have the same losses
and measures, bit for bit. The steps of one GPU and of all are predicted before they run. FILE.json is written after each precision.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(asked, *words):
    """Standard output of the program."""
    command = [str(word) for word in (asked.program, *words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=asked.seconds)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def trained(asked, data, precision, gpus):
    """The answer of a run."""
    words = [asked.model, "--data", data, "--device", "cuda", "--dtype", precision, "--gpus", gpus, "--batch", asked.batch * gpus]
    words += ["--steps", asked.steps, "--epochs", 1000, "--rate", asked.rate, "--eval-rows", asked.batch * gpus, "--json"]
    return json.loads(run(asked, *words))


def predicted(answer):
    """The predicted step with its interval, or the reason why there is none."""
    found = answer["predicted"]
    return {"step_ms": found["step_ms"], "interval_ms": found["step_interval_ms"], "reason": found["reason"], "doubts": found["doubts"]}


def held(answer):
    """The error of the predicted step, and whether its interval holds; None where there is none."""
    found, ms = answer["predicted"], answer["measured"]["median_ms"]
    if found["step_ms"] is None:
        return None
    low, high = found["step_interval_ms"]
    return {"error": found["step_ms"] / ms - 1, "inside": low <= ms <= high}


def bits(answer):
    """The numbers that depend on all parameters."""
    return [answer["measured"][name] for name in ("first_loss", "loss", "mean_loss")] + [answer["evaluations"]]


def row(asked, data, precision):
    """The numbers of a precision."""
    one, *several = (trained(asked, data, precision, gpus) for gpus in (1, asked.gpus, asked.gpus))
    ms = [answer["measured"]["median_ms"] for answer in (one, *several)]
    found = {"precision": precision, "device": one["device"], "batch": asked.batch, "gpus": asked.gpus, "ms": ms[0], "ms_of_all": ms[1:]}
    found |= {"least_ms": [answer["measured"]["min_ms"] for answer in (one, *several)]}
    found |= {"speedup": asked.gpus * ms[0] / min(ms[1:]), "equal_bits": bits(several[0]) == bits(several[1])}
    found |= {"waiting_ms": several[0]["measured"]["waiting_ms"], "ranks": several[0]["ranks"]}
    found |= {"predicted": predicted(one), "predicted_of_all": predicted(several[0]), "held": held(one), "held_of_all": held(several[0])}
    return found | {"loss": one["measured"]["loss"], "loss_of_all": several[0]["measured"]["loss"]}


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("precisions", nargs="*", default=["tf32", "bf16"])
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/steptime-train", help="path of `steptime-train`")
    parser.add_argument("--model", type=Path, default=ROOT / "examples/models/dlrm_nvidia.toml")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--batch", type=int, default=65_536, help="samples a GPU")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--rows", type=int, default=1 << 20, help="rows of the dataset")
    parser.add_argument("--seconds", type=float, default=400, help="longest time of a run")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows"
        run(asked, "data", "synthetic", asked.model, "--rows", asked.rows, "-o", data)
        for precision in asked.precisions:
            rows.append(row(asked, data, precision))
            found = rows[-1]
            both = ", ".join(f"{ms:.3f}" for ms in found["ms_of_all"])
            print(f"{precision}: {found['ms']:.3f} ms on one GPU, {both} ms on {asked.gpus}: {found['speedup']:.2f} x, ", end="")
            print(f"equal bits: {found['equal_bits']}", flush=True)
            print(f"  predicted: {found['predicted']['step_ms']} ms on one GPU, {found['predicted_of_all']['step_ms']} ms on {asked.gpus}", flush=True)
            asked.out.write_text(json.dumps({"rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
