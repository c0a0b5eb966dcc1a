"""Makes the tables on the accuracy of steptime in README.md and the book from recordings.

    cargo build --release -p steptime-cli
    python benches/tables.py ../shared/traces/h200 --away ../shared/traces/h200_b            # prints them
    python benches/tables.py ../shared/traces/h200 --away ../shared/traces/h200_b --check    # reports differences
    python benches/tables.py ../shared/traces/h200 --away ../shared/traces/h200_b --write    # writes them into the files

Home recordings are of the host and the days of the shipped profiles; those of `--away` are of others. A table is in a
file after a line `<!-- table: NAME -->`; with --write it replaces the lines up to an empty one.
Each number is from `steptime validate ... --json` or `steptime device show ... --json`: no number is stored here.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/src").glob("**/*.md"))]
# Families with less than this share of the device time of every recording are left out.
LEAST_SHARE = 0.01
# Number of recordings in the table of the worst.
WORST = 3


def percent(value) -> str:
    """A fraction as text, in percent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def table(heads: list, rows: list) -> str:
    """A table in Markdown; the first column is left-aligned, the others right-aligned."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


class Steptime:
    """The program, with cached answers: each command runs once."""

    def __init__(self, program: Path, home: str, away: str):
        self.program, self.home, self.away, self.known = program, home, away, {}

    def json(self, *arguments: str) -> dict:
        """JSON answer of a command."""
        if arguments not in self.known:
            done = subprocess.run([self.program, *arguments, "--json"], cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"steptime {' '.join(arguments)}: {done.stderr.strip()}")
            self.known[arguments] = json.loads(done.stdout)
        return self.known[arguments]

    def validate(self, *arguments: str, at: str = "") -> dict:
        """A validation of the home recordings, or of those at `at`."""
        return self.json("validate", at or self.home, *arguments)


def scored(name: str, answer: dict, of: str = "simulate") -> list:
    """A row of a method's errors, and of the share of measurements within its interval."""
    score, rows = answer["summary"][of], answer["rows"]
    inside = f"{sum(row['inside'] for row in rows)} of {len(rows)}" if of == "simulate" else ""
    return [name, *(percent(score[key]) for key in ("gmae", "mean", "p90", "max")), inside]


HEADS = ["GMAE", "mean", "p90", "max", "interval holds"]


def steps(run: Steptime) -> str:
    """Step times with measured kernels."""
    own = run.validate("--host", "own")
    rows = [
        scored("**simulate**, own host times", own),
        scored("**simulate**, leave-one-out", run.validate("--host", "leave-one-out")),
        scored("paper", own, "paper"),
        scored("paper (2 and 4 us)", own, "paper_published"),
        scored("kernel-sum", own, "kernel_sum"),
    ]
    if run.away:
        away = run.validate("--host", "own", at=run.away)
        rows.append(scored("another host: **simulate**, own host times", away))
        rows.append(scored("another host: **simulate**, default host profile", run.validate("--host", "default", at=run.away)))
        rows.append(scored("another host: paper", away, "paper"))
    return table(["method", *HEADS], rows)


def summary(run: Steptime) -> str:
    """Errors of the step time in five rows, for the front page."""
    h200 = ("--kernels", "h200")
    asked = [
        ("recording, kernels measured", run.validate("--host", "own")),
        ("recording, kernels predicted", run.validate(*h200, "--host", "own")),
    ]
    if run.away:
        lone = (*h200, "--host", "default", "--lone")
        asked.append(("recording of other models, another host, kernels measured", run.validate("--host", "own", at=run.away)))
        asked.append(("execution trace of these models, nothing measured", run.validate(*lone, at=run.away)))
    lone = (*h200, "--host", "leave-one-out", "--lone")
    asked.append(("execution trace, architecture new to the host profile", run.validate(*lone)))
    rows = []
    for name, answer in asked:
        _, _, mean, _, most, inside = scored(name, answer)
        rows.append([name, str(len(answer["rows"])), mean, most, inside])
    return table(["predicted from", "steps", "mean error", "worst", "in the interval"], rows)


def worst(run: Steptime) -> str:
    """The recordings with the largest errors, with their own host times."""
    rows = sorted(run.validate("--host", "own")["rows"], key=lambda row: -abs(row["error"]))[:WORST]
    return table(["recording", "error"], [[f"`{row['name']}`", f"{100 * row['error']:+.1f} %"] for row in rows])


