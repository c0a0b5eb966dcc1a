"""Records models before and after changes of their scripts, without a GPU.

    PYTHONPATH=python:python/workloads python -m pairs FOLDER [--on cpu|meta|fake] [--jobs 2] [MODEL...]

Each model gets a folder with a recording for each change and `pairs.json`, which has the flags with which `benches/pairs.py` requests
the change. Existing recordings are kept, so that an interrupted run continues, and several runs may share a folder.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import fnmatch
import importlib
import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, List

import torch

from . import MAKERS
from .changes import Pair, pairs
from .script import built

SECONDS = 40
"""The most processor time that one recording may take."""


def record(name: str, out: Path, on: str, only: List[str]) -> None:
    """Makes the recordings of one model that are missing."""
    import steptime

    maker = MAKERS[name]
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        with torch.device("meta"):
            case = maker.make()
        changes = pairs(name, maker, case)
        noted: Dict[str, Dict[str, Any]] = {}
        if (out / "pairs.json").exists():
            known = {pair.name for pair in changes}
            noted = {each["name"]: each for each in json.loads((out / "pairs.json").read_text()) if each["name"] in known}
        for pair in changes:
            row = {"name": pair.name, "kind": pair.kind, "before": pair.before, "flags": list(pair.flags)}
            kept = noted.get(pair.name, {})
            if only and not any(fnmatch.fnmatch(pair.name, each) for each in only):
                continue
            if not (out / pair.name).exists() and "error" not in kept:
                row.update(_one(name, pair, out / pair.name, on, steptime.record))
            else:
                row.update({key: kept[key] for key in ("error", "bytes", "theirs") if key in kept})
            noted[pair.name] = row
            (out / "pairs.json").write_text(json.dumps(list(noted.values()), indent=1) + "\n")


def _one(name: str, pair: Pair, out: Path, on: str, make: Any) -> Dict[str, Any]:
    """Makes a recording; returns the bytes of parameters and states, or the error of the script."""
    device = "meta" if on == "meta" else "cpu"
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        if on == "meta" and pair.switches.dtype:
            raise RuntimeError("autocast knows no tensors on meta")
        with _fake() if on == "fake" else contextlib.nullcontext():
            step, data, model, optimizer = built(MAKERS[name], pair.switches, device)
            with torch.device(device):
                batches = data()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                make(step, batches, out=out, batch=pair.switches.batch, model=f"{name}_{pair.name}", only="et")
            return {"bytes": _bytes(model, optimizer)}
    except Exception as error:  # one script that cannot run does not end the others
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def beside(name: str, out: Path, _: str, only: List[str]) -> None:
    """Notes the results of PyTorch's own tools for the recorded scripts, with fake tensors."""
    from .theirs import measured

    with torch.device("meta"):
        case = MAKERS[name].make()
    noted = json.loads((out / "pairs.json").read_text())
    all_pairs = {pair.name: pair for pair in pairs(name, MAKERS[name], case)}
    for row in noted:
        pair = all_pairs[row["name"]]
        wanted = not only or any(fnmatch.fnmatch(pair.name, each) for each in only)
        if not wanted or "theirs" in row or "error" in row or pair.switches.parallel:
            continue
        with _fake():
            step, data, model, optimizer = built(MAKERS[name], pair.switches, "cpu")
            row["theirs"] = measured(step, data(), model, optimizer)
        (out / "pairs.json").write_text(json.dumps(noted, indent=1) + "\n")


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def _fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def _bytes(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Dict[str, int]:
    """Expected memory of parameters and states, from the sizes of tensors."""
    states = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]

    def of(tensors: Any) -> int:
        # Of sharded tensors, this rank's part; of sparse ones, values and indices.
        here = (each.to_local() if hasattr(each, "to_local") else each for each in tensors)
        parts = (part for each in here for part in ((each._indices(), each._values()) if each.is_sparse else (each,)))
        return sum(part.numel() * part.element_size() for part in parts)

    return {
        "parameters": of(model.parameters()),
        "buffers": of(model.buffers()),
        "gradients": of(each.grad for each in model.parameters() if each.grad is not None),
        "states": of(each for each in states if each.dim()),
        "steps": sum(not each.dim() for each in states),
    }


def main() -> None:
    """Records all models with `--jobs` processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", help=", ".join(MAKERS))
    parser.add_argument("--on", choices=["cpu", "meta", "fake"], default="cpu", help="the tensors' place")
    parser.add_argument("--only", action="append", default=[], metavar="CHANGE", help="these recordings alone: patterns")
    parser.add_argument("--theirs", action="store_true", help="PyTorch's own tools in place of our recorder, noted beside what is there")
    parser.add_argument("--cases", metavar="MODULE", help="the models of this module in their place")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    if options.cases:
        MAKERS.clear()
        importlib.import_module(options.cases)
    models = options.models or list(MAKERS)
    if options.one:
        for name in models:
            (beside if options.theirs else record)(name, options.folder / name, options.on, options.only)
            print(name, "done", flush=True)
        return
    # Each process begins at another model, and skips recordings that another one is making.
    parts = [models[at * len(models) // options.jobs :] + models[: at * len(models) // options.jobs] for at in range(options.jobs)]
    more = [each for change in options.only for each in ("--only", change)]
    more += ["--theirs"] if options.theirs else []
    more += ["--cases", options.cases] if options.cases else []
    commands = [[sys.executable, "-m", "pairs", str(options.folder), *part, "--on", options.on, "--one", *more] for part in parts]
    for process in [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]:
        process.wait()


if __name__ == "__main__":
    main()
