"""Files of rows: Parquet, or gzipped JSON lines where pyarrow is not installed. Files are replaced atomically."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Tuple

# column: its type in Arrow
COLUMNS = {
    "case": "int32", "family": "string", "op": "string", "dims": "string", "strides": "string", "types": "string", "concrete": "string",
    "devices": "string", "tf32": "bool_", "indices": "string", "state": "string", "reps": "int8", "us": "float32", "us_min": "float32",
    "us_max": "float32", "kernels": "string", "kernel_us": "list<float32>", "grids": "string", "leaf": "int32",
    "span_us": "float32",
}  # fmt: skip
LINES = ".jsonl.gz"


def arrow() -> Any:
    """pyarrow, or None."""
    try:
        import pyarrow
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return None
    return pyarrow


def is_lines(path: Path) -> bool:
    return path.name.endswith(LINES)


def path_for(out: Path) -> Path:
    """Path of the file that is written for `out` on this machine."""
    if is_lines(out) or arrow() is not None:
        return out
    return out.with_name(out.name + LINES)


def _replace(path: Path, write: Any) -> None:
    """Writes a temporary file next to `path`, then renames it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class Sheet:
    """Rows, in memory and in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = is_lines(path)
        self.tables: List[Any] = []
        self.rows: List[Dict[str, Any]] = []
        self.count = 0

    def load(self) -> Dict[str, str]:
        """Reads the rows of the file, and returns its metadata."""
        if self.lines:
            meta, self.rows = read_lines(self.path)
            self.count = len(self.rows)
            return meta
        table = arrow().parquet.read_table(self.path)
        self.tables, self.count = [table.replace_schema_metadata(None)], table.num_rows
        return _metadata(table.schema)

    def add(self, rows: List[Dict[str, Any]]) -> None:
        self.rows.extend(rows)
        self.count += len(rows)

    def write(self, meta: Dict[str, str]) -> None:
        """Writes all rows so far to the file."""
        if self.lines:
            _replace(self.path, lambda part: write_lines(part, self.rows, meta))
            return
        if self.rows:
            self.tables.append(to_table(self.rows))
            self.rows = []
        pa = arrow()
        table = pa.concat_tables(self.tables) if self.tables else to_table([])
        self.tables = [table]
        _replace(self.path, lambda part: write_parquet(part, table, meta))


def peek(path: Path) -> Dict[str, str]:
    """The metadata of a file."""
    if is_lines(path):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return json.loads(file.readline())
    return _metadata(arrow().parquet.read_schema(path))


def _metadata(schema: Any) -> Dict[str, str]:
    return {key.decode(): value.decode() for key, value in (schema.metadata or {}).items() if key != b"ARROW:schema"}


def schema() -> Any:
    pa = arrow()
    types = {"list<float32>": pa.list_(pa.float32())}
    return pa.schema([(name, types.get(kind) or getattr(pa, kind)()) for name, kind in COLUMNS.items()])


def to_table(rows: List[Dict[str, Any]]) -> Any:
    return arrow().table({name: [row[name] for row in rows] for name in COLUMNS}, schema=schema())


def write_parquet(path: Path, table: Any, meta: Dict[str, str]) -> None:
    arrow().parquet.write_table(table.replace_schema_metadata(meta), path, compression="zstd", compression_level=9)


def write_lines(path: Path, rows: List[Dict[str, Any]], meta: Dict[str, str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=4) as file:
        for each in (meta, *rows):
            file.write(json.dumps(each, separators=(",", ":")) + "\n")


def read_lines(path: Path) -> Tuple[Dict[str, str], List[Dict[str, Any]]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.loads(file.readline()), [json.loads(line) for line in file]


def convert(source: Path, out: Path) -> int:
    """Converts JSON lines to Parquet; returns the number of rows."""
    meta, rows = read_lines(source)
    _replace(out, lambda part: write_parquet(part, to_table(rows), meta))
    return len(rows)
