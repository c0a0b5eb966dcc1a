"""The command `python -m steptime.measure --out sweep.parquet`: times kernels of every family on this machine's GPU.

A second run with the same `--out` continues the file. Exit codes: 0 measured, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import List, Optional

from steptime.measure import families, sheet
from steptime.errors import UsageError

OK, FAILED, USAGE = 0, 1, 2


def main(argv: Optional[List[str]] = None) -> int:
    """Runs the command and returns its exit code."""
    if argv is None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # writes the rows so far on SIGTERM, too
    options = parse(argv)
    try:
        return run(options)
    except UsageError as error:
        print(f"steptime: {error}", file=sys.stderr)
        return USAGE
    except Exception as error:
        from steptime.measure.runner import DeviceFailed

        if not isinstance(error, DeviceFailed):
            raise
        print(f"steptime: the GPU failed; run the command again to continue after these cases: {error}", file=sys.stderr)
        return FAILED


def parse(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m steptime.measure", description="Times kernels on this machine's GPU, into one file.")
    parser.add_argument("--out", type=Path, help="the Parquet file to make, or to continue")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to measure (default 10)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (default 0)")
    parser.add_argument("--families", help=f"comma-separated families, by default all: {','.join(families.NAMES)}")
    parser.add_argument("--device", default="cuda:0", help="the GPU (default cuda:0)")
    parser.add_argument("--cases", type=int, help="stop after this many cases")
    parser.add_argument("--list", action="store_true", help="print the families, and with --cases the cases, and measure nothing")
    parser.add_argument("--convert", type=Path, metavar="ROWS.jsonl.gz", help="make --out from rows that were written without pyarrow")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> int:
    names = _names(options.families)
    if options.list:
        _list(families.load(names), options.seed, options.cases)
        return OK
    if options.out is None:
        raise UsageError("--out FILE is required")
    if options.convert is not None:
        if sheet.arrow() is None:
            raise UsageError("--convert needs pyarrow: pip install 'steptime[measure]'")
        print(f"{sheet.convert(options.convert, options.out)} rows in {options.out}")
        return OK
    torch = _torch(options.device)
    from steptime.measure.sweep import Options, Sweep

    settings = Options(options.out, options.minutes, options.seed, options.device, options.cases)
    Sweep(torch, settings, families.load(names)).run()
    return OK


def _names(text: Optional[str]) -> Optional[List[str]]:
    names = [families.RENAMED.get(each.strip(), each.strip()) for each in text.split(",")] if text else None
    for each in names or []:
        if each not in families.NAMES:
            raise UsageError(f"there is no family {each!r}; there are {', '.join(families.NAMES)}")
        lacking = families.missing(each)
        if lacking:
            raise UsageError(f"the family {each} needs {lacking}")
    return names


def _torch(device: str):
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # some shapes provoke warnings on purpose
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"measuring needs PyTorch ({error}): pip install torch") from error
    if device != "cpu":
        if not torch.cuda.is_available():
            raise UsageError("PyTorch sees no GPU here")
        torch.cuda.set_device(device)
    return torch


def _list(chosen: list, seed: int, count: Optional[int]) -> None:
    from steptime.measure.case import generate, interleave

    if count is None:
        for each in chosen:
            print(f"{each.name}: weight {each.weight:g}")
        return
    for family, index in itertools.islice(interleave(chosen, {}), count):
        case = generate(family, seed, index)
        if case is not None:
            print(f"{case.number} {family.name}: {case.what}; about {case.estimate * 1e6:.1f} us, {case.bytes / 1e6:.3g} MB")


if __name__ == "__main__":
    sys.exit(main())
