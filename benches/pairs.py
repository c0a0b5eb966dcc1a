"""Compares changes of recordings with recordings of the changed scripts: `whatif CHANGE before` against `predict after`.

    PYTHONPATH=python:python/workloads python -m pairs FOLDER        (records; needs PyTorch, and no GPU)
    python benches/pairs.py FOLDER [--steptime PROGRAM] [--device h200,a100,t4] [--json OUT]
    python benches/pairs.py FOLDER --explain MODEL/CHANGE
    python benches/pairs.py FOLDER --beside OTHER        (the same scripts recorded in another way, as with fake tensors)

For each pair: the device's active time, the peak memory and its kinds, the number of device activities, and the ops whose
activities or milliseconds differ. Then a table by kind of change, and a check of memory by kind against the sizes of tensors.
"""

import argparse
import functools
import json
import math
import os
import re
import statistics
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("parameters", "gradients", "optimizer", "activations", "workspace")
ALL_GATHER = "ncclDevKernel_AllGather"
WITHIN = (0.06, 0.08)
"""Accepted relative errors of active time and of memory."""


@dataclass
class Step:
    """A predicted step: `ops` are device activities and their milliseconds by phase and op, `gathers` the all-gathers of parameters."""

    active: float
    peak: dict
    ops: dict
    gathers: int = 0

    @property
    def activities(self) -> int:
        """Kernels, copies and memsets."""
        return sum(count for count, _ in self.ops.values())


@dataclass
class Row:
    """A pair, compared for one device."""

    pair: str
    kind: str
    device: str
    refused: str = ""
    lost: str = ""
    active: float = math.nan
    memory: float = math.nan
    activities: int = 0
    kinds: dict = field(default_factory=dict)
    ops: list = field(default_factory=list)
    theirs: dict = field(default_factory=dict)


class Refused(Exception):
    """The error message of the program."""


@functools.lru_cache(None)
def ask(program: Path, arguments: tuple[str, ...]) -> Step:
    """Runs the program; returns the step of its answer."""
    with tempfile.TemporaryDirectory() as folder:
        timeline = Path(folder) / "timeline.json"
        done = subprocess.run([program, *arguments, "--json", "--timeline", timeline], capture_output=True, text=True)
        if done.returncode:
            raise Refused(" ".join(done.stderr.split()).removeprefix("error: "))
        answer = json.loads(done.stdout)
        side = answer.get("after") or answer
        ops: dict = {}
        gathers = 0
        for event in json.loads(timeline.read_text())["traceEvents"]:
            if event.get("cat") == "device":
                where = event.get("args", {})
                key = (where.get("phase", ""), where.get("op", ""))
                count, ms = ops.get(key, (0, 0.0))
                ops[key] = (count + 1, ms + event["dur"] / 1e3)
                gathers += event["name"].startswith(ALL_GATHER)
        return Step(side["active_ms"], side.get("peak_mb") or {}, ops, gathers)


def world(program: Path, arguments: tuple[str, ...]) -> Step:
    """Runs the program for a job; returns the step of the first rank."""
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise Refused(" ".join(done.stderr.split()).removeprefix("error: "))
    answer = json.loads(done.stdout)
    rank = (answer.get("ranks") or [answer])[0]
    gathers = sum(each["op"] == "all_gather" for each in answer["collectives"])
    return Step(rank["computes_ms"] + rank["moves_ms"], rank.get("peak_mb") or {}, {}, gathers)


def asked(program: Path, before: Path, flags: list[str], device: str) -> Step:
    """The changed step, from the recording before the change."""
    command = "predict" if not flags or "--world" in flags else "whatif"
    return (world if "--world" in flags else ask)(program, (command, str(before), *flags, "--device", device))


