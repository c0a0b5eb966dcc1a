"""The ranks of a job: predicted together, as recorded, and queries that need a single rank."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

import steptime
from steptime.job import OF_ONE_RANK
from steptime.prediction import Prediction

ROOT = Path(__file__).resolve().parents[2]
DLRM = ROOT / "examples" / "dlrm_default_2048"
SHARED = ROOT.parent / "shared" / "traces" / "multi_gpu"

pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")


def trace(rank: int, late: float, runs: float, op: str = "allreduce") -> str:
    """Three steps of 1 ms of a rank: a kernel, a collective with this delay and duration, and a wait for the device."""
    events: List[Dict[str, Any]] = []

    def add(category: str, name: str, tid: int, start: float, dur: float, **args: object) -> None:
        pid = 0 if category == "kernel" else 1
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args})

    for step in range(3):
        at, first = 1000.0 * (step + 1), 10 * (step + 1)
        add("user_annotation", f"ProfilerStep#{step}", 1, at, 1000.0)
        add("cpu_op", "aten::mm", 1, at + 1, late - 11)
        add("cuda_runtime", "cudaLaunchKernel", 1, at + 5, 5.0, correlation=first + 1)
        add("kernel", "gemm", 7, at + 12, 20.0, correlation=first + 1, device=0, stream=7)
        add("cuda_runtime", "cudaLaunchKernel", 1, at + late - 6, 5.0, correlation=first + 2)
        said = {"Collective name": op, "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float"}
        said |= {"Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        add("kernel", name, 7, at + late, runs, correlation=first + 2, device=0, stream=7, **said)
        add("cuda_runtime", "cudaDeviceSynchronize", 1, at + late + 4, 896 - late, correlation=first + 3)
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    return json.dumps({**head, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events})


@pytest.fixture()
def job(tmp_path: Path) -> Path:
    """A job of two ranks: the second is 400 us late and does not wait."""
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "rank0.json").write_text(trace(0, 400.0, 496.0))
    (folder / "rank1.json").write_text(trace(1, 800.0, 96.0))
    return folder


def program(*arguments: str) -> str:
    """Output of the program."""
    return subprocess.run([sys.executable, "-m", "steptime", *arguments], check=True, capture_output=True, text=True).stdout


# Predicted ---------------------------------------------------------------------------------------------------------


def test_ranks_that_meet_are_predicted_together(job: Path) -> None:
    p = steptime.predict(job)
    assert isinstance(p, steptime.JobPrediction)
    assert p.raw == json.loads(program("predict", str(job), "--json"))
    assert str(p) == program("predict", str(job)).rstrip()
    assert (p.world, p.device, p.samples_per_s, p.warnings) == (2, "NVIDIA H200", None, [])
    low, high = p.interval_ms
    assert low <= p.step_ms <= high
    assert all(isinstance(each, str) for each in p.doubts)
    assert repr(p) == f"JobPrediction(two, 2 ranks on NVIDIA H200: {p.said()})"


def test_the_tables_of_a_job(job: Path) -> None:
    p = steptime.predict(job)
    assert (p.ranks["rank"], p.ranks["last"]) == ([0, 1], [0, 1])
    for rank in p.ranks:
        assert rank["computes_ms"] + rank["moves_ms"] + rank["waits_ms"] + rank["idles_ms"] == pytest.approx(p.step_ms)
    assert sum(ms for _, ms in p.parts()) == pytest.approx(p.step_ms)
    (met,) = p.collectives
    assert (met["op"], met["ranks"], met["bytes"], met["last"]) == ("all_reduce", [0, 1], 4096, 1)
    assert met["moves_ms"] == pytest.approx(0.096) and met["waits_ms"][0] > 0.2 and met["waits_ms"][1] == 0
    assert p.critical_path.columns == ["rank", "place", "what", "phase", "ms"]
    assert sum(p.critical_path["ms"]) == pytest.approx(p.step_ms)


def test_tables_of_a_job_are_read_by_arrow(job: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    p = steptime.predict(job)
    assert pyarrow.table(p.collectives).to_pylist()[0]["ranks"] == "[0, 1]"
    assert [pyarrow.table(each).num_rows for each in (p.ranks, p.critical_path)] == [2, len(p.critical_path)]


def test_a_job_shows_itself_in_notebooks(job: Path) -> None:
    for each in (steptime.predict(job), steptime.inspect(job).job):
        shown = each._repr_html_()
        assert "<svg" in shown and "<table" in shown and "<script" not in shown and "waits for others" in shown
    named = job.with_name("<b>two")
    job.rename(named)
    assert "<b>" not in steptime.predict(named)._repr_html_()


# One rank ----------------------------------------------------------------------------------------------------------


def test_what_is_of_one_rank_is_refused_with_the_remedy(job: Path) -> None:
    p = steptime.predict(job)
    for name in OF_ONE_RANK:
        with pytest.raises(steptime.UsageError, match=rf"^{name} needs a single rank, and this is a job of 2 ranks: .*rank=N$"):
            getattr(p, name)
        assert not hasattr(p, name)
    with pytest.raises(steptime.UsageError, match="rank=N"):
        p.what_if(batch=8192)
    with pytest.raises(AttributeError, match="has no attribute 'nix'"):
        p.nix
    with pytest.raises(steptime.UsageError, match="compare needs a single rank"):
        steptime.predict(DLRM).compare(p)


def test_all_that_a_prediction_has_a_job_has_or_refuses() -> None:
    public = {name for name in dir(Prediction) if not name.startswith("_")}
    assert public - set(dir(steptime.JobPrediction)) == set(OF_ONE_RANK)


@pytest.mark.parametrize("asked", [{"method": "kernel-sum"}, {"keep_profiler": True}])
def test_options_of_one_rank_are_refused_with_the_remedy(job: Path, asked: Dict[str, Any]) -> None:
    with pytest.raises(steptime.UsageError, match="rank=N"):
        steptime.predict(job, **asked)


def test_a_rank_by_itself_is_a_prediction_and_says_that_it_is_one_of_two(job: Path) -> None:
    p = steptime.predict(job, rank=0)
    assert isinstance(p, Prediction) and p.raw["doubts"][0]["kind"] == "ranks"
    assert p.on("h200").step_ms > 0


# Others ------------------------------------------------------------------------------------------------------------


def test_who_waits_for_whom_as_recorded(job: Path) -> None:
    found = steptime.inspect(job).job
    assert found is not None
    assert (found.world, found.steps, found.period_ms, found.warnings) == (2, 3, 1.0, [])
    assert repr(found) == "RecordedJob(2 ranks, 3 steps: period 1.000 ms, profiled)"
    worst = found.stragglers[0]
    assert (worst["rank"], worst["by"], worst["keeps_waiting_ms"]) == (1, "host", pytest.approx(0.4))
    assert found.ranks["waits_ms"][0] == pytest.approx(0.4)
    # The last of three steps counts: where marks follow one another it is as long as its mark.
    assert found.collectives["last"] == [[0, 3]]


def test_a_single_recording_has_no_job() -> None:
    assert steptime.inspect(DLRM).job is None


def test_ranks_that_do_not_meet_are_named(job: Path) -> None:
    (job / "rank1.json").write_text(trace(1, 800.0, 96.0, op="all_to_allv"))
    with pytest.raises(steptime.InputError, match="collective 1 of the step: rank 0 does all_reduce"):
        steptime.predict(job)
    found = steptime.inspect(job)
    assert found.job is None and "wait for each other for ever" in found.warnings[0]


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/traces/multi_gpu")
def test_recorded_jobs() -> None:
    folders = sorted((SHARED / "x2").iterdir())
    found = steptime.validate(SHARED / "x2")
    assert len(found.rows) == 0 and found.jobs["name"] == [folder.name for folder in folders]
    for folder, predicted_ms in zip(folders, found.jobs["predicted_ms"]):
        p, recorded = steptime.predict(folder), steptime.inspect(folder).job
        assert isinstance(p, steptime.JobPrediction) and p.step_ms == pytest.approx(predicted_ms)
        assert p.world == recorded.world == len(p.ranks) == len(recorded.ranks) == 2
        assert p.collectives["op"] == recorded.collectives["op"]
        assert p.samples_per_s == pytest.approx(p.raw["batch"] / p.step_ms * 1e3)
        assert "2 ranks on NVIDIA H200" in repr(p)
