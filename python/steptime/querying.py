"""Queries a lake, the output of `steptime ingest`, in SQL over all ranks, steps and runs.

>>> import steptime
>>> steptime.query("lake", "select run, median(dur_ns) from steps group by run").to_pandas()  # doctest: +SKIP
>>> steptime.ask("lake", "stragglers")  # doctest: +SKIP

    steptime query LAKE "select ..."       steptime query LAKE --ask stragglers       ... --list

The lake's tables are views: steps, ops, kernels, collectives, gaps. `sketch_ns(bin)` is the time of a bin of a sketch.
A query is one SELECT that reads the lake only, without access to other files or the network. A ready question is a file in
questions/; its first line describes it. DuckDB runs the queries.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from steptime.errors import Error

if TYPE_CHECKING:
    import duckdb

VERSION = 2
"""Version of lakes that this code reads."""

TABLES = ("steps", "ops", "kernels", "collectives", "gaps")
_T = TypeVar("_T")
_QUESTIONS = Path(__file__).parent / "questions"
_OK, _FAILED, _WIDEST, _LONGEST = 0, 1, 60, 1000


class QueryError(Error, ValueError):
    """A lake cannot be read, or a query of it fails. The message has the fault and its place."""


class Answer:
    """Rows that are computed when they are fetched; readable as an Arrow stream."""

    def __init__(self, relation: duckdb.DuckDBPyRelation, connection: duckdb.DuckDBPyConnection) -> None:
        self._relation = relation
        self._connection = connection

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._relation.columns)

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return _clearly(self._relation.fetchall)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        return _clearly(self._relation.df)

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        import polars

        return _clearly(lambda: polars.DataFrame(self))

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        return _clearly(self._relation.to_arrow_table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow's PyCapsule interface."""
        return _clearly(lambda: self._relation.__arrow_c_stream__(requested_schema))

    def __repr__(self) -> str:
        return _table(self.columns, self.rows())


def questions() -> dict[str, str]:
    """Names and descriptions of the ready questions."""
    files = sorted(_QUESTIONS.glob("*.sql"))
    return {file.stem: file.read_text(encoding="utf-8").partition("\n")[0].lstrip("- ") for file in files}


def query(lake: str | Path, sql: str) -> Answer:
    """Runs SQL over the tables of a lake.

    Raises QueryError if the folder is not a lake or has another version, or if the SQL fails.
    """
    connection, damaged = _opened(Path(lake))
    kinds = [statement.type for statement in _clearly(lambda: connection.extract_statements(sql))]
    # Other statements write, or change the results of later ones.
    if kinds != [_engine().StatementType.SELECT]:
        raise QueryError("the SQL gives no rows: use a single SELECT")
    try:
        return Answer(_clearly(lambda: connection.sql(sql)), connection)
    except QueryError as error:
        # A table that cannot be read is reported only if the query uses it; queries of other tables work.
        named = next((words for table, words in damaged.items() if table in sql), None)
        raise (QueryError(named) if named else error) from None


def ask(lake: str | Path, question: str) -> Answer:
    """Runs a ready question, see questions().

    Raises QueryError as query() does, and for an unknown question.
    """
    known = questions()
    if question not in known:
        raise QueryError(f"unknown question {question!r}; known are {', '.join(known)}")
    return query(lake, (_QUESTIONS / f"{question}.sql").read_text(encoding="utf-8"))


def merged(parts: Sequence[Path], output: str | os.PathLike[str], key: str) -> int:
    """Merges Parquet files into one, sorted by a key, and returns the number of rows. The file appears when it is complete.

    Metadata is that of the first file, except for its shard. Raises QueryError if a key occurs twice.
    """
    place = Path(output)
    connection: duckdb.DuckDBPyConnection = _engine().connect()
    files = [_pattern(str(part)) for part in parts]
    pairs = _clearly(lambda: connection.execute("select key, value from parquet_kv_metadata(?)", [files[0]]).fetchall())
    about = {bytes(name).decode(): bytes(value).decode() for name, value in pairs}
    kept = {name: value for name, value in about.items() if name.startswith("steptime_")} | {"steptime_shard": "1/1"}
    rows = _clearly(lambda: connection.read_parquet(files).order(key))
    count, distinct = rows.aggregate(f"count(*), count(distinct {key})").fetchall()[0]
    if count != distinct:
        raise QueryError(f"{count - distinct} of {count} rows of {place} occur twice: remove {parts[0].parent} and run it again")
    said = ", ".join(f"{name}: {_quoted(value)}" for name, value in kept.items())
    unfinished = place.with_name(f".{place.name}.part")
    connection.register("rows", rows)
    _clearly(lambda: connection.execute(f"copy rows to {_quoted(str(unfinished))} (format parquet, compression zstd, kv_metadata {{{said}}})"))
    unfinished.replace(place)
    return int(count)