def compare(program: Path, model: Path, pair: dict, device: str) -> Row:
    """Compares one pair for one device."""
    row = Row(f"{model.name}/{pair['name']}", pair["kind"], device)
    after = pair.get("after") or model / pair["name"]
    try:
        truth = ask(program, ("predict", str(after), "--device", device))
    except Refused as error:
        row.lost = str(error)
        return row
    # PyTorch's own tools, where they ran on the changed script.
    row.theirs = {name: value / (truth.peak["total"] * 1e6) - 1 for name, value in pair.get("theirs", {}).items() if name == "memory" and value}
    row.theirs |= {name: value / truth.active - 1 for name, value in pair.get("theirs", {}).items() if name == "time" and value}
    try:
        found = asked(program, model / pair["before"], pair["flags"], device)
    except Refused as error:
        row.refused = str(error)
        return row
    if found.gathers != truth.gathers:
        # The script shards only its model, or other blocks than the repeated ones.
        row.kind += ", other blocks than the script's"
    row.active = found.active / truth.active - 1
    row.activities = found.activities - truth.activities if found.ops else 0
    total = truth.peak.get("total")
    if total:
        row.memory = found.peak.get("total", math.nan) / total - 1
        row.kinds = {kind: (found.peak.get(kind, 0.0), truth.peak.get(kind, 0.0)) for kind in KINDS}
    if found.ops:
        names = found.ops.keys() | truth.ops.keys()
        both = [(name, found.ops.get(name, (0, 0.0)), truth.ops.get(name, (0, 0.0))) for name in names]
        unlike = [each for each in both if each[1][0] != each[2][0] or abs(each[1][1] - each[2][1]) > 1e-3 * truth.active]
        row.ops = sorted(unlike, key=lambda each: -abs(each[1][1] - each[2][1]))
    return row


@dataclass
class Sums:
    """Memory of a recording by kind, in bytes: from an answer, and the range expected from the sizes of tensors."""

    recording: str
    kinds: dict

    @property
    def exact(self) -> bool:
        """Whether all kinds agree, except for the rounding of each tensor."""
        return all(low <= found <= high for found, low, high in self.kinds.values())


def sums(program: Path, model: Path, pair: dict, device: str) -> Sums | None:
    """Compares memory by kind with the sizes of tensors. At the peak, some gradients may not exist yet: their total is an upper limit."""
    try:
        step = ask(program, ("predict", str(model / pair["name"]), "--device", device))
    except Refused:
        return None
    said, known = {kind: mb * 1e6 for kind, mb in step.peak.items()}, pair["bytes"]
    if not said:
        return None
    # The size of each tensor is rounded up to 512 bytes.
    room = 512 * (known.get("tensors") or 4096)
    steps = 512 * known["steps"]
    kinds = {
        "parameters": (said.get("parameters", 0.0), known["parameters"], known["parameters"] + known["buffers"] + room),
        "gradients": (said.get("gradients", 0.0), 0, known["gradients"] + room),
        "optimizer": (said.get("optimizer", 0.0), known["states"], known["states"] + steps + 2 * room),
    }
    return Sums(f"{model.name}/{pair['name']}", kinds)


def beside(every: list[tuple[Path, dict]], folder: Path, other: Path) -> list[tuple[Path, dict]]:
    """Compares predictions of the same scripts, recorded in two ways."""
    found = []
    for model, pair in every:
        after = other / model.relative_to(folder) / pair["name"]
        if after.is_dir():
            found.append((model, {**pair, "before": pair["name"], "flags": [], "after": after, "kind": f"{pair['kind'] or 'as it is'}, elsewhere"}))
    return found


def recorded(folder: Path) -> list[tuple[Path, dict]]:
    """Recordings of a folder and of its subfolders, with their notes."""
    found = []
    for noted in sorted(folder.rglob("pairs.json")):
        found += [(noted.parent, pair) for pair in json.loads(noted.read_text()) if (noted.parent / pair["name"]).is_dir()]
    return found


