"""Scores changes of steps against recordings of both sides.

    cargo build --release -p steptime-cli
    python benches/what_if.py FOLDER...

Recordings of a folder whose names differ only in the number at the end (`dlrm`, `dlrm_512`, `dlrm_2048`) are the same step
with another batch size: each is predicted from each. `NAME_CHANGE` next to `NAME` (or `NAME_CHANGE_N` next to `NAME_base_N`) is the
step with one change. For each pair: the predicted step, its error, and the errors of the speed-up and of the device's active time.
`NAME_accumulate` is the step with two halves of the batch and one update.
`turns_NAME.json` next to `NAME`: times of its changes by `benches/turns.py`. The step is scored against these times, the speed-up
against the median ratio of neighbours.
`--explain`: for recordings with three or more changes, compares the first suggestion of `explain` with the best measured change.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = {
    "fused": ["--fuse", "embedding-bags"],
    "fusedopt": ["--fuse", "optimizer"],
    "tf32": ["--dtype", "tf32"],
    "chlast": ["--channels-last"],
    "graph": ["--cuda-graph"],
    "amp": ["--dtype", "bf16"],
    "pin": ["--prefetch-inputs"],
    "checkpoint": ["--checkpoint=1"],
    "pointwise": ["--fuse", "elementwise"],
    "linear": ["--fuse", "linear"],
    "ours": ["--operators", "steptime"],
    "streams": ["--streams", "2"],
    "fbgemm": ["--operators", "fbgemm"],
}
"""Changes by the suffix of a name. For a model without embedding bags, `fused` is the optimizer."""


def answer(program: Path, *args: str) -> dict | None:
    """JSON answer of a command; if the change does not apply, prints the reason and returns None."""
    done = subprocess.run([program, *args, "--json"], capture_output=True, text=True)
    if done.returncode:
        print(f"  {' '.join(args[1:])}: {done.stderr.strip()}")
        return None
    return json.loads(done.stdout)


def step_ms(recording: Path) -> float:
    """Median step time without the profiler, in ms."""
    return json.loads((recording / "meta.json").read_text())["step_ms"]


def batches(folder: Path) -> list[tuple[Path, Path, list[str], str]]:
    """Pairs of recordings that differ in their batch size."""
    models = {}
    for recording in sorted(folder.glob("*/")):
        name = re.fullmatch(r"(.+)_(\d+)", recording.name)
        batch = json.loads((recording / "meta.json").read_text()).get("batch")
        if name and batch == int(name[2]):
            models.setdefault(name[1], []).append((batch, recording))
        elif batch:
            models.setdefault(recording.name, []).append((batch, recording))
    pairs = [(one, other) for same in models.values() for one in same for other in same if one[0] != other[0]]
    return [(one, other, ["--batch", str(batch)], "batch") for (_, one), (batch, other) in pairs]


def changes(folder: Path) -> list[tuple[Path, Path, list[str], str]]:
    """Pairs of recordings of which the second has one change."""
    pairs = []
    for recording in sorted(folder.glob("*/")):
        name = re.fullmatch(r"(.+?)_(fused|tf32|chlast|graph|amp|pin|checkpoint|pointwise|linear|ours|streams|fbgemm)((?:_\d+)?)", recording.name)
        bases = [folder / f"{name[1]}{middle}{name[3]}" for middle in ("", "_base")] if name else []
        for base in (base for base in bases if base.is_dir()):
            bags = name[2] != "fused" or "dlrm" in recording.name
            kind = name[2] if bags else "fusedopt"
            pairs.append((base, recording, FLAGS[kind], kind))
        whole = recording.with_name(recording.name.removesuffix("_accumulate"))
        if whole != recording and whole.is_dir():
            half = json.loads((whole / "meta.json").read_text())["batch"] // 2
            pairs.append((whole, recording, ["--batch", str(half), "--accumulate", "2"], "accumulate"))
    return pairs


def in_turns(folder: Path) -> list[tuple[Path, dict, list[str], str]]:
    """Changes timed in turns: the recording, its times, and the change."""
    rows = []
    for turns in sorted(folder.glob("turns_*.json")):
        base = folder / turns.stem.removeprefix("turns_")
        for variant, row in json.loads(turns.read_text())["variants"].items() if base.is_dir() else ():
            kind = {"fused": "fusedopt"}.get(variant, "batch" if variant.startswith("@") else variant)
            if kind == "accumulate":
                flags = ["--batch", str(row["batch"] // 2), "--accumulate", "2"]
            elif kind == "batch":
                flags = ["--batch", str(row["batch"])]
            elif kind not in FLAGS:
                continue
            else:
                flags = FLAGS[kind]
            rows.append((base, row, flags, kind))
    return rows


RULES = {
    "fused": "fuse-embedding-bags",
    "fusedopt": "fuse-optimizer",
    "tf32": "tf32",
    "chlast": "channels-last",
    "graph": "cuda-graph",
    "amp": "bf16",
    "pin": "prefetch-inputs",
    "pointwise": "fuse-elementwise",
    "linear": "fuse-linear",
    "ours": "operators",
}
"""The rules of changes, as `explain` names them."""
LEAST = 3
"""Smallest number of measured changes for which the first suggestion is scored."""


def explained(program: Path, folder: Path) -> list[int]:
    """Prints the ranking of `explain` and the measurements; returns the ranks of its first suggestions among the measured changes."""
    measured = {}
    for before, after, _, kind in changes(folder):
        if kind in RULES:
            measured.setdefault(before, {})[RULES[kind]] = step_ms(before) - step_ms(after)
    places = []
    for before, saved in measured.items():
        found = answer(program, "explain", str(before)) if len(saved) >= LEAST else None
        ranked = [each for each in found["suggestions"] if each["name"] in saved] if found else []
        if ranked:
            best = sorted(saved, key=lambda name: -saved[name])
            places.append(best.index(ranked[0]["name"]))
            print(f"{before.name}: predicted", ", ".join(f"{each['name']} {each['saves_ms']:+.2f}" for each in ranked))
            print(f"{' ' * len(before.name)}   measured", ", ".join(f"{name} {saved[name]:+.2f}" for name in best))
    return places


def main() -> None:
    """Prints a line per pair, then a table by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--steptime", type=Path, default=ROOT / "target/release/steptime")
    parser.add_argument("--explain", action="store_true", help="score explain and not whatif")
    asked = parser.parse_args()
    if asked.explain:
        places = [place for folder in asked.folders for place in explained(asked.steptime, folder)]
        print(f"of {len(places)}: {places.count(0)} first are the best measured, {places.count(1)} the second best")
        return
    scores = {}
    for folder in asked.folders:
        for before, after, flags, kind in batches(folder) + changes(folder):
            predicted = answer(asked.steptime, "whatif", str(before), *flags)
            measured = answer(asked.steptime, "predict", str(after))
            if predicted is None or measured is None:
                continue
            truth = step_ms(after)
            low, high = predicted["after"]["interval_ms"]
            step = predicted["after"]["step_ms"] / truth - 1
            speedup = predicted["speedup"] * truth / step_ms(before) - 1
            active = predicted["after"]["active_ms"] / measured["active_ms"] - 1
            scores.setdefault(kind, []).append((step, speedup, active, low <= truth <= high))
            print(f"{before.name} -> {after.name}: step {step:+.1%}, speed-up {speedup:+.1%}, active {active:+.1%}")
        for before, row, flags, kind in in_turns(folder):
            predicted = answer(asked.steptime, "whatif", str(before), *flags)
            if predicted is None:
                continue
            truth, ratio = row["step_ms"], row["ratio"]
            low, high = predicted["after"]["interval_ms"]
            step = predicted["after"]["step_ms"] / truth - 1
            speedup = predicted["speedup"] * ratio - 1
            right = (predicted["speedup"] > 1) == (ratio < 1) or abs(ratio - 1) <= 0.05
            scores.setdefault(f"{kind}, in turns", []).append((step, speedup, None, low <= truth <= high))
            sign = "" if right else ", WRONG SIGN"
            print(f"{before.name} {kind} in turns: step {step:+.1%}, speed-up x{predicted['speedup']:.2f} for x{1 / ratio:.2f} {speedup:+.1%}{sign}")
    print("\n| change | pairs | step | speed-up | worst | active | worst | in the interval |\n|---|--:|--:|--:|--:|--:|--:|--:|")
    for kind, rows in scores.items():
        known = [[abs(row[at]) for row in rows if row[at] is not None] for at in range(3)]
        mean = [sum(column) / len(column) if column else None for column in known]
        worst = [max(column, default=None) for column in known]
        inside = sum(row[3] for row in rows)
        cells = [kind, len(rows), *("-" if value is None else f"{value:.1%}" for value in (mean[0], mean[1], worst[1], mean[2], worst[2]))]
        print("| " + " | ".join(map(str, cells)) + f" | {inside} of {len(rows)} |")


if __name__ == "__main__":
    main()
