"""Runs `steptime sweep` and `steptime ingest` on several processes, or on the machines of a Ray cluster.

>>> import steptime.scale
>>> steptime.scale.sweep("recording", "grid.toml", "points.parquet", workers=8)  # doctest: +SKIP
>>> steptime.scale.ingest(["traces/monday"], "lake", workers=8)  # doctest: +SKIP

A task is one shard, `--shard I/N`, and its result is a file that appears when it is complete. A worker that dies leaves no result,
or the points that `sweep` had saved: its shard runs again and continues from there. On several machines all paths must be on a
shared file system.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Sequence

from steptime._ask import core
from steptime.errors import Error, UsageError
from steptime.querying import QueryError, merged

_TASKS_A_WORKER, _RETRIES = 4, 3


class ScaleError(Error, RuntimeError):
    """A shard failed, or its workers died repeatedly. The message has the shard and the reason."""


def sweep(
    input: str | os.PathLike[str],
    grid: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    workers: int | None = None,
    shards: int | None = None,
    engine: str | None = None,
    arguments: Sequence[str] = (),
) -> int:
    """Predicts the points of a grid on `workers` processes, writes them to one Parquet file, and returns the number of points.

    `shards` is the number of tasks, by default 4 per worker; a task should take a second or more, else starting processes
    dominates. `engine` is "ray", "processes", or None for Ray where it is installed. `arguments` are those of `steptime sweep`.
    Parts are kept in OUTPUT.parts until all are complete: an interrupted run continues where it stopped.
    """
    count, cut = _cut(workers, shards)
    _separate(Path(output), (Path(input), Path(grid)))
    parts = Path(f"{os.fspath(output)}.parts")
    parts.mkdir(parents=True, exist_ok=True)
    files = [parts / f"{part}-of-{cut}.parquet" for part in range(1, cut + 1)]
    tasks = [
        ["sweep", os.fspath(input), "--grid", os.fspath(grid), "-o", str(file), "--shard", f"{part}/{cut}", "--json", *arguments]
        for part, file in enumerate(files, 1)
    ]
    told = _spread(tasks, count, engine)
    points = sum(int(answer["points"]) for answer in told)
    try:
        # A shard without points has no file.
        written = merged([file for file in files if file.exists()], output, key="point")
    except QueryError as error:
        raise ScaleError(str(error)) from None
    if written != points:
        raise ScaleError(f"{output} has {written} points, and the shards computed {points}: parts of another grid are in {parts}")
    shutil.rmtree(parts)
    return written


def ingest(
    runs: Sequence[str | os.PathLike[str]],
    lake: str | os.PathLike[str],
    *,
    workers: int | None = None,
    shards: int | None = None,
    engine: str | None = None,
    arguments: Sequence[str] = (),
) -> dict[str, Any]:
    """Ingests runs into a lake on `workers` processes. Returns the numbers of ranks `ingested` and `kept`, and the list of files `skipped`.

    The other arguments are those of sweep(); `arguments` are those of `steptime ingest`.
    """
    count, cut = _cut(workers, shards)
    names = [os.fspath(run) for run in runs]
    tasks = [
        ["ingest", *names, "-o", os.fspath(lake), "--workers", "1", "--shard", f"{part}/{cut}", "--json", *arguments]
        for part in range(1, cut + 1)
    ]
    told = _spread(tasks, count, engine)
    ranks = {key: sum(int(run[key]) for answer in told for run in answer["runs"]) for key in ("ingested", "kept")}
    return {**ranks, "skipped": [file for answer in told for file in answer["skipped"]]}


def _cut(workers: int | None, shards: int | None) -> tuple[int, int]:
    """Numbers of workers and of shards."""
    count = (os.cpu_count() or 1) if workers is None else workers
    cut = count * _TASKS_A_WORKER if shards is None else shards
    if count < 1 or cut < 1:
        raise UsageError(f"workers and shards must be at least 1, not {count} and {cut}")
    return count, cut


def _separate(output: Path, inputs: Sequence[Path]) -> None:
    """Raises UsageError if the output would replace an input."""
    for read in inputs:
        files = [read, *(read.iterdir() if read.is_dir() else ())]
        if any(output.exists() and file.exists() and output.samefile(file) for file in files):
            raise UsageError(f"{output}: it is read by the same call; give the output another name")


def _spread(tasks: list[list[str]], workers: int, engine: str | None) -> list[dict[str, Any]]:
    """JSON answers of the command lines, in order; a worker that dies is replaced, and its command runs again."""
    if engine not in ("ray", "processes", None):
        raise UsageError(f"unknown engine {engine!r}: use 'ray', 'processes' or None")
    has_ray = importlib.util.find_spec("ray") is not None
    if engine == "ray" and not has_ray:
        raise ScaleError("Ray is not installed: pip install ray, or give engine='processes'")
    use_ray = has_ray if engine is None else engine == "ray"
    results = _by_ray(tasks, workers) if use_ray else _by_processes(tasks, workers)
    answers = []
    for task, (code, out, complaint) in zip(tasks, results):
        if code != 0:
            raise ScaleError(f"steptime {' '.join(task)}: {complaint.strip() or f'exit code {code}'}")
        answers.append(json.loads(out))
    return answers


def _by_processes(tasks: list[list[str]], workers: int) -> list[tuple[int, str, str]]:
    done: dict[int, tuple[int, str, str]] = {}
    for _ in range(1 + _RETRIES):
        left = [at for at in range(len(tasks)) if at not in done]
        if not left:
            break
        # Spawned processes: a forked one would inherit the locks of this process's threads.
        pool = ProcessPoolExecutor(min(workers, len(left)), mp_context=multiprocessing.get_context("spawn"))
        with pool:
            running = {pool.submit(_run, tasks[at]): at for at in left}
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    at = running.pop(future)
                    try:
                        done[at] = future.result()
                    except BrokenProcessPool:
                        continue
    if len(done) < len(tasks):
        raise ScaleError(f"{len(tasks) - len(done)} of {len(tasks)} shards have no result: their workers died {1 + _RETRIES} times")
    return [done[at] for at in range(len(tasks))]


def _by_ray(tasks: list[list[str]], workers: int) -> list[tuple[int, str, str]]:
    import ray

    begun = not ray.is_initialized()
    if begun:
        try:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        except Exception as error:  # Ray raises plain exceptions if its node does not start in time.
            first = str(error).partition("\n")[0]
            raise ScaleError(f"Ray did not start: {first} Start it by `ray start --head`, or give engine='processes'") from error
    try:
        task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_run)
        results: list[tuple[int, str, str]] = ray.get([task.remote(argv) for argv in tasks])
        return results
    except ray.exceptions.RayError as error:
        raise ScaleError(f"Ray could not finish the shards: {str(error).splitlines()[0]}") from error
    finally:
        if begun:
            ray.shutdown()


def _run(argv: list[str]) -> tuple[int, str, str]:
    """Runs one command line of steptime on one thread; returns its exit code, output and error output.

    Uses the native half in this process where it is installed, else the program named by $STEPTIME or found on PATH.
    """
    os.environ["RAYON_NUM_THREADS"] = "1"
    if importlib.util.find_spec("steptime._core") is None or os.environ.get("STEPTIME"):
        program = os.environ.get("STEPTIME") or shutil.which("steptime")
        if program is None:
            return 1, "", "the program steptime is not there: put it on PATH, or name it by STEPTIME"
        ran = subprocess.run([program, *argv], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout, ran.stderr
    kind, words = core().capture(argv)
    return (1, "", f"error: {words}") if kind else (0, words, "")
