"""Fits times of softmax and layer norm kernels that read rows repeatedly, on GPUs of several architectures, and scores held-out GPUs.

    git clone https://github.com/sitar-lab/NeuSight
    python benches/rows_elsewhere.py --neusight NeuSight          # needs numpy and scipy

The formula is that of `crates/model/cost/src/device/families/repeated_reads.rs`; the output goes into the group `rows` of
`profiles/constants.toml`. The fit uses NeuSight's training rows, with the host's part of a time as one more unknown of each GPU and op.
The test rows are scored: with all GPUs in the fit, and with the scored GPU left out (boards of one chip together).

The cache capacity for rows of a softmax is not fitted: the whole cache, 1.8 times the effective size in profiles, or half of it, 0.9, if
it has two halves that each keep copies, as on an A100.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tomllib
from pathlib import Path
from typing import Dict, List

import numpy as np
from scipy.optimize import least_squares

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
NAMES = {
    "NVIDIA A100-PCIE-40GB": "a100-pcie", "NVIDIA A100 80GB PCIe": "a100-80gb-pcie", "NVIDIA L4": "l4", "Tesla P100-PCIE-16GB": "p100",
    "Tesla P4": "p4", "Tesla T4": "t4", "Tesla V100-PCIE-32GB": "v100",
}  # fmt: skip
SHORTEST_US = 100
SPLIT_CACHE, WHOLE_CACHE, SHARPNESS = 0.9, 1.8, 6
# Constants: lower bound, upper bound and initial value of each.
CONSTANTS = {
    "norm_cache": (0.5, 2, 1.1), "softmax_block_cycles": (0, 1000, 100), "softmax_cycles": (0, 3, 1.2), "softmax_rest_cycles": (0, 4, 1.6),
    "norm_block_cycles": (0, 1000, 200), "norm_cycles": (0, 3, 1.0), "per_generation": (1, 2, 1.4),
}  # fmt: skip
HOST_US = (0, 60, 30)


class Rows:
    """Rows of one op on one GPU, and the GPU's specification."""

    def __init__(self, op: str, profile: str, shapes: List[List[float]]) -> None:
        device = tomllib.loads((PROFILES / profile / "profile.toml").read_text())["device"]
        self.op, self.profile = op, profile
        self.rows, self.length, self.us = np.array(shapes).T
        self.capability = tuple(device["compute_capability"])
        self.lanes = 64 if self.capability in [(6, 0), (7, 0), (7, 5), (8, 0)] else 128
        warps = {(7, 5): 32, (8, 6): 48, (8, 9): 48}.get(self.capability, 64)
        self.processors, self.clock = device["multiprocessors"], device["clock_mhz"]
        self.rate, self.cache = device["memory"]["rate_gb_s"] * 1e3, device["l2"]["effective_bytes"]
        self.floor = device["launch"]["floor_us"]
        threads = [threads_of(length) if op == "softmax" else 128 for length in self.length]
        self.blocks = np.array([min(warps * 32 // count, 16 if self.capability == (7, 5) else 32) for count in threads])
        self.whole = np.array([in_vectors(int(length), count) for length, count in zip(self.length, threads)])

    def us_by(self, c: Dict[str, float]) -> np.ndarray:
        if self.op == "softmax":
            cycles = c["softmax_block_cycles"] + c["softmax_cycles"] * self.whole + c["softmax_rest_cycles"] * (self.length - self.whole)
            held, again = (SPLIT_CACHE if self.capability == (8, 0) else WHOLE_CACHE), 2
        else:
            cycles, held, again = c["norm_block_cycles"] + c["norm_cycles"] * self.length, c["norm_cache"], 1
        at_once = self.processors * self.blocks
        missed = 1 - 1 / (1 + (at_once * self.length * 4 / (held * self.cache)) ** 4)
        memory = self.rows * self.length * (8 + 4 * again * missed) / self.rate
        turns = np.ceil(self.rows / at_once) * self.blocks
        major, minor = self.capability
        busy = turns * cycles * c["per_generation"] ** (7 - major - 0.1 * minor) * 64 / self.lanes / self.clock
        power = SHARPNESS
        return self.floor + (memory**power + busy**power) ** (1 / power)


def threads_of(length: float) -> int:
    """Number of threads of a block, as chosen by PyTorch."""
    half = max(min(int(length) // 4, 1024) // 2, 32)
    return 1 << (half - 1).bit_length()


def in_vectors(length: int, threads: int) -> float:
    """Mean number of elements of a row that are read in whole rounds of vectors."""
    total = 0
    for row in range(4):
        late = row * length % 4
        left = max(length + late - threads, 0) if late else length
        total += left - left % (4 * threads)
    return total / 4


def read(paths: List[Path], op: str) -> List[Rows]:
    """Rows of an op, by GPU: times long enough to depend on the GPU, and of a softmax only rows that are read repeatedly."""
    shapes: Dict[str, List[List[float]]] = {}
    for path in paths:
        with path.open() as file:
            for row in csv.DictReader(file):
                us, length = 1e3 * float(row["Latency"]), float(row["H"])
                if row["Device"] in NAMES and us >= SHORTEST_US and (op == "ln" or length > 1024):
                    shapes.setdefault(NAMES[row["Device"]], []).append([float(row["B"]), length, us])
    return [Rows(op, profile, of) for profile, of in sorted(shapes.items())]


def fit(tables: List[Rows]) -> Dict[str, float]:
    """Fits the constants, with equal weights of tables and reduced weights of outliers."""
    names = list(CONSTANTS)
    bounds = np.array([CONSTANTS[name] for name in names] + [HOST_US] * len(tables), dtype=float)

    def left(x: np.ndarray) -> np.ndarray:
        constants, parts = dict(zip(names, x)), []
        for table, host in zip(tables, x[len(names) :]):
            parts.append(np.log((table.us_by(constants) + host) / table.us) / np.sqrt(len(table.us)))
        # Regularised towards the initial values: constants that the rows do not determine stay there.
        parts.append(0.1 * np.log(np.maximum(x, 1e-3) / bounds[:, 2])[: len(names)])
        return np.concatenate(parts)

    found = least_squares(left, bounds[:, 2], bounds=(bounds[:, 0], bounds[:, 1]), x_scale=bounds[:, 2], loss="soft_l1", f_scale=0.03)
    return dict(zip(names, found.x))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neusight", type=Path, required=True, help="a checkout of sitar-lab/NeuSight")
    data = parser.parse_args().neusight / "scripts/asplos/data/dataset"
    learnt = [table for op in ("softmax", "ln") for table in read(sorted((data / "train/collect" / op / "p2.1.0").glob("*.csv")), op)]
    if not learnt:
        sys.exit(f"{data} holds no rows of softmax and ln: is it a checkout of sitar-lab/NeuSight?")
    constants = fit(learnt)
    for name, value in constants.items():
        print(f"{name} = {value:.3g}")
    print("\n| op | GPU | rows | mean error, in the fit | left out |\n|---|---|--:|--:|--:|")
    without: Dict[str, Dict[str, float]] = {}
    for op in ("softmax", "ln"):
        for table in read([data / f"test/{op}.csv"], op):
            chip = table.profile.split("-")[0]
            if chip not in without:
                without[chip] = fit([other for other in learnt if other.profile.split("-")[0] != chip])
            errors = [np.abs(table.us_by(c) / table.us - 1).mean() for c in (constants, without[chip])]
            print(f"| {op} | {table.profile} | {len(table.us)} | {errors[0]:.1%} | {errors[1]:.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
