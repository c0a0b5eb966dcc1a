"""
The native half of steptime.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from typing import SupportsFloat, SupportsIndex, final

__all__ = ["Opened", "arrow_stream", "ask", "capture", "idle_causes", "run"]

@final
class Opened:
    """
    An input that is opened once, at its first query.
    """
    def __new__(cls, /, path: str | PathLike[str], step: SupportsIndex | None = None, rank: SupportsIndex | None = None) -> Opened: ...
    def open(self, /) -> tuple[str, str]:
        """
        Opens it now: its files are not read again. Returns two empty strings, or the kind of refusal and its message.
        """

def arrow_stream(columns: SupportsGetItem[int, tuple[str, SupportsGetItem[int, bool | SupportsIndex | SupportsFloat | str | None]]]) -> "object":
    """
    Returns columns of equal length, each a name and its cells, as an Arrow stream: the capsule of `__arrow_c_stream__`.
    A column of whole numbers and floats becomes one of floats, any other mixture becomes text.
    """

def ask(command: str, arguments: str, opened: SupportsGetItem[int, Opened], given: str) -> tuple[str, str]:
    """
    Runs a command with arguments by name, a JSON object, and returns an empty string and its output, or the kind of refusal
    and its message. `given` is read instead of standard input.
    """

def capture(arguments: SupportsGetItem[int, str]) -> tuple[str, str]:
    """
    Runs a command line without standard input, and returns an empty string and its output, or the kind of refusal and its
    message.
    """

def idle_causes() -> list[tuple[str, str]]:
    """
    Returns the causes of device idle time: the key in an answer, and the printed name.
    """

def run(arguments: SupportsGetItem[int, str]) -> int:
    """
    Runs a command line on this terminal and returns its exit code.
    """
