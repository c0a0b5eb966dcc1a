"""The viewer: one HTML file."""

from __future__ import annotations

import tempfile
from html import escape
from pathlib import Path
from typing import Optional, Union

from steptime._ask import Input, PathLike, Value

# Height of the viewer in a notebook, in pixels.
HEIGHT = 900


class View:
    """A page of the viewer, written to `path`. A notebook displays it; elsewhere open the file in a browser."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> None:
        """Opens the page in the default browser."""
        import webbrowser

        webbrowser.open(self.path.absolute().as_uri())

    def __repr__(self) -> str:
        return f"View({str(self.path)!r})"

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"), quote=True)
        return f'<iframe title="steptime" style="width:100%;height:{HEIGHT}px;border:0" sandbox="allow-scripts allow-downloads" srcdoc="{page}"></iframe>'


def view(
    what: Union[PathLike, Input],
    path: Optional[PathLike] = None,
    *,
    device: Value = None,
    against: Optional[PathLike] = None,
) -> View:
    """Writes the viewer of an input as one HTML file, to `path` or to a temporary file, which is not deleted.

    device: GPU to predict for. against: another input to compare with.
    """
    source = what if isinstance(what, Input) else Input(what)
    if path is None:
        with tempfile.NamedTemporaryFile(prefix="steptime-", suffix=".html", delete=False) as made:
            path = made.name
    source.text("view", {"device": device, "against": against, "output": path})
    return View(Path(path))
