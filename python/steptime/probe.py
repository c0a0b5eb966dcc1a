"""The command `python -m steptime.probe -o my-host.toml`: measures this host, for `steptime predict --host my-host.toml`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from steptime.errors import MissingTorch
from steptime.profiling import TorchProfiler


def to_toml(found: Dict[str, Any], machine: Dict[str, str]) -> str:
    """The probe as the text of a file for `steptime predict --host`."""
    lines = [
        "# Host probe of steptime: what this host takes for the pieces of training steps, in us.",
        f"probe_version = {found['version']}",
        *(f"{name} = {json.dumps(value)}" for name, value in machine.items()),
    ]
    for phase in ("before", "under", "after", "copies"):
        if phase in found:
            lines += ["", f"[{phase}]", *(f"{name} = {json.dumps(value)}" for name, value in found[phase].items())]
    for name, counts in found.get("events", {}).items():
        lines += ["", f"[events.{name}]", *(f"{kind} = {count}" for kind, count in counts.items())]
    return "\n".join(lines) + "\n"


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command and returns its exit code: 0 measured, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m steptime.probe", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="HOST.toml", help="the file to write")
    asked = parser.parse_args(arguments)
    try:
        backend = TorchProfiler()
    except MissingTorch as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not backend.torch.cuda.is_available():
        print("error: no GPU is visible to PyTorch here: run this on the machine to measure", file=sys.stderr)
        return 1
    backend.torch.cuda.init()
    begin = time.perf_counter()
    host = backend.probe()
    for phase in (host.before, host.under, host.after):
        phase()
    try:
        asked.out.write_text(to_toml(host.as_dict(), backend.machine()), encoding="utf-8")
    except OSError as error:
        print(f"error: cannot write {asked.out}: {error}", file=sys.stderr)
        return 1
    print(f"measured this host in {time.perf_counter() - begin:.1f} s: {asked.out}")
    print(f"next: steptime predict RECORDING/et.json.gz --device h200 --host {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
