"""The sweep: runs batches of cases until the time is up, and writes their rows to one file, which a later run continues."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter, deque
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Deque, Dict, Iterator, List, Optional, TextIO, Tuple

from steptime.measure import machine
from steptime.measure.case import Case, Family, Limits, generate, interleave
from steptime.measure.families import RENAMED, load
from steptime.measure.harvest import harvest_file
from steptime.measure.runner import DeviceFailed, Runner
from steptime.measure.sheet import Sheet, path_for, peek
from steptime.errors import UsageError

VERSION = "1"
SAME = ("steptime_sweep_version", "device", "torch", "seed")  # metadata that a file and the run that continues it must share
BATCH, BATCH_BYTES, BATCH_SECONDS = 160, 32e9, 30.0
AHEAD = 4  # batches whose kernels are compiled together
SMALL = Limits(bytes=200_000, seconds=1e-4, usual=1e-4, brief=0.0)  # for tests on the CPU


@dataclass
class Options:
    out: Path
    minutes: float = 10.0
    seed: int = 0
    device: str = "cuda:0"
    cases: Optional[int] = None
    checkpoint: float = 60.0
    workers: int = 0


@dataclass
class Progress:
    """Progress of each family."""

    done: Dict[str, int]
    rows: Counter
    started: str

    @property
    def total(self) -> int:
        return sum(self.done.values())


class Sweep:
    """One run of the command."""

    def __init__(self, torch: Any, options: Options, families: List[Family], limits: Optional[Limits] = None) -> None:
        self.torch, self.options, self.families = torch, options, families
        self.limits = limits or (SMALL if options.device == "cpu" else Limits())
        self.machine = machine.describe(torch, options.device)
        self.sheet = Sheet(path_for(options.out))
        self.progress = Progress({}, Counter(), machine.now())
        self.skipped: Counter = Counter()
        self.peaks: Dict[str, str] = {}
        self._scratch = tempfile.TemporaryDirectory(prefix="steptime-measure-")
        self.folder = self._scratch.name
        self._resume()

    def _resume(self) -> None:
        """Continues an existing file. Raises UsageError if its device, PyTorch or seed differ."""
        path = self.sheet.path
        if not path.exists():
            return
        mine, theirs = self._identity(), peek(path)
        for name in SAME:
            if theirs.get(name) != mine[name]:
                raise UsageError(
                    f"{path} was measured with {name} {theirs.get(name) or 'unknown'}, this would be {mine[name]}: choose another --out"
                )
        meta = self.sheet.load()
        self.progress.done = {RENAMED.get(name, name): count for name, count in json.loads(meta["done"]).items()}
        self.progress.started = meta["started"]
        self.skipped.update(json.loads(meta["skipped"]))
        self.peaks = {name: value for name, value in meta.items() if name.startswith("peak_")}

    def _identity(self) -> Dict[str, str]:
        return {"steptime_sweep_version": VERSION, "seed": str(self.options.seed), **self.machine}

    def metadata(self) -> Dict[str, str]:
        return {
            **self._identity(),
            **self.peaks,
            "cases_done": str(self.progress.total),
            "skipped": json.dumps(dict(self.skipped)),
            "done": json.dumps(self.progress.done),
            "started": self.progress.started,
        }

    def run(self) -> None:
        """Measures until the time or the number of cases is reached. The rows so far are written in any case."""
        options = self.options
        start = time.monotonic()
        report = Report(sys.stderr, options)
        runner = Runner(self.torch, options.device, int(self.machine["l2_bytes"]))
        if not self.peaks:
            self.peaks = machine.peaks(self.torch, options.device)
        workers = options.workers or max(min((os.cpu_count() or 2) - 2, 8), 1)
        context = multiprocessing.get_context("spawn")
        pending: Deque[Tuple[List[Case], Future]] = deque()
        written = time.monotonic()
        pool = ProcessPoolExecutor(workers, mp_context=context)
        try:
            for number, batch in enumerate(self._compiled()):
                path = os.path.join(self.folder, f"{number}.json")
                try:
                    about = runner.run(batch, path)
                finally:
                    self.skipped.update(runner.skipped)
                    runner.skipped.clear()
                pending.append((batch, pool.submit(harvest_file, path, about, options.device == "cpu") if about else _nothing()))
                self._take(pending, most=3 * workers)
                runner.free_if_full()
                report.show(self.progress.total + sum(len(each) for each, _ in pending), self.sheet.count, time.monotonic() - start)
                if time.monotonic() - written > options.checkpoint:
                    self._take(pending, most=0 if len(pending) < 2 else len(pending))
                    self.sheet.write(self.metadata())
                    written = time.monotonic()
                if time.monotonic() - start > options.minutes * 60:
                    break
        except KeyboardInterrupt:
            print("\nsteptime: interrupted; writing what is measured", file=sys.stderr)
        except DeviceFailed:
            for family, index in ((case.family, case.index) for case in batch):  # a later run skips these cases
                self.progress.done[family] = max(self.progress.done.get(family, 0), index + 1)
            raise
        finally:
            self._take(pending, most=0)
            pool.shutdown()
            self.sheet.write(self.metadata())
            self._scratch.cleanup()
            report.end(self.progress, self.sheet, self.skipped, time.monotonic() - start)

    def _batches(self) -> Iterator[List[Case]]:
        """Batches of cases, alternating between families, as large as memory allows."""
        left = self.options.cases
        batch: List[Case] = []
        size = seconds = 0.0
        room = BATCH_BYTES
        if self.options.device != "cpu":
            room = min(room, 0.3 * self.torch.cuda.mem_get_info(self.options.device)[0])
        for family, index in interleave(self.families, self.progress.done):
            if left is not None:
                if left <= 0:
                    break
                left -= 1
            case = generate(family, self.options.seed, index, self.limits)
            if case is None:
                self.skipped[f"{family.name}: no case within the limits"] += 1
                continue
            if batch and (len(batch) >= BATCH or size + case.allocated > room or seconds + case.prepare > BATCH_SECONDS):
                yield batch
                batch, size, seconds = [], 0.0, 0.0
            batch.append(case)
            size += case.allocated
            seconds += case.prepare
        if batch:
            yield batch

    def _compiled(self) -> Iterator[List[Case]]:
        """Batches with compiled kernels: several processes compile them while nothing is measured."""
        batches = self._batches()
        while True:
            some = list(itertools.islice(batches, AHEAD if self.compiles else 1))
            if not some:
                return
            if self.compiles:
                compile_all([case for batch in some for case in batch], self.options, self.limits)
            yield from some

    @property
    def compiles(self) -> bool:
        """Whether a family has kernels that are compiled on first use and cached."""
        return self.options.device != "cpu" and any(family.name == "operators" for family in self.families)

    def _take(self, pending: Deque[Tuple[List[Case], Future]], most: int) -> None:
        """Adds the rows of finished batches, in order; waits while more than `most` are unfinished."""
        while pending and (len(pending) > most or pending[0][1].done()):
            batch, future = pending.popleft()
            rows = future.result()
            self.sheet.add(rows)
            self.progress.rows.update(row["family"] for row in rows)
            for case in batch:
                self.progress.done[case.family] = max(self.progress.done.get(case.family, 0), case.index + 1)
            if rows and self.options.device != "cpu":
                floor = machine.null_kernel(rows)
                if floor and float(floor) < float(self.peaks.get("peak_null_kernel_us") or 1e9):
                    self.peaks["peak_null_kernel_us"] = floor


def compile_all(cases: List[Case], options: Options, limits: Limits) -> None:
    """Compiles the kernels of all cases that need it. Failures are reported when the case is measured."""
    wanted = [(case.family, case.index) for case in cases if case.compile]
    if not wanted:
        return
    context = multiprocessing.get_context("spawn")
    # The processes end here, so that none uses the GPU during measurements.
    with ProcessPoolExecutor(max((os.cpu_count() or 2) - 1, 1), mp_context=context) as pool:
        for name, index in wanted:
            pool.submit(compile_case, name, options.seed, index, limits, options.device)


def compile_case(name: str, seed: int, index: int, limits: Limits, device: str) -> None:
    """Draws case `index` of a family and compiles its kernels."""
    (family,) = load([name])
    case = generate(family, seed, index, limits)
    if case is not None and case.compile is not None:
        case.compile(device)


def _nothing() -> Future:
    future: Future = Future()
    future.set_result([])
    return future


class Report:
    """Prints progress and the summary."""

    def __init__(self, stream: TextIO, options: Options) -> None:
        self.stream, self.options, self.last = stream, options, 0.0
        self.bar = None
        try:
            from tqdm import tqdm
        except ImportError:
            return
        if stream.isatty():
            self.bar = tqdm(total=options.cases or round(options.minutes * 60), unit="case" if options.cases else "s", file=stream)

    def show(self, cases: int, rows: int, seconds: float) -> None:
        if self.bar is not None:
            self.bar.n = min(cases if self.options.cases else round(seconds), self.bar.total)
            self.bar.set_postfix_str(f"{cases} cases, {rows} rows")
        elif seconds - self.last > 10:
            self.last = seconds
            print(f"{seconds:.0f} s: {cases} cases, {rows} rows", file=self.stream, flush=True)

    def end(self, progress: Progress, sheet: Sheet, skipped: Counter, seconds: float) -> None:
        if self.bar is not None:
            self.bar.close()
        print(f"{progress.total} cases, {sheet.count} rows in {sheet.path}; this run took {seconds:.0f} s", file=self.stream)
        for family, count in progress.rows.most_common():
            print(f"  {family}: {count} rows of {progress.done.get(family, 0)} cases", file=self.stream)
        if skipped:
            print(f"{sum(skipped.values())} skipped:", file=self.stream)
            for reason, count in skipped.most_common(20):
                print(f"  {count} x {reason}", file=self.stream)
