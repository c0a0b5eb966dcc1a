"""What every answer has: all that was answered, its tables, and what speaks against it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from steptime.table import Table


class Raw:
    """An answer, or a part of one. `raw` is all of it, under the names of the command line's JSON."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: Dict[str, Any] = dict(raw)

    def table(self, name: str) -> Table:
        """A list of the answer as a table; empty where there is nothing to tell."""
        return Table(name.replace("_", " "), self.raw.get(name) or [])


class Answer(Raw):
    """A whole answer."""

    @property
    def doubts(self) -> List[str]:
        """What the answer assumes and what speaks against it, the worst first; read this first."""
        return [str(each["text"]) for each in self.raw.get("doubts", [])]

    @property
    def warnings(self) -> List[str]:
        """What was repaired, assumed or guessed; all of it is among the doubts too."""
        return [str(each) for each in self.raw.get("warnings", [])]
