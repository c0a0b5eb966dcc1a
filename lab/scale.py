"""Times `steptime.scale.sweep` against one process: python lab/scale.py RECORDING POINTS [ENGINE] [WORKERS]

A grid of POINTS points (hosts x ten batch sizes x two GPUs) is computed by one process with one thread, then by the workers of an
engine ("ray" or "processes"). Both write Parquet; their rows must be equal.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steptime import scale


def grid(points: int) -> str:
    """A grid of about `points` points, as TOML."""
    hosts = max(1, points // 20)
    speeds = ", ".join(f"{0.2 + 4.8 * at / hosts:.6f}" for at in range(hosts))
    return f'host-speed = [{speeds}]\ndevice = ["h200", "a100"]\nbatch = {[256 * at for at in range(1, 11)]}\n'


def main() -> None:
    """Times both, and prints seconds and efficiency."""
    recording, points = sys.argv[1], int(sys.argv[2])
    engine, workers = (sys.argv[3] if len(sys.argv) > 3 else "ray"), int(sys.argv[4] if len(sys.argv) > 4 else 2)
    with tempfile.TemporaryDirectory() as folder:
        file, one, many = (Path(folder) / name for name in ("grid.toml", "one.parquet", "many.parquet"))
        file.write_text(grid(points))
        began = time.perf_counter()
        command = [sys.executable, "-m", "steptime", "sweep", recording, "--grid", str(file), "-o", str(one), "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "RAYON_NUM_THREADS": "1"})
        alone = time.perf_counter() - began
        print(f"one process: {alone:.1f} s", flush=True)
        if engine == "ray":
            import ray

            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        began = time.perf_counter()
        found = scale.sweep(recording, file, many, workers=workers, engine=engine)
        spread = time.perf_counter() - began
        print(f"{engine}, {workers} workers: {spread:.1f} s, {found:,} points, efficiency {alone / spread / workers:.1%}")


if __name__ == "__main__":
    main()
