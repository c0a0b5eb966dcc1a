"""Queries of the native half: a command and its arguments by name. Its answers are those of the command line, to the digit."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Union

from steptime import errors

if TYPE_CHECKING:
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
# Names of the inputs of commands that have others than `input`.
_INPUTS = {"compare": ("a", "b"), "scale": ("model",), "shard": ("model",)}


def core() -> Any:
    """The native half, loaded when it is first needed."""
    try:
        from steptime import _core
    except ImportError as error:
        raise errors.MissingCore(f"the native half of steptime cannot be loaded ({error}): {REMEDY}") from error
    return _core


def text(command: str, arguments: Mapping[str, Value], inputs: Sequence["Input"] = (), given: str = "") -> str:
    """Returns the output of a command. Inputs that are open are not opened again; `given` is its standard input."""
    kind, words = core().ask(command, _json(arguments), [each.opened for each in inputs], given)
    if kind:
        raise _KINDS[kind](words)
    return str(words)


def answer(command: str, arguments: Mapping[str, Value], inputs: Sequence["Input"] = ()) -> Dict[str, Any]:
    """Returns the JSON answer of a command as a dictionary."""
    found: Dict[str, Any] = json.loads(text(command, {**arguments, "json": True}, inputs))
    return found


def _json(arguments: Mapping[str, Value]) -> str:
    """Returns arguments as a JSON object."""
    return json.dumps({name: _plain(name, value) for name, value in arguments.items()})


def _plain(name: str, value: Any) -> Any:
    """Returns a value as plain data: a path as text, a number of another library as one of Python."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(name, each) for each in value]
    if isinstance(value, (str, os.PathLike)):
        return _utf8(os.fspath(value))
    if hasattr(value, "__index__"):
        return value.__index__()
    if hasattr(value, "__float__"):
        if not math.isfinite(value):
            raise errors.UsageError(f"{name}={value}: must be a finite number")
        return float(value)
    raise errors.UsageError(f"{name}={value!r}: must be text, a number, a path, or a list of these")


def _utf8(words: Union[str, bytes]) -> str:
    """Returns a text or path unchanged. Raises UsageError if it is not UTF-8."""
    try:
        found = os.fsdecode(words)
        found.encode("utf-8")
    except UnicodeEncodeError:
        raise errors.UsageError(f"{words!r} is not UTF-8: use a path that is, for example a link") from None
    return found


class Input:
    """A recording, a trace, an execution trace or a model description; opened on first use and kept open."""

    def __init__(self, path: PathLike, step: Optional[int] = None, rank: Optional[int] = None) -> None:
        self.path = Path(path)
        self.part: Dict[str, Value] = {"step": step, "rank": rank}
        for name, value in self.part.items():
            if value is not None and (not isinstance(value, int) or not 0 <= value <= _MOST):
                raise errors.UsageError(f"{name}={value!r}: must be the number of a {name}, from 0 to {_MOST}")
        _utf8(os.fspath(path))
        self.opened: "_core.Opened" = core().Opened(self.path, step, rank)

    def open(self) -> None:
        """Reads the whole input now, so that its files are no longer needed."""
        kind, words = self.opened.open()
        if kind:
            raise _KINDS[kind](words)

    def answer(self, command: str, arguments: Mapping[str, Value], *others: "Input") -> Dict[str, Any]:
        """Returns the answer of a command about this input and about `others`."""
        return answer(command, self._arguments(command, arguments, others), [self, *others])

    def text(self, command: str, arguments: Mapping[str, Value], *others: "Input") -> str:
        """Returns the output of a command about this input and about `others`."""
        return text(command, self._arguments(command, arguments, others), [self, *others])

    def _arguments(self, command: str, arguments: Mapping[str, Value], others: Sequence["Input"]) -> Dict[str, Value]:
        inputs = zip(_INPUTS.get(command, ("input",)), (self, *others))
        return {**{name: each.path for name, each in inputs}, **arguments, **{name: value for name, value in self.part.items() if value is not None}}
