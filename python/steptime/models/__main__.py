"""The command `python -m steptime.models MODEL.toml --checkpoint FOLDER`: loads a checkpoint of `steptime-train` into a PyTorch module."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import List, Optional

from steptime.errors import Error
from steptime.models.building import build
from steptime.models.loading import load


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command and returns its exit code: 0 loaded, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m steptime.models", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, metavar="MODEL.toml", help="the description of the model")
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="FOLDER", help="a checkpoint, or the folder of a run, whose last one is loaded")
    parser.add_argument("-o", "--out", type=Path, metavar="STATE.pt", help="file for the module's state_dict")
    asked = parser.parse_args(arguments)
    try:
        module = build(asked.model)
        from steptime.models.shards import Checkpoint

        opened = Checkpoint(asked.checkpoint)
        load(module, opened)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sizes = [parameter.numel() * parameter.element_size() for parameter in module.parameters()]
    print(f"{opened.folder}: step {opened.step}, epoch {opened.epoch}")
    print(f"loaded {len(sizes)} tensors, {sum(sizes)} bytes, into {asked.model}")
    left = len(opened.tensors) - len(sizes)
    if left:
        print(f"left out {left} optimizer states, {opened.bytes - sum(sizes)} bytes")
    if asked.out is not None:
        import torch

        try:
            torch.save(module.state_dict(), asked.out)
        except (OSError, RuntimeError) as error:
            print(f"error: cannot write {asked.out}: {error}", file=sys.stderr)
            return 1
        print(f"wrote {asked.out}: module.load_state_dict(torch.load({str(asked.out)!r}))")
    return 0


if __name__ == "__main__":
    sys.exit(main())