def _opened(lake: Path) -> tuple[duckdb.DuckDBPyConnection, dict[str, str]]:
    """A connection with the lake's tables as views, and error messages of the tables that cannot be read."""
    _checked(lake)
    connection: duckdb.DuckDBPyConnection = _engine().connect()
    whole = str(lake.absolute())
    if "\\" in whole and os.sep == "/":
        raise QueryError(f"{lake}: DuckDB cannot read a folder with a backslash in its name: rename it")
    for setting, value in (
        ("autoinstall_known_extensions", "false"),
        # Only these folders can be read, by path or by pattern: no other files, and no network.
        ("allowed_directories", f"[{_quoted(whole)}, {_quoted(_pattern(whole))}]"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ):
        connection.execute(f"set {setting} = {value}")
    damaged: dict[str, str] = {}
    for table in TABLES:
        # The path is quoted, because a view takes no parameters.
        files = _quoted(f"{_pattern(whole)}/run=*/rank=*/{table}.parquet")
        view = (
            f"create view {table} as select * from read_parquet({files}, hive_partitioning = true, "
            "hive_types = {'run': varchar, 'rank': bigint})"
        )
        try:
            _clearly(lambda: connection.execute(view))
        except QueryError as error:
            damaged[table] = f"{table} cannot be read ({error}): ingest the run again"
    connection.execute(
        "create macro sketch_ns(bin) as 2 * pow(1.01::double / 0.99, bin) / (1.01::double / 0.99 + 1)"
    )
    return connection, damaged


def _quoted(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _pattern(path: str) -> str:
    """A glob pattern that matches this path only: special characters are escaped."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _checked(lake: Path) -> None:
    """Raises QueryError unless the folder is a lake of this version that has ranks."""
    again = f"steptime ingest RUN -o {lake}"
    try:
        found = json.loads((lake / "_steptime.json").read_text(encoding="utf-8"))["steptime_lake"]
    except OSError:
        raise QueryError(f"{lake} is not a lake of steptime: make one with `{again}`") from None
    except (ValueError, KeyError, TypeError):
        found = "unknown"
    if found != VERSION:
        raise QueryError(
            f"{lake} is a lake of version {found}, and this steptime reads {VERSION}: ingest the traces again into "
            "another folder"
        )
    if next(lake.glob("run=*/rank=*/steps.parquet"), None) is None:
        raise QueryError(f"{lake} has no ranks yet: add some with `{again}`")


def _engine() -> Any:
    """Imports DuckDB, an optional dependency."""
    try:
        import duckdb
    except ImportError:
        raise QueryError("queries need DuckDB: pip install 'steptime[query]'") from None
    return duckdb


def _clearly(work: Callable[[], _T]) -> _T:
    """Returns the result of `work`; errors of DuckDB become a QueryError of one sentence."""
    engine = _engine()
    try:
        return work()
    except engine.Error as error:
        message = " ".join(str(error).partition("\nLINE")[0].split())
        raise QueryError(f"the SQL failed: {message}") from None


def _text(value: object) -> str:
    text = "" if value is None else f"{value:,}" if type(value) is int and abs(value) >= 10_000 else str(value)
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST // 2]}…{text[1 - _WIDEST // 2 :]}"


def _cell(value: object) -> object:
    """A cell of CSV without control characters or spreadsheet formulas; numbers are unchanged."""
    if not isinstance(value, str):
        return value
    text = "".join(letter if letter.isprintable() else "\ufffd" for letter in value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _table(columns: list[str], rows: list[tuple[Any, ...]]) -> str:
    """A text table of the rows below the column names; numbers are right-aligned."""
    shown = [[_text(value) for value in row] for row in rows[:_LONGEST]]
    widths = [max(map(len, cells)) for cells in zip(columns, *shown)]
    number = [all(value is None or isinstance(value, (int, float)) for value in cells) for cells in zip(*rows)]
    right = number or [False] * len(columns)

    def line(cells: list[str]) -> str:
        each = zip(cells, widths, right)
        return "  ".join(cell.rjust(width) if left else cell.ljust(width) for cell, width, left in each).rstrip()

    lines = [line(columns), *map(line, shown)]
    if len(rows) > _LONGEST:
        lines.append(f"({len(rows) - _LONGEST:,} more rows: --csv and --json have them)")
    return "\n".join(lines)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="steptime query",
        description="Queries a lake in SQL. Tables: steps, ops, kernels, collectives, gaps; each has run and rank.",
    )
    parser.add_argument("lake", metavar="LAKE", help="a folder that `steptime ingest` wrote")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("sql", metavar="SQL", nargs="?", help="a SELECT over the tables")
    what.add_argument("--ask", metavar="QUESTION", help="a ready question")
    what.add_argument("--list", action="store_true", help="the ready questions, and the tables with their columns")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")
    return parser.parse_args(argv)


def _listed(lake: str) -> str:
    known = questions()
    width = max(map(len, known))
    lines = ["questions, for --ask:", *(f"  {name.ljust(width)}  {what}" for name, what in known.items()), "", "tables:"]
    connection, damaged = _opened(Path(lake))
    for table in TABLES:
        columns = damaged.get(table) or ", ".join(connection.sql(f"from {table}").columns)
        lines.append(f"  {table.ljust(width)}  {columns}")
    return "\n".join(lines)


def _printed(answer: Answer, form: argparse.Namespace) -> None:
    """Prints the rows as JSON, CSV or a table."""
    columns, rows = answer.columns, answer.rows()
    if form.json:
        objects = [dict(zip(columns, row)) for row in rows]
        found = {"schema": 1, "command": "query", "columns": columns, "rows": objects}
        print(json.dumps(found, indent=2, default=str))
    elif form.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)
    else:
        print(_table(columns, rows))
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit code; `argv` is what follows `query`."""
    typed = _arguments(argv)
    try:
        if typed.list:
            print(_listed(typed.lake))
        else:
            _printed(ask(typed.lake, typed.ask) if typed.ask else query(typed.lake, typed.sql), typed)
    except QueryError as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    except BrokenPipeError:
        # The reader has closed the pipe; the rest of the buffer is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _OK
