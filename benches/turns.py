"""Times single changes of one model in turns, so that drift of the host affects all of them equally.

    python benches/turns.py MODEL[:BATCH] VARIANT... --out FILE.json        (needs a GPU)

VARIANT: words of `python/workloads/zoo/variants.py` joined by `+`, or `base`, or `@BATCH` for another batch size. Each is set up once; then
all are timed in turn, one window each per round. FILE.json has, for each, the median step of its windows, and the median over rounds of
the ratio of its step to that of the first. `benches/what_if.py` uses these times as reference if a folder has such a file (`turns_*.json`).
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/workloads")]

import zoo_step  # noqa: E402
from steptime.loop import Loop, time_window  # noqa: E402

WINDOW_S = 0.25
WARMUP = 10


class Side:
    """One variant, set up, with its settings of PyTorch."""

    def __init__(self, model: str, variant: str, batch: str) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        words, _, own = variant.partition("@")
        os.environ["STEPTIME_MODEL"] = model
        os.environ["STEPTIME_VARIANT"] = "" if words == "base" else words
        os.environ.pop("STEPTIME_BATCH", None)
        if own or batch:
            os.environ["STEPTIME_BATCH"] = own or batch
        step, data, self.about = zoo_step.steptime_setup()
        self.loop = Loop(step, data)
        self.tf32 = torch.backends.cuda.matmul.allow_tf32
        self.windows: list[float] = []
        for _ in range(WARMUP):
            self.loop.run()
        self.steps = 1
        self.steps = max(5, int(WINDOW_S * 1e3 / self.window()))
        self.windows.clear()

    def window(self) -> float:
        """Mean step time of a window, in ms."""
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        self.loop.run()
        self.windows.append(self.loop.follow(time_window(self.steps, torch.cuda.synchronize)).mean_ms)
        return self.windows[-1]


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("variants", nargs="+", metavar="VARIANT")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    model, _, batch = asked.model.partition(":")
    begin = time.perf_counter()
    sides = {}
    for variant in ["base", *asked.variants]:
        try:
            sides[variant] = Side(model, variant, batch)
        except Exception as error:  # a variant that fails does not stop the others
            print(f"{model} {variant}: {error}", file=sys.stderr)
    for at in range(asked.rounds):
        # Every other round runs in reverse order, so that after-effects of a variant fall on both neighbours.
        for side in list(sides.values())[:: -1 if at % 2 else 1]:
            side.window()
    first = sides["base"].windows
    rows = {
        name: {
            "batch": side.about["batch"],
            "step_ms": statistics.median(side.windows),
            "ratio": statistics.median(own / base for own, base in zip(side.windows, first)),
            "windows_ms": side.windows,
        }
        for name, side in sides.items()
    }
    asked.out.write_text(json.dumps({"model": model, "device": torch.cuda.get_device_name(), "torch": torch.__version__, "variants": rows}, indent=1))
    print(f"{asked.out.name}: {time.perf_counter() - begin:.0f} s", {name: round(row["ratio"], 3) for name, row in rows.items()})


if __name__ == "__main__":
    main()
