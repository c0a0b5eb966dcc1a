"""Atomic writes of a recording's folder: it appears complete or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import tempfile
from pathlib import Path
from typing import Iterator

from steptime.errors import UsageError

META = "meta.json"
TIMING = "kineto.json.gz"
EXECUTION_TRACE = "et.json.gz"
TIMING_OF_EXECUTION_TRACE = "kineto_et.json.gz"
FILES = frozenset((META, TIMING, EXECUTION_TRACE, TIMING_OF_EXECUTION_TRACE))


def check_free(out: Path, overwrite: bool = False) -> None:
    """Raises UsageError if writing to `out` would destroy files.

    Overwriting replaces a recording only: a folder with any other file in it is never changed.
    """
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise UsageError(f"{out} exists and is not a folder: choose another place")
    present = {entry.name for entry in out.iterdir()}
    if not present:
        return
    if present - FILES:
        foreign = sorted(present - FILES)[0]
        raise UsageError(f"{out} holds {foreign!r}, which is not part of a recording: choose another folder")
    if not overwrite:
        raise UsageError(f"{out} already holds a recording: choose another folder, or overwrite it with --force (overwrite=True)")


@contextlib.contextmanager
def whole(out: Path, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder next to `out`; it is renamed to `out` if the block succeeds, and removed if not."""
    check_free(out, overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    except OSError as error:
        raise UsageError(f"cannot write into {out.parent}: {error.strerror}: choose another folder") from error
    try:
        yield partial
        os.chmod(partial, 0o777 & ~_umask())
        _put_in_place(partial, out, overwrite)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, out: Path, overwrite: bool) -> None:
    check_free(out, overwrite)  # again: the recording took a while
    if not out.exists():
        partial.rename(out)
        return
    replaced = Path(tempfile.mkdtemp(prefix=f".{out.name}.replaced-", dir=out.parent))
    old = replaced / "old"
    out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        old.rename(out)
        replaced.rmdir()
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def compress(plain: Path, packed: Path) -> None:
    """Gzips `plain` into `packed` (reproducibly) and removes `plain`."""
    with open(plain, "rb") as source, open(packed, "wb") as raw:
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    plain.unlink()
