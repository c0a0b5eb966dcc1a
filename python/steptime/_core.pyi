"""
The native half of steptime.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from typing import SupportsFloat, SupportsIndex, final

__all__ = ["Opened", "arrow_stream", "ask", "idle_causes", "run"]

@final
class Opened:
    """
    An input that is opened once, when it is first asked about.
    """
    def __new__(cls, /, path: str | PathLike[str], step: SupportsIndex | None = None, rank: SupportsIndex | None = None) -> Opened: ...
    def open(self, /) -> tuple[str, str]:
        """
        Opens it now: its files are not read again. Two empty strings, or the kind of refusal and its words.
        """

def arrow_stream(columns: SupportsGetItem[int, tuple[str, SupportsGetItem[int, bool | SupportsIndex | SupportsFloat | str | None]]]) -> "object":
    """
    Columns of equal length, each a name and its cells, as an Arrow stream: the capsule that `__arrow_c_stream__` gives.
    A column of whole numbers and others becomes one of floats, whatever else is mixed becomes text.
    """

def ask(arguments: SupportsGetItem[int, str], opened: SupportsGetItem[int, Opened], given: str) -> tuple[str, str]:
    """
    Answers a command line: an empty string and what it would print, or the kind of refusal and its words. `given` is
    read in the place of standard input.
    """

def idle_causes() -> list[tuple[str, str]]:
    """
    Causes of device idle time: the key in an answer, and the name for people.
    """

def run(arguments: SupportsGetItem[int, str]) -> int:
    """
    Runs a command line on this terminal and gives its exit code.
    """
