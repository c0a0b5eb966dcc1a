"""Tables of answers, for readers of Arrow: pandas, polars, pyarrow, DuckDB. None of them is required."""

from __future__ import annotations

import importlib
import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union, overload

from steptime import _html
from steptime._ask import core
from steptime.errors import MissingLibrary


class Table:
    """Rows with the same columns. Column names contain units: `device_ms`, `time_us`, `bytes`.

    >>> table = Table("ops", [{"name": "aten::mm", "device_ms": 0.5}, {"name": "aten::add", "device_ms": 0.1}])
    >>> len(table), table.columns
    (2, ['name', 'device_ms'])
    >>> table["device_ms"]
    [0.5, 0.1]
    >>> table[0]["name"]
    'aten::mm'
    """

    def __init__(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.name = name
        columns: Dict[str, None] = {}
        for row in rows:
            columns.update(dict.fromkeys(row))
        self.columns: List[str] = list(columns)
        self._rows: List[Dict[str, Any]] = [{column: row.get(column) for column in columns} for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self._rows)

    @overload
    def __getitem__(self, key: int) -> Dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice) -> "Table": ...

    @overload
    def __getitem__(self, key: str) -> List[Any]: ...

    def __getitem__(self, key: Union[int, slice, str]) -> Any:
        """A row by its index, a table of rows by a slice, or a column by its name."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"{key!r} is not a column of {self.name}; there are {', '.join(self.columns)}")
            return [row[key] for row in self._rows]
        return Table(self.name, self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The table as a stream of Arrow's PyCapsule interface; the requested schema is ignored."""
        return core().arrow_stream([(column, [_cell(row[column]) for row in self._rows]) for column in self.columns])

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame; needs pandas."""
        pandas = _library("pandas")
        return pandas.DataFrame(self._rows, columns=self.columns)

    def to_polars(self) -> Any:
        """The table as a polars.DataFrame; needs polars."""
        polars = _library("polars")
        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        return _html.table(self.columns, self._rows)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingLibrary(f"to_{name}() needs {name}, which is not installed here: pip install {name}") from error


def _cell(value: Any) -> Any:
    """A cell for Arrow: lists and objects become JSON."""
    return json.dumps(value) if isinstance(value, (list, dict, tuple)) else value
