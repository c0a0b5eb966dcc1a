"""Calls of the native half with the arguments of the command line: both give the same answers, to the digit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from steptime import errors

if TYPE_CHECKING:
    import os

    from steptime import _core

PathLike = Union[str, "os.PathLike[str]"]
Value = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Any]]
REMEDY = "install the wheel (pip install steptime), or build it: pip install ./python in the repository, with Rust 1.95"
_MOST = 2**32 - 1
_KINDS = {
    "usage": errors.UsageError,
    "not found": errors.NotFound,
    "not applicable": errors.NotApplicable,
    "input": errors.InputError,
}


def core() -> Any:
    """The native half, loaded when it is first needed."""
    try:
        from steptime import _core
    except ImportError as error:
        raise errors.MissingCore(f"the native half of steptime cannot be loaded ({error}): {REMEDY}") from error
    return _core


def text(command: Sequence[str], options: Mapping[str, Value], inputs: Sequence["Input"] = (), given: str = "") -> str:
    """Returns the output of a command. Inputs that are open are not opened again; `given` is its standard input."""
    arguments = [_typed(each) for each in (*command, *flags(options))]
    kind, words = core().ask(arguments, [each.opened for each in inputs], given)
    if kind:
        raise _refused(kind, words)
    return str(words)


def _typed(argument: str) -> str:
    """Returns the argument unchanged. Raises UsageError for a path that is not UTF-8."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        raise errors.UsageError(f"{argument!r} is not UTF-8: use a path that is, for example a link") from None
    return argument


def _refused(kind: str, words: str) -> errors.Error:
    """The exception for an error of the native half, with option names such as `--step N` rewritten as arguments such as `step=N`."""
    if kind == "usage":
        words = re.sub(r"'--([a-z-]+)(?: <[^>]*>)?(?:=<[^>]*>)?'", lambda found: found[1].replace("-", "_"), words)
        words = re.sub(r"--(step|rank) N\b", r"\1=N", words)
    return _KINDS[kind](words)


def answer(command: Sequence[str], options: Mapping[str, Value], inputs: Sequence["Input"] = ()) -> Dict[str, Any]:
    """Returns the JSON answer of a command as a dictionary."""
    found: Dict[str, Any] = json.loads(text(command, {**options, "json": True}, inputs))
    return found


def flags(options: Mapping[str, Value]) -> List[str]:
    """Options as command-line flags: `host_speed=0.5` becomes `--host-speed=0.5`; None and False are left out."""
    typed: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            typed.append(flag)
        elif isinstance(value, (list, tuple)):
            typed.extend(f"{flag}={each}" for each in value)
        else:
            typed.append(f"{flag}={value}")
    return typed


class Input:
    """A recording, a trace, an execution trace or a model description; opened on first use and kept open."""

    def __init__(self, path: PathLike, step: Optional[int] = None, rank: Optional[int] = None) -> None:
        self.path = Path(path)
        self.part: Dict[str, Value] = {"step": step, "rank": rank}
        for name, value in self.part.items():
            if value is not None and (not isinstance(value, int) or not 0 <= value <= _MOST):
                raise errors.UsageError(f"{name}={value!r}: must be the number of a {name}, from 0 to {_MOST}")
        _typed(str(path))
        self.opened: "_core.Opened" = core().Opened(self.path, step, rank)

    def open(self) -> None:
        """Reads the whole input now, so that its files are no longer needed."""
        kind, words = self.opened.open()
        if kind:
            raise _refused(kind, words)

    def answer(self, command: str, options: Mapping[str, Value], *others: "Input") -> Dict[str, Any]:
        """Returns the answer of a command about this input and about `others`."""
        return answer([command, *self._paths(others)], {**options, **self.part}, [self, *others])

    def text(self, command: str, options: Mapping[str, Value], *others: "Input") -> str:
        """Returns the output of a command about this input and about `others`."""
        return text([command, *self._paths(others)], {**options, **self.part}, [self, *others])

    def _paths(self, others: Sequence["Input"]) -> List[str]:
        return [_argument(each.path) for each in (self, *others)]


def _argument(path: Path) -> str:
    """The path as an argument; prefixed with `./` if it begins with `-`."""
    words = str(path)
    return f"./{words}" if words.startswith("-") else words
