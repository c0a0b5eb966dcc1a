"""The program `steptime`: the native commands, and those that need Python."""

from __future__ import annotations

import sys

# Commands written in Python: module and help text of each.
OURS = {
    "record": ("steptime.command", "Record the training step of a PyTorch script"),
    "probe": ("steptime.probe", "Measure this host"),
    "measure": ("steptime.measure.__main__", "Measure the kernels of this machine's GPU, for a device profile"),
    "query": ("steptime.querying", "Query a lake of ingested traces in SQL"),
}


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0 success, 1 failed on the input, 2 wrong usage."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in OURS:
        return _python(arguments[0], arguments[1:])
    try:
        from steptime import _core
    except ImportError as error:
        print(f"steptime: the native commands cannot be loaded ({error}); only these are available: {', '.join(OURS)}", file=sys.stderr)
        return 2
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the native half cleans up by itself
    code: int = _core.run(arguments)
    if arguments in (["--help"], ["-h"], ["help"]):
        print("\nWith Python:")
        for name, (_, words) in OURS.items():
            print(f"  {name:<12} {words}")
    return code


def _python(name: str, arguments: list[str]) -> int:
    import importlib

    sys.argv = [f"steptime {name}", *arguments]
    run = importlib.import_module(OURS[name][0]).main
    return int(run() or 0)


if __name__ == "__main__":
    sys.exit(main())
