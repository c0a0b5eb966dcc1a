"""Fits the curves of collectives, and scores them: python benches/collectives.py [--write]

A collective takes `alpha + root * sqrt(v) + v / rate` after all ranks have arrived: `v` is the volume over each GPU's link, `alpha` the
latency of a round trip, `root` the loss by pipelining chunks. One curve per GPU, operation and number of ranks, by least squares of
relative errors with reduced weight of outliers. `--write` writes the curves to profiles/collectives.toml.

    benches/results/collectives/published.csv.gz   nccl-tests, one node, half precision, out of place; per-rank buffers in bytes:
        all_reduce the buffer, all_gather the output, reduce_scatter and all_to_all the input. From ai-dynamo/aiconfigurator
        (Apache-2.0) at 095f58a, aic-core/src/aiconfigurator_core/systems/data/*/comm/nccl; l40s from */comm/sglang/0.5.12, because its
        table of nccl-tests is of a host without peer access between sockets.

Printed errors are of held-out sizes: each size is predicted by a curve fitted on the others of its table.
"""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DATA = HERE / "results" / "collectives" / "published.csv.gz"
PROFILE = HERE.parent / "profiles" / "collectives.toml"

# Rate of a GPU's link in one direction, by specification, GB/s; rate of its network, GB/s per GPU; GPUs per node.
SYSTEMS = {
    "a100": ("NVLink 3, NVSwitch", 300, 25, 8),
    "h100": ("NVLink 4, NVSwitch", 450, 50, 8),
    "h200": ("NVLink 4, NVSwitch", 450, 50, 8),
    "b200": ("NVLink 5, NVSwitch", 900, 50, 8),
    "b300": ("NVLink 5, NVSwitch", 900, 100, 8),
    "gb200": ("NVLink 5, NVSwitch", 900, 50, 72),
    "rtx-pro-6000": ("PCIe 5 x16", 64, 50, 8),
    "l40s": ("PCIe 4 x16", 32, 25, 8),
}
# GPUs without a table, which use the curves of another one with rates in proportion to their links.
LIKE = {
    "l40": ("PCIe 4 x16", 32, 25, 8, "l40s"),
    "a40": ("PCIe 4 x16", 32, 25, 8, "l40s"),
    "h100-pcie": ("PCIe 5 x16", 64, 50, 8, "rtx-pro-6000"),
    "a100-pcie": ("PCIe 4 x16", 32, 25, 8, "rtx-pro-6000"),
    "v100": ("NVLink 2, NVSwitch", 150, 12.5, 8, "a100"),
    "p100": ("PCIe 3 x16", 16, 12.5, 8, "rtx-pro-6000"),
    "titan-xp": ("PCIe 3 x16", 16, 12.5, 8, "rtx-pro-6000"),
    "l4": ("PCIe 4 x16", 32, 12.5, 8, "rtx-pro-6000"),
}
HEAD = """# Time of collectives after all ranks have arrived, by GPU, operation and number of ranks of one node, fitted by
# benches/collectives.py, which describes the method and the data. All are from ai-dynamo/aiconfigurator (Apache-2.0) at 095f58a.
#   link_gbs     rate of a GPU's link in one direction, by specification
#   network_gbs  rate of its network per GPU, by specification
#   like         another GPU whose curves are used, with rates in proportion to the links
#   curve        operation, ranks, alpha (us), root (us per square root of a KiB), rate (GB/s), half-width of 90 % (logarithm)
"""


def volume(op: str, ranks: int, size: np.ndarray) -> np.ndarray:
    """Volume over each GPU's link."""
    share = (ranks - 1) / ranks
    return size * (2 * share if op == "all_reduce" else share)


def read() -> dict:
    """Sizes and times by GPU, operation and ranks."""
    tables: dict = {}
    with gzip.open(DATA, "rt") as text:
        for row in csv.DictReader(text):
            key = (row["gpu"], row["op"], int(row["ranks"]))
            tables.setdefault(key, []).append((float(row["bytes"]), float(row["time_us"])))
    return {key: np.array(sorted(rows)) for key, rows in tables.items()}


def fit(moved: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The curve with the smallest relative errors; outliers count less; no part is negative."""
    parts = np.c_[np.ones(len(moved)), np.sqrt(moved / 1024), moved / 1e3]
    weights = np.ones(len(times))
    found = np.zeros(3)
    for _ in range(8):
        columns = [0, 1, 2]
        while True:
            scaled = parts[:, columns] * (weights / times)[:, None]
            values = np.linalg.lstsq(scaled, weights, rcond=None)[0]
            if (values >= 0).all() or len(columns) == 1:
                break
            columns.pop(int(np.argmin(values)))
        found = np.zeros(3)
        found[columns] = values
        off = np.abs(parts @ found / times - 1)
        weights = np.minimum(1, 0.08 / np.maximum(off, 1e-9)) ** 0.5
    return found


def at(curve: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The times of a curve."""
    return curve[0] + curve[1] * np.sqrt(moved / 1024) + curve[2] * moved / 1e3


def held_out(moved: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Logarithms of predicted over measured times, each size by a curve fitted on all others."""
    every = np.arange(len(times))
    off = [np.log(at(fit(moved[every != out], times[every != out]), moved[[out]])[0] / times[out]) for out in every]
    return np.array(off)


def main() -> None:
    """Fits, prints scores, and writes the curves with `--write`."""
    tables = read()
    text, all_off = [HEAD], []
    for gpu, (link, rate, network, node) in SYSTEMS.items():
        own = {key: rows for key, rows in tables.items() if key[0] == gpu}
        text.append(f'[{gpu}]\nlink = "{link}"\nlink_gbs = {rate}\nnetwork_gbs = {network}\ngpus = {node}\ncurves = [')
        off_of_gpu = []
        for (_, op, ranks), rows in sorted(own.items()):
            moved, times = volume(op, ranks, rows[:, 0]), rows[:, 1]
            off = held_out(moved, times)
            alpha, root, slope = fit(moved, times)
            width = float(np.quantile(np.abs(off), 0.9))
            text.append(f'  ["{op}", {ranks}, {alpha:.3f}, {root:.5f}, {1 / max(slope, 1e-6):.1f}, {width:.3f}],')
            off_of_gpu.append(np.abs(np.expm1(off)))
        text.append("]\n")
        off = np.concatenate(off_of_gpu)
        all_off.append(off)
        print(f"{gpu:14s} {len(off):4d} rows held out: mean {100 * off.mean():4.1f} %, GMAE {100 * np.exp(np.log(np.maximum(off, 1e-4)).mean()):4.1f} %")
    for gpu, (link, rate, network, node, like) in LIKE.items():
        numbers = f"link_gbs = {rate}\nnetwork_gbs = {network}\ngpus = {node}"
        text.append(f'[{gpu}]\nlink = "{link}"\n{numbers}\nlike = "{like}"\n')
    off = np.concatenate(all_off)
    print(f"{'together':14s} {len(off):4d} rows held out: mean {100 * off.mean():4.1f} %, GMAE {100 * np.exp(np.log(np.maximum(off, 1e-4)).mean()):4.1f} %")
    if "--write" in sys.argv[1:]:
        PROFILE.write_text("\n".join(text))


if __name__ == "__main__":
    main()
