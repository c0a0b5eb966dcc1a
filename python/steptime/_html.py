"""HTML of answers in a notebook: static, without scripts, readable in light and dark themes."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

# Number of rows of a table that a notebook shows.
SHOWN = 20
# Okabe and Ito's colours, which colour-blind readers can distinguish; the first is for the device's active time.
COLOURS = ("#009e73", "#e69f00", "#56b4e9", "#d55e00", "#cc79a7", "#f0e442", "#0072b2", "#999999")


def cell(value: Any) -> str:
    """A value as text; floats with three decimals."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(each) for each in value)
    return escape(str(value))


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of the first rows, with the number of rows left out."""
    head = "".join(f"<th scope='col' style='text-align:left'>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_td(row.get(column)) for column in columns)}</tr>" for row in rows[:SHOWN])
    more = f"<p>{len(rows) - SHOWN:,} more rows</p>" if len(rows) > SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _td(value: Any) -> str:
    side = "right" if isinstance(value, (int, float)) else "left"
    return f"<td style='text-align:{side}'>{cell(value)}</td>"


def bar(parts: Iterable[Tuple[str, float]], unit: str = "ms") -> str:
    """A bar of the parts of a whole, with a legend of the same names and values."""
    kept = [(name, value) for name, value in parts if value > 0]
    total = sum(value for _, value in kept)
    if not total:
        return ""
    x, drawn, legend = 0.0, [], []
    for at, (name, value) in enumerate(kept):
        width, colour = 100 * value / total, COLOURS[at % len(COLOURS)]
        words = f"{escape(name)} {value:.3f} {unit} ({value / total:.1%})"
        drawn.append(f"<rect x='{x:.3f}%' width='{width:.3f}%' height='18' fill='{colour}'><title>{words}</title></rect>")
        legend.append(f"<span style='white-space:nowrap'><span aria-hidden='true' style='color:{colour}'>&#9632;</span> {words}</span>")
        x += width
    picture = f"<svg role='img' aria-label='parts of the step' width='100%' height='18'>{''.join(drawn)}</svg>"
    return f"<div style='max-width:48em'>{picture}<div>{' &nbsp; '.join(legend)}</div></div>"


def lines(title: str, said: Iterable[str]) -> str:
    """A title in bold and a paragraph for each sentence."""
    found: List[str] = [f"<p><strong>{escape(title)}</strong></p>"]
    found += [f"<p>{escape(each)}</p>" for each in said]
    return "".join(found)
