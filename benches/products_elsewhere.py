"""Fits the tiling of 16-bit matrix products by libraries on tensor cores, and scores it on held-out GPUs.

    git clone https://github.com/ai-dynamo/aiconfigurator
    python benches/products_elsewhere.py --aiconfigurator aiconfigurator          # needs numpy and scipy

The formula is that of `crates/model/cost/src/device/families/tile_choice.rs`; the output goes into the groups `cuts_ampere`, `cuts_blackwell`
and `clusters` of `profiles/constants.toml`. The fit uses some of the rows of vLLM's bf16 products; all are scored: with all GPUs of a
group in the fit, and with the constants of the other GPU alone. Half-widths are the larger of the two latter ones; a GPU that is alone
in its group is scored on the rows outside the fit.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Dict, List

import numpy as np
from other_gpus import tables_of_engines
from scipy.optimize import least_squares

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
GROUPS = {"cuts_ampere": ["a100-80gb", "l40s"], "cuts_blackwell": ["b200"]}
SPLIT_CACHE, WHOLE_CACHE, FITTED_ON = 0.9, 1.8, 3000
SPLITS = [1, 2, 3, 4, 6, 8, 12, 16, 32]
# Constants: lower bound, upper bound and initial value of each.
CONSTANTS = {
    "share_cluster": (0.5, 1.25, 1.1), "share_256x128": (0.5, 1.25, 1.1), "share_128x128": (0.4, 1.25, 1.0), "share_128x64": (0.2, 1.25, 0.9),
    "share_64x64": (0.1, 1.2, 0.6), "share_64x32": (0.05, 1.0, 0.4), "kernel_cycles": (500, 6000, 2400), "wave_cycles": (1, 4000, 800),
    "store_bytes": (4, 80, 11), "step_cycles": (1, 500, 200), "reduce_us": (0.1, 8, 2), "cache_rate": (0.4, 6, 1.3), "sharpness": (2, 12, 6),
}  # fmt: skip


class Rows:
    """Rows of one GPU, and its specification."""

    def __init__(self, profile: str, m: np.ndarray, n: np.ndarray, k: np.ndarray, us: np.ndarray) -> None:
        device = tomllib.loads((PROFILES / profile / "profile.toml").read_text())["device"]
        self.profile, self.m, self.n, self.k, self.us = profile, m, n, k, us
        self.capability = tuple(device["compute_capability"])
        self.processors, self.clock = device["multiprocessors"], device["clock_mhz"]
        self.memory, self.l2 = device["memory"]["rate_gb_s"] * 1e3, device["l2"]["rate_gb_s"] * 1e3
        whole = device["l2"]["effective_bytes"]
        self.cache = whole * (SPLIT_CACHE if self.capability in [(8, 0)] or self.capability[0] in (9, 10) else WHOLE_CACHE)
        self.peak = device["peak"]["bf16_tflop_s"] * 1e6

    def some(self, others: bool = False) -> Rows:
        """The rows for the fit, or all other rows."""
        chosen = np.arange(len(self.us)) % max(1, len(self.us) // FITTED_ON) == 0
        return Rows(self.profile, *(column[chosen != others] for column in (self.m, self.n, self.k, self.us)))

    def us_by(self, c: Dict[str, float]) -> np.ndarray:
        m, n, k, processors = self.m, self.n, self.k, self.processors
        read, written = 2 * k * (m + n), 2 * m * n
        l2 = self.l2 * c["cache_rate"]
        missed = 1 - 1 / (1 + ((read + written + 5 * 2 * n * (k + m)) / self.cache) ** c["sharpness"])
        held = self.cache / (read + written)
        kept = held / (1 + held**4) ** 0.25
        fetched = read * missed / self.memory
        moved = np.maximum((read * missed + written * (1 - kept)) / self.memory, (read + written) / l2)
        least = np.full(m.shape, np.inf)
        for rows, columns, share, together in tiles(c, self.capability[0] in (9, 10)):
            tiles_of_result = np.ceil(m / rows) * np.ceil(n / columns)
            for splits in SPLITS:
                allowed = (splits == 1) | ((k / splits >= 64) & (tiles_of_result * splits <= 4 * processors))
                depth = np.ceil(k / splits / 32) * 32
                blocks = tiles_of_result * splits
                turns = np.ceil(blocks / processors)
                turns = np.where(turns > 6 * together, blocks / processors + 0.5, turns)
                multiply = turns * 2 * rows * columns * depth * processors / (self.peak * share)
                lone = depth / 32 * c["step_cycles"] / self.clock * np.maximum(turns / together, 1)
                feed = blocks * (rows + columns) * 2 * depth / l2
                inner = np.maximum(np.maximum(multiply, lone), feed)
                store = turns * (2 if splits == 1 else 4) * rows * columns / (c["store_bytes"] * self.clock)
                waves = np.ceil(blocks / processors / together) * c["wave_cycles"] / self.clock
                reduce = c["reduce_us"] + 4 * m * n * (splits + 1) / l2 if splits > 1 else 0
                busy = (inner**4 + fetched**4) ** 0.25 + store + waves
                us = (busy**4 + moved**4) ** 0.25 + reduce
                least = np.minimum(least, np.where(allowed, us, np.inf))
        return c["kernel_cycles"] / self.clock + least


def tiles(c: Dict[str, float], clusters: bool):
    """Tiles: rows, columns, share of the peak, and number of tiles on a multiprocessor."""
    pairs = [(512, 256, "share_cluster", 1), (256, 256, "share_cluster", 1)] if clusters else []
    pairs += [(256, 128, "share_256x128", 1), (128, 128, "share_128x128", 2), (256, 64, "share_128x128", 2), (128, 64, "share_128x64", 3)]
    pairs += [(64, 64, "share_64x64", 4), (128, 32, "share_64x64", 4), (64, 32, "share_64x32", 6)]
    for rows, columns, share, together in pairs:
        yield rows, columns, c[share], together
        if rows != columns and rows < 512:
            yield columns, rows, c[share], together


def read(steptime: str, tables: Dict[str, Path], profile: str) -> Rows:
    """A GPU's rows, without products by a vector."""
    command = [steptime, "device", "score", str(tables[profile]), "--device", profile, "--lent", "h200", "--rows"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    found: List[List[float]] = []
    for row in csv.DictReader(io.StringIO(done.stdout)):
        (m, k), (_, n) = json.loads(row["dims"])
        if min(m, n) > 1:
            found.append([m, n, k, float(row["measured_us"])])
    return Rows(profile, *np.array(found, dtype=float).T)


def fit(tables: List[Rows]) -> Dict[str, float]:
    """Fits the constants, with equal weights of tables and reduced weights of outliers."""
    names = [name for name in CONSTANTS if name != "share_cluster" or tables[0].capability[0] in (9, 10)]
    bounds = np.array([CONSTANTS[name] for name in names], dtype=float)

    def left(x: np.ndarray) -> np.ndarray:
        constants = dict(zip(names, x))
        return np.concatenate([np.log(table.us_by(constants) / table.us) / np.sqrt(len(table.us)) for table in tables])

    begin, scale = bounds[:, 2], bounds[:, 2]
    soft = {"loss": "soft_l1", "f_scale": 0.1 / np.sqrt(min(len(table.us) for table in tables))}
    found = least_squares(left, begin, bounds=(bounds[:, 0], bounds[:, 1]), x_scale=scale, diff_step=1e-3, max_nfev=60, **soft)
    return dict(zip(names, found.x))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aiconfigurator", type=Path, required=True, help="a checkout of ai-dynamo/aiconfigurator")
    parser.add_argument("--steptime", default="steptime", help="the program")
    options = parser.parse_args()
    paths = tables_of_engines(options.aiconfigurator)
    scores = []
    for group, profiles in GROUPS.items():
        tables = [read(options.steptime, paths, profile) for profile in profiles]
        constants = fit([table.some() for table in tables])
        worth = []
        for table in tables:
            others = [other.some() for other in tables if other is not table]
            scored = table if others else table.some(others=True)
            left_out = fit(others) if others else constants
            errors = [np.abs(scored.us_by(c) / scored.us - 1).mean() for c in (constants, left_out)]
            scores.append(f"| {table.profile} | {len(scored.us)} | {errors[0]:.1%} | {f'{errors[1]:.1%}' if others else '-'} |")
            off = np.log(scored.us / scored.us_by(left_out))
            worth.append([np.quantile(np.abs(off - np.median(off)), 0.9), abs(np.median(off))])
        constants["own"], constants["shared"] = np.max(worth, axis=0)
        if share := constants.pop("share_cluster", None):
            print(f"[clusters]\nshare = {share:.3g}")
        print(f"[{group}]")
        for name, value in constants.items():
            print(f"{name} = {value:.3g}")
    print("\n| GPU | rows | mean error, in the fit | left out |\n|---|--:|--:|--:|")
    print("\n".join(scores))
    return 0


if __name__ == "__main__":
    sys.exit(main())
