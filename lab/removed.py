"""Compares measured steps without some of their modules with predictions of `whatif --remove` from the whole step.

    python lab/removed.py --out FILE.json        (needs a GPU, steptime, and the packages of benches/others.py)

A model of `benches/others.py` is timed unchanged and with modules of one kind replaced by `nn.Identity`, alternately in one process. The
unchanged model is recorded, and predicted without the ops of these modules, with measured kernel times. Prints a row per model.
"""

import argparse
import copy
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benches"))

from others import MODELS, trainer  # noqa: E402

# Removed modules of each model, and their ops.
PAIRS = {
    "gpt2": (nn.Dropout, "aten::dropout"),
    "unet": (nn.GroupNorm, "aten::group_norm"),
    "mobilenet_v3_large": (nn.BatchNorm2d, "aten::batch_norm"),
    "din": (nn.PReLU, "aten::prelu"),
    "sasrec": (nn.LayerNorm, "aten::layer_norm"),
    "convnext_tiny": (nn.GELU, "aten::gelu"),
}
ROUNDS, WINDOW_S = 9, 0.25


def without(network, kind):
    """A copy of the network in which modules of a kind do nothing."""
    network = copy.deepcopy(network)
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, kind):
                setattr(module, name, nn.Identity())
    return network


def timed(train, batch, steps):
    """Mean step time of a window, in ms."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        train(batch)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps * 1e3


def one(name):
    """The row of a model."""
    import steptime

    torch.manual_seed(1)
    kind, op = PAIRS[name]
    network, batch, loss = MODELS[name]()
    sides = [each.cuda() for each in (network, without(network, kind))]
    trains = [trainer(each, loss, torch.optim.AdamW(each.parameters(), lr=1e-4), "cuda") for each in sides]
    steps = [max(5, int(WINDOW_S * 1e3 / min(timed(train, batch, 10) for _ in range(3)))) for train in trains]
    rounds = [[timed(train, batch, count) for train, count in zip(trains, steps)] for _ in range(ROUNDS)]
    with tempfile.TemporaryDirectory() as folder:
        with steptime.watch(sides[0], out=Path(folder) / name, quiet=True) as watched:
            while not watched.done:
                trains[0](batch)
                watched.step()
        found = steptime.what_if(Path(folder) / name, remove=op)
    return {
        "model": name,
        "removed": op,
        "gpu": torch.cuda.get_device_name(),
        "measured_ms": [statistics.median(column) for column in zip(*rounds)],
        "measured_speedup": statistics.median(before / after for before, after in rounds),
        "predicted_ms": [found.before.step_ms, found.after.step_ms],
        "predicted_speedup": found.speedup,
        "interval_ms": found.after.interval_ms,
        "active_ms": [found.before.active_ms, found.after.active_ms],
        "why": found.transforms["why"],
    }


def main():
    """Runs each model in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(PAIRS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.names[0])))
        return
    rows = []
    for name in options.names or PAIRS:
        done = subprocess.run([sys.executable, __file__, name, "--one"], capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: {done.stderr[-300:]}", file=sys.stderr)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        measured, predicted = row["measured_speedup"], row["predicted_speedup"]
        inside = row["interval_ms"][0] <= row["measured_ms"][1] <= row["interval_ms"][1]
        print(
            f"{name:20}{row['removed']:18}{row['measured_ms'][0]:9.3f} to {row['measured_ms'][1]:8.3f} ms, {measured:.3f} times as fast; "
            f"predicted {row['predicted_ms'][0]:.3f} to {row['predicted_ms'][1]:.3f}, {predicted:.3f}: {predicted / measured - 1:+.1%}"
            f"{'' if inside else ', outside'}",
            flush=True,
        )
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
