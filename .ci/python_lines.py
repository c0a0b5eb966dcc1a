#!/usr/bin/env python3
"""Runs the Python blocks of a page: python .ci/python_lines.py README.md docs/src/python.md

The blocks of a page run in order in one namespace, in a temporary folder. Needs steptime and the imports of the page.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Marks a block, in the line above it, that is not run.
NOT_RUN = "<!-- not run -->\n"


def run(page: Path) -> None:
    """Runs the blocks of a page; an exception ends the program."""
    text = page.read_text(encoding="utf-8")
    names: dict = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        if text[: block.start()].endswith(NOT_RUN):
            continue
        line = text[: block.start(1)].count("\n")
        began = time.perf_counter()
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
        print(f"{page.name}:{line + 1}: ran in {time.perf_counter() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    pages = [Path(page).absolute() for page in sys.argv[1:]]
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run(page)
            os.chdir("/")
