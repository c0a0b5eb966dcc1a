"""Bounds of a step, and changes that would make it shorter."""

from __future__ import annotations

from typing import Optional

from steptime import _html
from steptime._answer import Answer
from steptime._ask import Input, PathLike
from steptime.side import Side
from steptime.table import Table


class Explanation(Answer):
    """Changes that would make a step shorter, the best first.

    >>> found = explain("examples/dlrm_default_2048")
    >>> found.suggestions["name"][0]
    'cuda-graph'
    """

    @property
    def before(self) -> Side:
        """The step as it is."""
        return Side(self.raw["before"])

    @property
    def bound(self) -> Table:
        """Shares of the step that its critical path spends in each place."""
        return self.table("bound")

    @property
    def suggestions(self) -> Table:
        """Changes that apply, sorted by the time that each saves alone: name, milliseconds saved, new step time, effort, risk, description
        and reason."""
        rows = [{**each, "step_ms": each["after"]["step_ms"]} for each in self.raw["suggestions"]]
        keys = ("name", "saves_ms", "step_ms", "effort", "risk", "what", "why")
        return Table("suggestions", [{key: row[key] for key in keys} for row in rows])

    @property
    def together(self) -> Optional[Side]:
        """The step with the best combination of changes found; `raw["together"]["names"]` lists the changes."""
        found = self.raw.get("together")
        return Side(found["after"]) if found else None

    @property
    def not_applicable(self) -> Table:
        """Changes that do not apply, with the reasons."""
        return self.table("not_applicable")

    @property
    def to_fit(self) -> Table:
        """Changes tried to make the step fit the GPU's memory; empty where it fits."""
        return self.table("to_fit")

    def __repr__(self) -> str:
        best = ", ".join(f"{each['name']} saves {each['saves_ms']:.3f} ms" for each in self.suggestions[:3])
        return f"Explanation({self.before.said()}; {best or 'nothing applies'})"

    def _repr_html_(self) -> str:
        table = Table("suggestions", [{key: row[key] for key in ("name", "saves_ms", "step_ms", "effort")} for row in self.suggestions])
        return _html.lines(self.before.said(), self.doubts) + _html.bar(self.before.parts()) + table._repr_html_()


def explain(
    what: PathLike,
    *,
    device: Optional[str] = None,
    host: Optional[str] = None,
    models: Optional[str] = None,
    indices: Optional[str] = None,
    tf32: bool = False,
    step: Optional[int] = None,
    rank: Optional[int] = None,
) -> Explanation:
    """Explains what bounds the step of an input, and which changes would make it shorter. Options are those of `predict`."""
    options = {"device": device, "host": host, "models": models, "indices": indices, "tf32": tf32}
    return Explanation(Input(what, step, rank).answer("explain", options))
