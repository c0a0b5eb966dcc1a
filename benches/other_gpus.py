"""Scores predictions for GPUs without measurements: published tables of kernels, with each GPU predicted from all others.

    git clone https://github.com/sitar-lab/NeuSight
    git clone https://github.com/ai-dynamo/aiconfigurator
    python benches/other_gpus.py --neusight NeuSight --aiconfigurator aiconfigurator [--sweep h100.parquet] [--recordings RECORDINGS]

For each GPU it learns corrections of an H200's models from the tables of all other GPUs (`steptime device transfer --without`), with boards
of one chip left out together, and scores the GPU's rows (`steptime device score`). NeuSight's test rows are never learnt from. Rows of a
publisher without a given table are left out.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

# Profiles, each with the profiles that are left out with it: boards with the same chip.
A100 = ["a100", "a100-pcie", "a100-80gb", "a100-80gb-pcie"]
NEUSIGHT = {
    "h100": ["h100"], "a100-80gb-pcie": A100, "a100-pcie": A100, "l4": ["l4"], "v100": ["v100"], "p100": ["p100"], "t4": ["t4"],
    "p4": ["p4"],
}  # fmt: skip
# Profiles, each with the folder of its system, and the version of vLLM whose table is read.
AICONFIGURATOR = {
    "h100": ("h100_sxm", "0.19.0"), "a100-80gb": ("a100_sxm", "0.14.0"), "l40s": ("l40s", "0.14.0"), "b200": ("b200_sxm", "0.19.0"),
}  # fmt: skip
# Iterations of the paper's notebooks (`owensgroup/ml_perf_model`, e2e_plot.ipynb), ms: ResNet-50, then Inception-V3, at batch 16, 32, 64.
ITERATIONS = {
    "v100": [66.55, 114.78, 214.53, 92.63, 158.75, 205.68],
    "titan-xp": [125.07, 205.83, 338.41, 153.80, 272.07, 502.00],
    "p100": [122.75, 179.16, 333.54, 163.00, 259.92, 483.89],
}  # fmt: skip
NETWORKS = ["resnet50_16", "resnet50_32", "resnet50_64", "inception_v3_16", "inception_v3_32", "inception_v3_64"]
LIKE_THE_LENDER = {"h100"}
TESTS = ["bmm", "linear", "elem", "ln", "softmax"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neusight", type=Path, help="a checkout of sitar-lab/NeuSight")
    parser.add_argument("--aiconfigurator", type=Path, help="a checkout of ai-dynamo/aiconfigurator")
    parser.add_argument("--sweep", type=Path, help="a sweep of an H100, priced by models that have seen none")
    parser.add_argument("--recordings", type=Path, help="recordings of ResNet-50 and Inception-V3: their execution traces are predicted for three GPUs")
    parser.add_argument("--steptime", default="steptime", help="the program")
    options = parser.parse_args()
    engines = tables_of_engines(options.aiconfigurator)
    # As in the shipped corrections: GPUs of the H200's architecture neither get corrections nor contribute to them.
    others = [path for name, path in engines.items() if name not in LIKE_THE_LENDER]
    learnt = [str(path) for path in training(options.neusight) + others]
    rows: List[Dict[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted({*NEUSIGHT, *AICONFIGURATOR}):
            without = NEUSIGHT.get(name) or (A100 if name in A100 else [name])
            scored = [str(path) for path in tests(options.neusight)] if name in NEUSIGHT else []
            if name in engines:
                scored.append(str(engines[name]))
            if not scored or not learnt:
                continue
            if name in LIKE_THE_LENDER:
                rows += score(options.steptime, scored, name, None)
                continue
            corrections = Path(folder) / f"without-{name}"
            run([options.steptime, "device", "transfer", *learnt, "--most", "15000", "--without", *without, "-o", str(corrections)])
            rows += score(options.steptime, scored, name, corrections)
    if options.sweep:
        rows += score(options.steptime, [str(options.sweep)], "h100", None, "family")
    print("| GPU | rows of | count | mean | GMAE | all over all | in the interval | roofline, mean |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['device']} | {row['kind']} | {row['rows']} | {share(row['mean'])} | {share(row['gmae'])} | {float(row['total']):.2f} | "
            f"{share(row['inside'])} | {share(row['roofline'])} |"
        )
    if options.recordings:
        iterations(options.steptime, options.recordings)
    return 0


def iterations(steptime: str, recordings: Path) -> None:
    """Prints steps of the paper's networks on its GPUs."""
    print("\n| GPU | network | ms, published | predicted | 90 % interval | error |")
    print("|---|---|--:|--:|--:|--:|")
    errors = []
    for name, published in ITERATIONS.items():
        for network, ms in zip(NETWORKS, published):
            answer = json.loads(run([steptime, "predict", str(recordings / network / "et.json.gz"), "--device", name, "--json"]))
            low, high = answer["interval_ms"]
            errors.append(answer["step_ms"] / ms - 1)
            print(f"| {name} | {network} | {ms:.1f} | {answer['step_ms']:.1f} | {low:.0f} to {high:.0f} | {errors[-1]:+.0%} |")
    print(f"\nmean error {sum(map(abs, errors)) / len(errors):.1%}")


def training(neusight: Optional[Path]) -> List[Path]:
    """NeuSight's training rows."""
    if neusight is None:
        return []
    return sorted((neusight / "scripts/asplos/data/dataset/train/collect").glob("*/p2.1.0/*.csv"))


def tests(neusight: Optional[Path]) -> List[Path]:
    """NeuSight's test rows."""
    if neusight is None:
        return []
    return [neusight / f"scripts/asplos/data/dataset/test/{name}.csv" for name in TESTS]


def tables_of_engines(aiconfigurator: Optional[Path]) -> Dict[str, Path]:
    """The tables of matrix products, by profile."""
    if aiconfigurator is None:
        return {}
    data = aiconfigurator / "aic-core/src/aiconfigurator_core/systems/data"
    return {name: data / system / "gemm/vllm" / version / "gemm_perf.parquet" for name, (system, version) in AICONFIGURATOR.items()}


def score(steptime: str, tables: List[str], name: str, corrections: Optional[Path], by: str = "kind") -> List[Dict[str, str]]:
    """The scores of one GPU's rows, by kind."""
    more = ["--corrections", str(corrections)] if corrections else []
    text = run([steptime, "device", "score", *tables, "--device", name, "--lent", "h200", *more, "--by", by, "--csv"])
    return list(csv.DictReader(io.StringIO(text)))


def run(command: List[str]) -> str:
    """Output of a command, without warnings of rows that are left out."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return done.stdout


def share(text: str) -> str:
    return f"{100 * float(text):.1f} %"


if __name__ == "__main__":
    sys.exit(main())
