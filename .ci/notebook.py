#!/usr/bin/env python3
"""Runs a notebook from its beginning: python .ci/notebook.py examples/notebook.ipynb [--write]

Runs it in a temporary folder. With --write, the output is stored in the notebook. Needs nbclient and ipykernel.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main() -> None:
    """Runs the notebook; an exception of a cell ends it."""
    path = Path(sys.argv[1])
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    if "--write" in sys.argv[2:]:
        for cell in notebook.cells:
            # Metadata of this machine is irrelevant to readers.
            cell.metadata.clear()
            if cell.cell_type == "code":
                cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
        nbformat.write(notebook, path)
    print(f"{path}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells ran")


if __name__ == "__main__":
    main()