def kernels(run: Steptime) -> str:
    """Active time and steps, with predicted kernels."""
    own = run.validate("--kernels", "h200", "--host", "own")
    out = run.validate("--kernels", "h200", "--host", "leave-one-out")
    lone = run.validate("--kernels", "h200", "--host", "leave-one-out", "--lone")
    rows = [
        scored("GPU active time", own, "active"),
        scored("step time, own host times", own),
        scored("step time, leave-one-out host times", out),
        scored("step time from the execution trace alone, leave-one-out host times", lone),
    ]
    if run.away:
        away = run.validate("--kernels", "h200", "--host", "own", at=run.away)
        lone = run.validate("--kernels", "h200", "--host", "default", "--lone", at=run.away)
        rows.append(scored("another host: GPU active time", away, "active"))
        rows.append(scored("another host: step time, own host times", away))
        rows.append(scored("another host: step time from the execution trace alone, default host profile", lone))
    return table(["", *HEADS], rows)


def families(run: Steptime) -> str:
    """Errors per op, by family."""
    rows = []
    for row in run.validate("--kernels", "h200", "--host", "own")["families"]:
        if row["max_share"] >= LEAST_SHARE:
            shares = [percent(row[key]) for key in ("max_share", "gmae", "mean", "std", "time_weighted", "inside")]
            rows.append([row["family"], f"{row['count']:,}", *shares])
    return table(["family", "ops", "at most", "GMAE", "mean", "std", "by time", "inside"], rows)


def models(run: Steptime) -> str:
    """Active time by kind of kernel model."""
    rows = []
    for name in ("best", "learnt", "analytic", "paper"):
        score = run.validate("--kernels", "h200", "--host", "own", "--models", name)["summary"]["active"]
        rows.append([name, *(percent(score[key]) for key in ("gmae", "mean", "max"))])
    return table(["model", "active time: GMAE", "mean", "max"], rows)


def held_out(run: Steptime) -> str:
    """Rows of sweeps that were held out of the fit."""
    rows = []
    for row in run.json("device", "show", "h200")["families"]:
        shares = [percent(row[key]) for key in ("gmae", "mean", "p90", "inside", "half_width")]
        rows.append([row["family"], f"{row['rows']:,}", row["model"], *shares])
    heads = ["family", "rows", "model", "GMAE", "mean", "p90", "inside the 90 % interval", "median half-width"]
    return table(heads, rows)


TABLES = {
    "summary": summary,
    "steps": steps,
    "worst": worst,
    "kernels": kernels,
    "families": families,
    "models": models,
    "held-out": held_out,
}


def place(made: dict, write: bool) -> int:
    """Writes or reports tables that differ from the pages; returns the number of pages that differ."""
    differ = 0
    for path in PAGES:
        before = after = path.read_text()
        for key, text in made.items():
            here = re.compile(rf"(<!-- table: {key} -->\n)(?:\|[^\n]*\n)*")
            after = here.sub(lambda found: found.group(1) + text + "\n", after)
        if after != before:
            differ += 1
            print(f"{'wrote' if write else 'differs:'} {path.relative_to(ROOT)}", file=sys.stderr)
            if write:
                path.write_text(after)
    return differ


def main() -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, help="a folder of recordings")
    parser.add_argument("--away", type=Path, help="a folder of recordings of another host")
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES), help="these tables alone")
    parser.add_argument("--write", action="store_true", help="put them into README.md and docs/src")
    parser.add_argument("--check", action="store_true", help="say which pages hold others; exit code 1 where there are any")
    parser.add_argument("--steptime", type=Path, default=target / "release" / "steptime", help="the program (default: %(default)s)")
    arguments = parser.parse_args()
    away = str(arguments.away.resolve()) if arguments.away else ""
    run = Steptime(arguments.steptime.resolve(), str(arguments.recordings.resolve()), away)
    made = {name: TABLES[name](run) for name in arguments.only}
    if arguments.write or arguments.check:
        differ = place(made, arguments.write)
        sys.exit(1 if differ and not arguments.write else 0)
    else:
        print("\n\n".join(f"<!-- table: {name} -->\n{text}" for name, text in made.items()))


if __name__ == "__main__":
    main()
