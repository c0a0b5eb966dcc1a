"""The command `python -m steptime.measure.steps --out DIR`: records training steps of random models.

A second run with the same folder and seed continues where the first stopped. Exit codes: 0 recorded, 1 nothing was
recorded, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import List, Optional

OK, FAILED, USAGE = 0, 1, 2


def main(argv: Optional[List[str]] = None) -> int:
    """Runs the command and returns its exit code."""
    if argv is None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # no incomplete folder remains after SIGTERM
    options = parse(argv)
    try:
        import torch
    except ImportError as error:
        print(f"steptime: recording needs PyTorch ({error}): pip install torch", file=sys.stderr)
        return USAGE
    if options.device != "cpu":
        if not torch.cuda.is_available():
            print("steptime: PyTorch sees no GPU here", file=sys.stderr)
            return USAGE
        torch.cuda.set_device(options.device)
    from steptime.measure.steps.plan import Limits
    from steptime.measure.steps.session import Options, run

    done = run(Options(options.out, options.minutes, options.seed, options.device, options.models), Limits())
    print(", ".join(f"{count} {what}" for what, count in sorted(done.items())) or "nothing to do")
    return OK if done["recorded"] or not done else FAILED


def parse(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m steptime.measure.steps", description="Records training steps of random models.")
    parser.add_argument("--out", type=Path, required=True, help="the folder that the recordings go into, one folder each")
    parser.add_argument("--minutes", type=float, default=6.0, help="how long to record (default 6)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other models (default 0)")
    parser.add_argument("--device", default="cuda:0", help="the GPU (default cuda:0)")
    parser.add_argument("--models", type=int, help="stop after this many models")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
