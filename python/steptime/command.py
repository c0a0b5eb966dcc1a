"""The command `python -m steptime record script.py --out DIR -- arguments of the script`.

The script defines a step in one of two ways:

1. it calls `steptime.record(step, data, ...)` itself (`out` may be left out: `--out` of the command is the default), or
2. it defines `steptime_setup()`, which returns `step, data` or `step, data, {"batch": 32, "model": "name"}`; the
   dictionary holds arguments of `steptime.record`. A script with `steptime_setup` is not run as `__main__`, so code under
   `if __name__ == "__main__":` (its usual training) does not run.

Exit codes: 0 recorded, 1 the recording failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from steptime import folder, recording
from steptime.errors import MissingTorch, NothingRecorded, UsageError
from steptime.settings import Settings

OK, FAILED, USAGE = 0, 1, 2
SETUP = "steptime_setup"
PROGRAM = "python -m steptime record"
_DEFAULTS = Settings()


def main(argv: Optional[List[str]] = None) -> int:
    """Runs the command and returns its exit code."""
    if argv is None:
        argv = sys.argv[1:]
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up on SIGTERM, too
    options, arguments = parse(argv)
    try:
        recording.command = _command(options)
        run(Path(options.script), arguments)
    except (UsageError, MissingTorch, NothingRecorded) as error:
        print(f"steptime: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        print("steptime: interrupted", file=sys.stderr)
        return FAILED
    except Exception as error:  # the script's own
        if needs_gpu(error):
            print(
                f"steptime: {options.script} needs a GPU, and PyTorch sees none here ({str(error).splitlines()[0]}): move the model and the batch to "
                '"cpu" instead, add --only et, and predict the recording with --device',
                file=sys.stderr,
            )
            return FAILED
        traceback.print_exc()
        print(f"steptime: {options.script} failed: {type(error).__name__}: {error}", file=sys.stderr)
        return FAILED
    else:
        return OK
    finally:
        for made in recording.command.made:
            print(f"recorded {made}")
        recording.command = recording.Command()


def needs_gpu(error: BaseException) -> bool:
    """Whether an exception of a script says that PyTorch finds no GPU."""
    words = str(error)
    absent = ("not compiled with CUDA", "NVIDIA driver", "No CUDA GPUs", "no CUDA-capable device", "No HIP GPUs", "CUDA is not available")
    return any(each in words for each in absent)


def parse(argv: List[str]) -> Tuple[argparse.Namespace, List[str]]:
    """Options of the command, and arguments of the script: those after `--`, or positional ones after the script."""
    ours, _, theirs = _split(argv)
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Records the training step of a PyTorch script.",
        epilog=f"The script calls steptime.record(...) itself, or defines {SETUP}() returning (step, data[, arguments of record]).",
    )
    parser.add_argument("script", help="the Python script")
    parser.add_argument("arguments", nargs="*", help="its arguments; put -- before those that begin with -")
    parser.add_argument("--out", type=Path, help="the folder to make")
    parser.add_argument("--force", action="store_true", help="replace a recording that is already there")
    parser.add_argument("--only", choices=["et"], help="only the execution trace of one step, in seconds: nothing is timed")
    parser.add_argument("--windows", type=int, help=f"un-profiled windows (default {_DEFAULTS.windows})")
    parser.add_argument("--steps", type=int, help="steps in each window (default: 20 to 250, about a second)")
    parser.add_argument("--profiled", type=int, help="profiled steps (default: about a third of a second, 20 to 60)")
    parser.add_argument("--warmup", type=int, help=f"steps before anything is timed (default {_DEFAULTS.warmup})")
    parser.add_argument("--no-sync-events", dest="sync_events", action="store_const", const=False, help="no cuda_sync events in the traces")
    parser.add_argument("--no-probe", dest="probe", action="store_const", const=False, help="do not measure the host")
    options = parser.parse_intermixed_args(ours)
    return options, options.arguments + theirs


def _split(argv: List[str]) -> Tuple[List[str], List[str], List[str]]:
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at : at + 1], argv[at + 1 :]


def _command(options: argparse.Namespace) -> recording.Command:
    names = ("windows", "steps", "profiled", "warmup", "sync_events", "probe")
    settings = {name: getattr(options, name) for name in names}
    if options.out is not None:
        folder.check_free(options.out, options.force)
    return recording.Command(options.out, options.force, options.only, settings)


def run(script: Path, arguments: List[str]) -> None:
    """Runs `script`, then records the step that its `steptime_setup` returns, unless the script has recorded already."""
    source = _read(script)
    as_main = not defines_setup(source, str(script))
    saved_argv, saved_path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.absolute().parent))
    try:
        names = _execute(script, "__main__" if as_main else "__steptime__")
        setup = names.get(SETUP)
        if not recording.command.made and setup is None:
            raise UsageError(f"{script} recorded nothing: let it call steptime.record(step, data, ...), or define {SETUP}()")
        if not recording.command.made and setup is not None:
            step, data, options = _checked(setup, script)
            recording.record(step, data, **options)
    finally:
        sys.argv, sys.path[:] = saved_argv, saved_path


def _read(script: Path) -> bytes:
    try:
        return script.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the script {script}: {error.strerror}") from error


def _execute(script: Path, name: str) -> Dict[str, Any]:
    try:
        return runpy.run_path(str(script), run_name=name)
    except SystemExit as stop:
        if stop.code in (None, 0):
            return {}
        raise RuntimeError(f"it ended with exit code {stop.code}") from stop


def defines_setup(source: bytes, name: str) -> bool:
    """Whether the script defines `steptime_setup` at its top level."""
    try:
        tree = ast.parse(source, name)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{name} is not a Python script: {error}") from error
    return any(isinstance(node, ast.FunctionDef) and node.name == SETUP for node in tree.body)


def _checked(setup: Callable[[], Any], script: Path) -> Tuple[Any, Any, Dict[str, Any]]:
    """Result of `steptime_setup`. Raises UsageError if `record` cannot take it."""
    result = setup()
    if not isinstance(result, tuple) or len(result) not in (2, 3):
        raise UsageError(f"{SETUP}() in {script} must return (step, data) or (step, data, arguments), but returned {type(result).__name__}")
    step, data = result[:2]
    options = result[2] if len(result) == 3 else {}
    if not isinstance(options, dict):
        raise UsageError(f"the third thing that {SETUP}() returns must be a dictionary, but is {type(options).__name__}")
    allowed = set(inspect.signature(recording.record).parameters) - {"step", "data"}
    unknown = sorted(set(options) - allowed)
    if unknown:
        raise UsageError(f"{SETUP}() returned the unknown argument {unknown[0]!r}; known are {', '.join(sorted(allowed))}")
    return step, data, options
