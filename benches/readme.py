"""Runs the commands that README.md and the book show with their output, and reports differences of the output.

    cargo build --release -p steptime-cli
    python benches/readme.py            # reports differences
    python benches/readme.py --write    # writes the current output into the pages

A block is a line `    $ COMMAND` and the indented lines after it. A last line `    ...` marks that the output continues; then
only the lines above it are compared. Long lines are cut. The commands of a page run in order, in an empty folder that contains
`examples`, so a command may read the output of an earlier one. Commands whose output depends on the machine, that need
a GPU, or that read the reader's own recording are skipped.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/src").glob("**/*.md"))]
WIDTH = 112
LEFT_ALONE = re.compile(r"(cargo (test|install)|pip|python|steptime-bench|steptime-train|steptime device fit) |cargo test$|.*\brecordings/")


def blocks(lines: list) -> list:
    """Begin and end of each command's output, and the command."""
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


def printed(command: str, program: Path, folder: Path) -> list:
    """Output of a command, as shown on a page."""
    line = re.sub(r"\bsteptime (?=[a-z])", f"{program} ", command)
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.strip()}")
    lines = [line.rstrip() for line in done.stdout.rstrip().split("\n")]
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    return [f"    {line}" if line else "" for line in cut]


def renewed(lines: list, program: Path) -> tuple:
    """Lines of a page with current output, and number of blocks that differ."""
    now, done, differ = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        for first, end, command in blocks(lines):
            if LEFT_ALONE.match(command):
                continue
            shown, output = lines[first:end], printed(command, program, Path(folder))
            if shown and shown[-1] == "    ...":
                output = [*output[: len(shown) - 1], "    ..."]
            if shown != output:
                differ += 1
                print(f"$ {command}", *difflib.unified_diff(shown, output, lineterm="", n=0), sep="\n")
            now += lines[done:first] + output
            done = end
    return now + lines[done:], differ


def main() -> None:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put what is printed now into the pages")
    parser.add_argument("--steptime", type=Path, default=target / "release" / "steptime", help="the program (default: %(default)s)")
    arguments = parser.parse_args()
    differ = 0
    for page in PAGES:
        now, found = renewed(page.read_text().split("\n"), arguments.steptime.resolve())
        differ += found
        if found:
            print(f"^ {page.relative_to(ROOT)}", file=sys.stderr)
        if found and arguments.write:
            page.write_text("\n".join(now))
    print(f"{differ} blocks differ" + (", written" if arguments.write else ""), file=sys.stderr)
    sys.exit(1 if differ and not arguments.write else 0)


if __name__ == "__main__":
    main()
