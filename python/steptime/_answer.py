"""Base classes of all answers: the raw data, its tables, its doubts and warnings."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from steptime.table import Table


class Raw:
    """An answer, or a part of one. `raw` holds all of it, with the keys of the command line's JSON."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: Dict[str, Any] = dict(raw)

    def table(self, name: str) -> Table:
        """A list of the answer as a table; empty where the answer has no such list."""
        return Table(name.replace("_", " "), self.raw.get(name) or [])


class Answer(Raw):
    """A whole answer."""

    @property
    def doubts(self) -> List[str]:
        """Assumptions of the answer and reasons to distrust it, the worst first. Read these first."""
        return [str(each["text"]) for each in self.raw.get("doubts", [])]

    @property
    def warnings(self) -> List[str]:
        """Repairs, assumptions and guesses; each is among the doubts too."""
        return [str(each) for each in self.raw.get("warnings", [])]
