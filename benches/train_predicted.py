"""Predicted time and memory of training steps on a GPU, beside measured ones.

    cargo build --release -p steptime-train-cli
    python benches/train_predicted.py --out FILE.json        (needs a GPU)

Each case is one run of `steptime-train` on synthetic rows, which predicts the step before it runs. A case is MODEL:BATCH:PRECISION,
where MODEL is a path or a name in `examples/models`. Models of `benches/train_models` are in no other measurement of this repository.
FILE.json is written after each case.
"""

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

from train_cases import ROOT, checked

OTHERS = ROOT / "benches/train_models"
PRECISIONS = ("f32", "tf32", "bf16")
CASES = (
    *("dlrm_nvidia:2048:tf32", "dlrm_nvidia:32768:bf16", "dlrm_default:2048:f32", "dcn_v2:8192:tf32", "dcn_v2:16384:bf16"),
    *("deepfm:4096:tf32", "two_towers:4096:tf32", "wide_and_deep:8192:tf32"),
    *(f"{OTHERS}/dlrm_shop.toml:4096:tf32", f"{OTHERS}/dcn_wide.toml:4096:f32"),
)


def row(asked, model, batch, precision):
    """The numbers of a run, or its error."""
    about = {"model": model.stem, "batch": batch, "precision": precision}
    command = [asked.program, model, "--device", asked.device, "--dtype", precision, "--batch", batch, "--steps", asked.steps, "--json"]
    command += ["--eval-rows", batch]
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=asked.seconds)
    except subprocess.TimeoutExpired:
        return {**about, "error": f"no answer within {asked.seconds:.0f} s"}
    if done.returncode:
        return {**about, "error": done.stderr.strip()[-500:]}
    answer = json.loads(done.stdout)
    predicted, measured = answer["predicted"], answer["measured"]
    found = {**about, "device": answer["device"], "predicted_ms": predicted["step_ms"], "interval_ms": predicted["step_interval_ms"]}
    found |= {"measured_ms": measured["median_ms"], "least_ms": measured["min_ms"], "samples_per_second": measured["samples_per_second"]}
    found |= {"predicted_mb": predicted["step_bytes"] / 1e6, "planned_mb": measured["step_bytes"] / 1e6, "plan": answer["plan"]["applied"]}
    if predicted["step_ms"] is None:
        return {**found, "reason": predicted["reason"]}
    low, high = predicted["step_interval_ms"]
    return {**found, "error_of_time": predicted["step_ms"] / measured["median_ms"] - 1, "holds": low <= measured["median_ms"] <= high}


def line(row):
    """The text of a row."""
    name = f"{row['model']} {row['batch']} {row['precision']}: "
    if "error" in row:
        return name + row["error"]
    if "holds" not in row:
        return f"{name}measured {row['measured_ms']:.3f} ms, {row['reason']}"
    low, high = row["interval_ms"]
    return f"{name}predicted {row['predicted_ms']:.3f} ms, {low:.3f} to {high:.3f}, measured {row['measured_ms']:.3f} ms ({row['error_of_time']:+.1%})"


def main():
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="MODEL:BATCH:PRECISION")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/steptime-train", help="path of `steptime-train`")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=240, help="longest time of a run")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    cases = checked(parser, asked.cases, PRECISIONS, asked.program, "--program")
    begin, rows = time.perf_counter(), []
    for case in cases:
        rows.append(row(asked, *case))
        print(f"{time.perf_counter() - begin:6.0f} s  {line(rows[-1])}", flush=True)
        timed = [each for each in rows if "holds" in each]
        summary = {"predicted": len(timed), "hold": sum(each["holds"] for each in timed)}
        if timed:
            summary["mean_error"] = statistics.mean(abs(each["error_of_time"]) for each in timed)
        result = {"made_by": "python benches/train_predicted.py", "summary": summary, "rows": rows}
        asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
