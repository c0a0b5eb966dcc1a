"""Shards on several workers, some of which die."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'steptime[query]'")

from fleet import ROOT, program, trace  # noqa: E402
import steptime  # noqa: E402
from steptime import scale  # noqa: E402
from steptime.errors import UsageError  # noqa: E402
from steptime.scale import ScaleError  # noqa: E402

EXAMPLE = ROOT / "examples" / "dlrm_default_2048"
NO_RAY = importlib.util.find_spec("ray") is None
ENGINES = ["processes", pytest.param("ray", marks=pytest.mark.skipif(NO_RAY, reason="Ray is not installed: pip install ray"))]


@pytest.fixture()
def grid(tmp_path: Path) -> Path:
    file = tmp_path / "grid.toml"
    file.write_text(f"host-speed = [{', '.join(str(0.5 + at / 100) for at in range(150))}]\nbatch = [1024, 2048]\n")
    return file


@pytest.fixture()
def paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets workers find the package and the program of these tests."""
    monkeypatch.setenv("STEPTIME", program())
    package = Path(steptime.__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]))


def alone(grid: Path, out: Path) -> None:
    """Computes the same points with one process."""
    subprocess.run([program(), "sweep", EXAMPLE, "--grid", grid, "-o", out], check=True, capture_output=True)


def same(one: Path, other: Path) -> bool:
    each = (f"(from '{a}' except all from '{b}')" for a, b in ((one, other), (other, one)))
    return all(duckdb.sql(f"select count(*) from {difference}").fetchall() == [(0,)] for difference in each)


@pytest.mark.parametrize("engine", ENGINES)
def test_shards_together_are_the_whole(paths: None, grid: Path, tmp_path: Path, engine: str) -> None:
    out, whole = tmp_path / "out.parquet", tmp_path / "whole.parquet"
    assert scale.sweep(EXAMPLE, grid, out, workers=2, shards=5, engine=engine) == 300
    alone(grid, whole)
    assert same(out, whole)
    assert not Path(f"{out}.parts").exists()
    # Its metadata is that of one process: the program accepts it as its own, and finds nothing left to do.
    before = out.read_bytes()
    told = subprocess.run([program(), "sweep", EXAMPLE, "--grid", grid, "-o", out], check=True, capture_output=True, text=True)
    assert "300 of them from before" in " ".join(told.stdout.split())
    assert out.read_bytes() == before


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_dies_and_nothing_is_lost_or_there_twice(
    paths: None, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    marker, real, dying = tmp_path / "died", program(), tmp_path / "steptime"
    # The first run of the second shard is killed, together with the worker that waits for it.
    dying.write_text(
        f'#!/bin/sh\ncase "$*" in *"--shard 2/4"*) if mkdir "{marker}" 2>/dev/null; then\n'
        f'  "{real}" "$@" & sleep 0.05; kill -9 $! $PPID; exit 1; fi;; esac\nexec "{real}" "$@"\n'
    )
    dying.chmod(0o755)
    monkeypatch.setenv("STEPTIME", str(dying))
    out, whole = tmp_path / "out.parquet", tmp_path / "whole.parquet"
    assert scale.sweep(EXAMPLE, grid, out, workers=2, shards=4, engine=engine) == 300
    assert marker.exists(), "no worker died"
    alone(grid, whole)
    assert same(out, whole)


def test_what_is_wrong_with_a_shard_is_said(paths: None, grid: Path, tmp_path: Path) -> None:
    with pytest.raises(ScaleError, match="none-such"):
        scale.sweep("none-such", grid, tmp_path / "out.parquet", workers=1, shards=1, engine="processes")
    assert not (tmp_path / "out.parquet").exists()
    with pytest.raises(ValueError, match="unknown engine 'threads'"):
        scale.sweep(EXAMPLE, grid, tmp_path / "out.parquet", workers=1, engine="threads")
    with pytest.raises(UsageError, match="must be at least 1"):
        scale.sweep(EXAMPLE, grid, tmp_path / "out.parquet", workers=0)
    before = grid.read_bytes()
    with pytest.raises(UsageError, match="read by the same call"):
        scale.sweep(EXAMPLE, grid, grid, workers=1, engine="processes")
    assert grid.read_bytes() == before


def test_a_grid_may_have_fewer_points_than_shards(paths: None, tmp_path: Path) -> None:
    grid, out = tmp_path / "g.toml", tmp_path / "out.parquet"
    grid.write_text("batch = [1024, 2048, 4096]\n")
    assert scale.sweep(EXAMPLE, grid, out, workers=1, shards=5, engine="processes") == 3
    assert duckdb.sql(f"select count(*) from '{out}'").fetchall() == [(3,)]


def test_ranks_are_ingested_by_shards(paths: None, tmp_path: Path) -> None:
    run, lake = tmp_path / "run", tmp_path / "lake"
    run.mkdir()
    for rank in range(3):
        (run / f"rank{rank}.json").write_text(trace(rank, [100.0]))
    (run / "rank3.json").write_text(trace(3, [100.0])[:900])
    found = scale.ingest([run], lake, workers=2, shards=4, engine="processes")
    assert (found["ingested"], found["kept"]) == (3, 0)
    assert [Path(file["file"]).name for file in found["skipped"]] == ["rank3.json"]
    assert scale.ingest([run], lake, workers=2, shards=2, engine="processes")["kept"] == 3


def test_the_library_runs_in_this_process_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STEPTIME", raising=False)
    core = types.ModuleType("steptime._core")
    core.__spec__ = importlib.machinery.ModuleSpec("steptime._core", None)
    core.capture = lambda argv: ("", " ".join(argv)) if argv[1] == "x" else ("input", "no such file")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "steptime._core", core)
    monkeypatch.setattr(steptime, "_core", core, raising=False)
    assert scale._run(["sweep", "x"]) == (0, "sweep x", "")
    assert scale._run(["sweep", "y"]) == (1, "", "error: no such file")
