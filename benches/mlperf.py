"""Predicts MLPerf Training's DLRM-DCNv2 on eight GPUs from its description and specifications: python benches/mlperf.py [STEPTIME] [--write]

Predicts each system with the program (default: `steptime`), and prints predicted and measured times. No kernel of this model was
measured, and only the H200 and the H100 have measured kernels: nothing is fitted to these runs. `--write` writes benches/results/mlperf.json.

    examples/models/dlrm_dcnv2_mlperf.toml   the model, with tables placed as by NVIDIA's planner
    benches/mlperf/hugectr.toml              differences of HugeCTR from PyTorch, as changes of every rank's step

The step is bounded from both sides: HugeCTR overlaps the exchange of vectors and gradients with its bottom MLP, and the simulation runs
them in sequence (`step`); a rank that waits only for its own kernels takes `kernels`.

Measured: medians of published submissions, rounds v3.0 to v5.1 (mlcommons/training_results, Apache-2.0), from the times of
`eval_start` and `eval_stop` in their logs, evaluation left out.
"""

import argparse
import json
import math
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "models" / "dlrm_dcnv2_mlperf.toml"
CHANGES = ROOT / "benches" / "mlperf" / "hugectr.toml"
RESULTS = ROOT / "benches" / "results" / "mlperf.json"
# Gradients are summed as one group of 16-bit numbers, in place. Small tables are replicated on every GPU; their gradients, 5 of 37 MB of
# that sum, are left out.
HUGECTR = ["--send", "fp16", "--bucket-view", "--bucket-mb", "1024", "--copies-apart", "--changes", str(CHANGES)]

# HugeCTR's own benchmark assumes for Criteo that 0.3 to 0.4 of the rows looked up in a batch are distinct (`unique_ratio` of its planner,
# `WGRAD_UNIQUE_RATIO` of its script). This law gives 0.35 of 40 million rows, over all large tables.
INDICES = "zipf:1.03"

# Profile, measured milliseconds, number of submissions.
SYSTEMS = [
    ("gb200", 2.076, 2),
    ("b200", 2.176, 13),
    ("h200", 3.398, 13),
    ("h100", 3.61, 27),
    ("a100-80gb", 7.15, 1),
    ("h100-pcie", 10.355, 1),
    ("l40s", 20.286, 1),
    ("l40", 22.277, 1),
    ("a40", 36.656, 1),
]


def predicted(program: str, device: str, more: list[str]) -> dict:
    """The program's prediction of a system."""
    words = [program, "predict", str(MODEL), "--device", device, *HUGECTR, *more, "--json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def row(system: tuple[str, float, int], answer: dict) -> dict:
    """The row of a system in the table."""
    device, measured, submissions = system
    moved = dict.fromkeys((call["op"] for call in answer["collectives"]), 0.0)
    for call in answer["collectives"]:
        moved[call["op"]] += call["moves_ms"]
    return {
        "device": device,
        "kernels_measured": device in {"h200", "h100"},
        "submissions": submissions,
        "measured_ms": measured,
        "step_ms": answer["step_ms"],
        "interval_ms": answer["interval_ms"],
        "error": answer["step_ms"] / measured - 1,
        "kernels_ms": max(rank["computes_ms"] for rank in answer["ranks"]),
        "moves_ms": moved,
    }


def swapped(rows: list[dict]) -> list[str]:
    """Pairs of systems whose order is predicted wrongly."""
    pairs = [(one, other) for at, one in enumerate(rows) for other in rows[at + 1 :]]
    wrong = [pair for pair in pairs if (pair[0]["measured_ms"] < pair[1]["measured_ms"]) != (pair[0]["step_ms"] < pair[1]["step_ms"])]
    return [f"{one['device']} and {other['device']}" for one, other in wrong]


def main() -> None:
    """Prints the table."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program", nargs="?", default="steptime")
    arguments.add_argument("--indices", default=INDICES, help="as of `steptime predict`")
    arguments.add_argument("--write", action="store_true")
    asked = arguments.parse_args()
    more = ["--indices", asked.indices]
    rows = [row(system, predicted(asked.program, system[0], more)) for system in SYSTEMS]
    print("| GPU, 8 of them | kernels of it measured | ms, measured | predicted | 90 % interval | error | kernels alone | exchanged |")
    print("|---|---|---|---|---|---|---|---|")
    for each in rows:
        low, high = each["interval_ms"]
        label = "of other models" if each["kernels_measured"] else "none"
        print(
            f"| {each['device']} | {label} | {each['measured_ms']:.2f} | {each['step_ms']:.2f} | {low:.1f} to {high:.1f} "
            f"| {each['error']:+.0%} | {each['kernels_ms']:.2f} | {sum(each['moves_ms'].values()):.2f} |"
        )
    mean = sum(abs(each["error"]) for each in rows) / len(rows)
    inside = sum(each["interval_ms"][0] <= each["measured_ms"] <= each["interval_ms"][1] for each in rows)
    geometric = math.exp(sum(math.log(each["step_ms"] / each["measured_ms"]) for each in rows) / len(rows))
    wrong = swapped(rows)
    pairs = len(rows) * (len(rows) - 1) // 2
    print(f"\nmean error {mean:.1%}; geometric mean of predicted over measured {geometric:.2f}; inside the interval {inside} of {len(rows)}")
    print(f"order: {pairs - len(wrong)} of {pairs} pairs right; wrong: {', '.join(wrong) or 'none'}")
    if asked.write:
        found = {"mean_error": mean, "pairs": pairs, "pairs_wrong": wrong, "indices": asked.indices, "systems": rows}
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
