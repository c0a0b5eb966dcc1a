"""Compares the predictions of `steptime gather-plan` of reads from device memory with the counters of `ncu`.

Build first, then run on a machine with a GPU, PyTorch, ncu, and permission to read counters:

    cargo build --release -p steptime-cli -p steptime-cuda-capi
    python benches/peers/cuda_reads.py

Each shape is gathered once in every order, indices uniform or by Zipf's law over rows in random order.
"""

import argparse
import csv
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# E, D, N, exponent of Zipf's law (0: uniform).
SHAPES = [
    (8192, 4096, 16_384, 0),
    (8192, 4096, 16_384, 1.05),
    (8192, 4096, 32_768, 0),
    (4096, 8192, 8192, 0),
    (20_000, 2048, 40_000, 1.05),
    (65_536, 1024, 65_536, 0),
    (65_536, 1024, 65_536, 1.05),
    (500_000, 512, 200_000, 1.05),
    (200_000, 256, 400_000, 0),
    (1_000_000, 128, 262_144, 0),
    (1_000_000, 128, 262_144, 1.2),
]
READ, WRITTEN, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"


def orders(columns: int) -> dict:
    """Name of each order of rows with this number of f32 columns, and its slice in the library."""
    found = {"rows": 0, "sorted": -1}
    found.update({f"columns {bytes_} B": bytes_ for bytes_ in (512, 2048) if bytes_ < 4 * columns})
    return found


def launch() -> None:
    """Gathers every shape in every order once, for a run under ncu."""
    import cuda
    import torch

    ours = cuda.load_ours()
    if ours is None:
        raise SystemExit(1)
    gather = ours.function("gather")
    torch.manual_seed(1)
    for rows, columns, lookups, exponent in SHAPES:
        table = torch.randn(rows, columns, device="cuda")
        out = torch.empty(lookups, columns, device="cuda")
        rank = torch.arange(1, rows + 1, dtype=torch.float64, device="cuda")
        drawn = torch.multinomial(rank.pow(-exponent), lookups, replacement=True)
        indices = torch.randperm(rows, device="cuda")[drawn]
        order = torch.sort(indices, stable=True)
        pairs = (order.values << 32) | order.indices
        for slice_ in orders(columns).values():
            tables = cuda.tables_of([table])
            handle = ours.new("gather_new", ours.here, ctypes.addressof(tables), slice_)
            gather(handle, lookups, (pairs if slice_ < 0 else indices).data_ptr(), out.data_ptr())
            ours.free("gather_free", handle)


def counted() -> list:
    """Counters of each gather, in the order of launches."""
    command = ["ncu", "--csv", "--clock-control", "none", "--kernel-name", "gather", "--metrics", f"{READ},{WRITTEN},{TIME}"]
    done = subprocess.run([*command, sys.executable, __file__, "--launch"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ncu failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = done.stdout.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches = {}
    for row in csv.DictReader(lines[start:]):
        unit = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "ns": 1, "us": 1e3, "usecond": 1e3, "nsecond": 1}[row["Metric Unit"]]
        value = float(row["Metric Value"].replace(",", "")) * unit
        launches.setdefault(int(row["ID"]), {})[row["Metric Name"]] = value
    return [launches[at] for at in sorted(launches)]


def predicted(steptime: Path, rows: int, columns: int, lookups: int, exponent: float) -> dict:
    """The cache model's answer for each order, by its name here."""
    command = [steptime, "gather-plan", "--rows", rows, "--dim", columns, "--lookups", lookups, "--device", "h200", "--json"]
    command += ["--zipf", exponent] if exponent else []
    answer = json.loads(subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout)
    found = {}
    for order in answer["orders"]:
        if order["order"] in ("rows", "sorted"):
            found[order["order"]] = order
        elif order["order"] == "lookups first":
            found[f"columns {4 * order['tile_columns']} B"] = order
    return found


def compare(steptime: Path) -> None:
    """Prints a line for each shape and order."""
    if not steptime.exists():
        raise SystemExit(f"{steptime} is not there: build it with `cargo build --release -p steptime-cli`, or say where it is with --steptime")
    if shutil.which("ncu") is None:
        raise SystemExit("ncu is not found: install NVIDIA Nsight Compute, and put it on the PATH")
    launches = iter(counted())
    print(f"{'':36}{'read MB':>9}{'predicted':>11}{'':9}{'written':>9}{'us':>8}{'predicted':>11}")
    for shape in SHAPES:
        rows, columns, lookups, exponent = shape
        models = predicted(steptime, *shape)
        print(f"E {rows:,} D {columns:,} N {lookups:,} " + (f"Zipf {exponent}" if exponent else "uniform"))
        for name in orders(columns):
            seen, model = next(launches), models.get(name)
            read = seen[READ]
            line = f"  {name:<34}{read / 1e6:>9.1f}"
            line += f"{model['dram_reads'] / 1e6:>11.1f}{100 * (model['dram_reads'] / read - 1):>+8.1f}%" if model else " " * 20
            line += f"{seen[WRITTEN] / 1e6:>9.1f}{seen[TIME] / 1e3:>8.1f}"
            print(line + (f"{model['time_us']:>11.1f}" if model else ""))


def main() -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[2] / "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steptime", type=Path, default=target / "release" / "steptime", help="the program (default: %(default)s)")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.launch:
        launch()
    else:
        compare(arguments.steptime)


if __name__ == "__main__":
    main()