def spread(values: list[float]) -> tuple[str, str, str]:
    """Mean, 95th percentile and worst of absolute values, the worst with its sign."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "-", "-", "-"
    sizes = sorted(map(abs, known))
    return f"{statistics.mean(sizes):.1%}", f"{sizes[math.ceil(0.95 * len(sizes)) - 1]:.1%}", f"{max(known, key=abs):+.1%}"


def table(rows: list[Row]) -> list[str]:
    """Lines of the table, by kind of change, and one for all."""
    head = "| change | pairs | refused | active: mean | p95 | worst | memory: mean | p95 | worst | activities unlike | MemTracker: mean | worst | RuntimeEstimator: mean | worst |"
    lines = [head, "|---" + "|--:" * (head.count("|") - 2) + "|"]
    kinds = list(dict.fromkeys(row.kind for row in rows))
    for kind in [*kinds, "all"]:
        some = [row for row in rows if row.kind == kind or kind == "all"]
        refused = sum(bool(row.refused) for row in some)
        unlike = sum(row.activities != 0 for row in some)
        theirs = [spread([row.theirs.get(what, math.nan) for row in some]) for what in ("memory", "time")]
        cells = [kind, len(some), refused, *spread([row.active for row in some]), *spread([row.memory for row in some]), unlike]
        cells += [each for what in theirs for each in (what[0], what[2])]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def shares(rows: list[Row]) -> str:
    """Shares of pairs within the accepted errors."""
    parts = []
    for name, bar, values in (("active time", WITHIN[0], [row.active for row in rows]), ("memory", WITHIN[1], [row.memory for row in rows])):
        known = [abs(value) for value in values if not math.isnan(value)]
        if known:
            parts.append(f"{name} within {bar:.0%}: {sum(value <= bar for value in known)} of {len(known)}")
    return ", ".join(parts)


def explain(row: Row) -> list[str]:
    """Differences of one pair, the worst first."""
    lines = [f"{row.pair} ({row.kind}) on {row.device}"]
    if row.lost or row.refused:
        return [*lines, f"  {'the recording after the change' if row.lost else 'refused'}: {row.lost or row.refused}"]
    lines.append(f"  active {row.active:+.1%}, memory {row.memory:+.1%}, {row.activities:+d} device activities")
    lines += [f"  {kind:12} {asked:10.3f} MB for {truth:10.3f}" for kind, (asked, truth) in row.kinds.items() if asked or truth]
    lines += [f"  {phase:10} {op:60} {a[0]:4} for {b[0]:4} activities, {a[1]:9.4f} for {b[1]:9.4f} ms" for (phase, op), a, b in row.ops[:40]]
    return lines


def main() -> None:
    """Prints the pairs that differ, the table, and the refused changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steptime", type=Path, default=ROOT / "target/release/steptime")
    parser.add_argument("--device", default="h200", help="names, set apart by commas")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--kind", help="these kinds of change alone: a pattern")
    parser.add_argument("--model", help="these models alone: a pattern")
    parser.add_argument("--explain", metavar="PAIR", help="MODEL/CHANGE: what differs, op by op")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="recordings of the same scripts, made elsewhere")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    options = parser.parse_args()
    every = [each for each in recorded(options.folder) if re.search(options.model or "", each[0].name)]
    if options.beside:
        every = beside(every, options.folder, options.beside)
    if options.explain:
        model, _, name = options.explain.rpartition("/")
        some = [each for each in every if each[1]["name"] == name and str(each[0]).endswith(model)]
        for where, pair in some:
            for device in options.device.split(","):
                print("\n".join(explain(compare(options.steptime, where, pair, device))))
        return
    some = [each for each in every if each[1]["kind"] and re.search(options.kind or "", each[1]["kind"])]
    questions = [(*each, device) for device in options.device.split(",") for each in some if (each[0] / each[1]["before"]).is_dir()]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda each: compare(options.steptime, *each), questions))
        asked_of = some if options.kind else every
        checked = list(pool.map(lambda each: sums(options.steptime, *each, options.device.split(",")[0]), asked_of))
    report(rows, [each for each in checked if each])
    if options.json:
        options.json.write_text(json.dumps([vars(row) for row in rows], indent=1, default=str) + "\n")


def report(rows: list[Row], checked: list[Sums]) -> None:
    """Prints the whole report."""
    for row in sorted((row for row in rows if not row.lost), key=lambda row: -max(abs(row.active), abs(row.memory), 0.0)):
        if row.refused:
            continue
        first = f"; {row.ops[0][0][1]} {row.ops[0][1][1]:.3f} for {row.ops[0][2][1]:.3f} ms" if row.ops else ""
        print(f"{row.pair:36} {row.device:6} active {row.active:+7.1%}  memory {row.memory:+7.1%}  activities {row.activities:+4d}{first}")
    for what, chosen in (("refused", lambda row: row.refused), ("no answer of the recording after the change", lambda row: row.lost)):
        messages = Counter((row.kind, chosen(row)) for row in rows if chosen(row))
        places = {key: [row.pair for row in rows if (row.kind, chosen(row)) == key] for key in messages}
        for (kind, message), count in messages.most_common():
            print(f"{what}, {kind}, {count}: {message} [{', '.join(dict.fromkeys(places[kind, message]))}]")
    print("\n" + "\n".join(table([row for row in rows if not row.lost])))
    print(shares(rows))
    wrong = [each for each in checked if not each.exact]
    print(f"memory by kind as arithmetic has it: {len(checked) - len(wrong)} of {len(checked)} recordings")
    for each in wrong:
        differ = ", ".join(f"{kind} {found / 1e6:.3f} MB for {low / 1e6:.3f}" for kind, (found, low, high) in each.kinds.items() if not low <= found <= high)
        print(f"  {each.recording}: {differ}")


if __name__ == "__main__":
    main()
