"""`python -m steptime record script.py --out DIR -- arguments of the script`."""

from __future__ import annotations

import sys

from steptime import command

_USAGE = "usage: python -m steptime record script.py --out DIR -- arguments of the script"


def main(argv: list[str]) -> int:
    """Runs the command that `argv` begins with and returns its exit code."""
    if argv[:1] == ["record"]:
        sys.argv = [f"{command.PROGRAM}", *argv[1:]]
        return command.main()
    if argv[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return command.OK
    asked = f"there is no command {argv[0]!r}" if argv else "no command was given"
    print(f"steptime: {asked}\n{_USAGE}", file=sys.stderr)
    return command.USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
