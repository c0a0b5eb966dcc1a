"""Runs the commands that README.md shows with their output, and says where the output is another one now.

    cargo build --release -p steptime-cli
    python benches/readme.py            # says what differs
    python benches/readme.py --write    # puts what is printed now into README.md

A block is a line `    $ COMMAND` and the indented lines after it. `roofline` and `tiling` are shown from their beginning, as
many lines as README.md has; long lines are cut. What depends on the machine, `bench` and `cargo test`, is left alone.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 112
PREFIX = ("roofline", "tiling")
LEFT_ALONE = ("cargo test", "steptime bench", "pip ")


def blocks(lines: list) -> list:
    """Where each command's output begins and ends, and the command."""
    found, at = [], 0
    while at < len(lines):
        command = re.match(r"    \$ (.+)", lines[at])
        at += 1
        if not command:
            continue
        first = at
        while at < len(lines) and not lines[at].startswith("    $ ") and (lines[at].startswith("    ") or not lines[at]):
            at += 1
        end = at
        while end > first and not lines[end - 1]:
            end -= 1
        found.append((first, end, command.group(1)))
    return found


def printed(command: str, program: Path, shown: int) -> list:
    """What a command prints, as README.md shows it."""
    line = re.sub(r"cargo run --release -- |\bsteptime (?=[a-z])", f"{program} ", command)
    done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.strip()}")
    lines = [line.rstrip() for line in done.stdout.rstrip().split("\n")]
    if any(f"steptime {word}" in command for word in PREFIX):
        lines = lines[:shown] if shown < len(lines) else lines
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    return [f"    {line}" if line else "" for line in cut]


def main() -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put what is printed now into README.md")
    parser.add_argument("--steptime", type=Path, default=target / "release" / "steptime", help="the program (default: %(default)s)")
    arguments = parser.parse_args()
    path = ROOT / "README.md"
    lines = path.read_text().split("\n")
    differ = 0
    for first, end, command in reversed(blocks(lines)):
        if command.startswith(LEFT_ALONE):
            continue
        now = printed(command, arguments.steptime.resolve(), end - first)
        if now != lines[first:end]:
            differ += 1
            print(f"$ {command}", *difflib.unified_diff(lines[first:end], now, lineterm="", n=0), sep="\n")
            lines[first:end] = now
    if arguments.write:
        path.write_text("\n".join(lines))
    print(f"{differ} blocks differ" + (", written" if arguments.write else ""), file=sys.stderr)
    sys.exit(1 if differ and not arguments.write else 0)


if __name__ == "__main__":
    main()
