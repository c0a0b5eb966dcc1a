"""The recorder: its pure parts with a fake profiler, and a real recording where PyTorch is installed."""

from __future__ import annotations

import gzip
import importlib.util
import contextlib
import json
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

import steptime
from steptime import checks, describe, folder, recording, stats
from steptime import profiling
from steptime.errors import UsageError
from steptime.loop import Loop, Plan, Window, time_window
from steptime.pulse import Pulses
from steptime.command import FAILED, OK, USAGE, main, parse
from steptime.settings import Settings, choose

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: nothing can be recorded for real (pip install torch)",
)


# A fake of PyTorch's profilers -------------------------------------------------------------------------------------


def op(name: str, ts: float, rf_id: int = 0, tid: int = 1) -> Dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "tid": tid, "ts": ts, "dur": 1, "args": {"Record function id": rf_id}}


def mark(number: int, ts: float, dur: float = 10) -> Dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "tid": 1, "ts": ts, "dur": dur}


def trace(*events: Dict[str, Any]) -> Dict[str, Any]:
    return {"traceEvents": list(events)}


class FakePulse:
    def take(self) -> Dict[str, float]:
        return {"loop": 30.0, "ops": 40.0}


class FakeProbe:
    """Fake of a probe."""

    def __init__(self) -> None:
        self.pulse = FakePulse()
        self.phases: List[str] = []

    def before(self) -> None:
        self.phases.append("before")

    def under(self) -> None:
        self.phases.append("under")

    def after(self) -> None:
        self.phases.append("after")

    def as_dict(self) -> Dict[str, Any]:
        return {"version": 1, "phases": self.phases}


class FakeProfiler:
    """Fake of the profilers: writes traces of a step that runs `aten::add`, then the ops in `single`."""

    single: List[str] = ["aten::mul"]

    def __init__(self, sync_events: bool = True) -> None:
        self.synchronized = 0
        self.profiled = False

    def synchronize(self) -> None:
        self.synchronized += 1

    def settings(self) -> Dict[str, str]:
        return {"matmul_precision": "float32"}

    def machine(self) -> Dict[str, str]:
        return {"device": "fake", "torch": "0", "cpu": "fake"}

    def peak_memory(self) -> Dict[str, int]:
        return {"peak_rss_bytes": 1}

    def observed(self) -> Any:
        return contextlib.nullcontext()

    def modules(self) -> Dict[str, Any]:
        return {}

    def process(self) -> str:
        return "profiled" if self.profiled else "fresh"

    def probe(self) -> FakeProbe:
        return FakeProbe()

    def record_timing(self, steps: int, path: Path, pulses: Pulses) -> Plan[None]:
        self.profiled = True
        pulses.profiled.append(pulses.pulse.take())
        events = []
        for n in range(steps):
            yield
            events += [mark(n, 10 * n), op("aten::add", 10 * n + 1), op("aten::mul", 10 * n + 3)]
        path.write_text(json.dumps(trace(*events)))

    def record_execution_trace(self, execution_trace: Path, timing: Path) -> Plan[None]:
        yield
        names = ["aten::add", *self.single]
        nodes = [{"name": name, "attrs": [{"name": "rf_id", "value": 7 + at}]} for at, name in enumerate(names)]
        execution_trace.write_text(json.dumps({"nodes": nodes}))
        timing.write_text(json.dumps(trace(*(op(name, at, 7 + at) for at, name in enumerate(names)))))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "TorchProfiler", FakeProfiler)


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Ignores warnings about drift, which is expected for tiny steps on a busy machine."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="un-profiled windows", category=steptime.RecordWarning)
        yield


def unpack(path: Path) -> Dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as source:
        return json.load(source)


def nothing_left(parent: Path) -> bool:
    return not [each for each in parent.iterdir() if ".partial-" in each.name or ".replaced-" in each.name]


SMALL = {"windows": 3, "steps": 4, "profiled": 5, "warmup": 2}


# Statistics and settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values, q, expected", [([3, 1, 2], 0.5, 2), ([1, 2], 0.5, 1.5), ([0, 10], 0.25, 2.5), ([5], 0.9, 5), ([1, 2, 3], 1.0, 3)])
def test_quantile(values: List[float], q: float, expected: float) -> None:
    assert stats.quantile(values, q) == pytest.approx(expected)


def test_quantile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        stats.quantile([], 0.5)


def test_quantiles_have_the_names_of_meta_json() -> None:
    assert list(stats.quantiles([1.0, 2.0])) == ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9"]


def test_spread_is_a_fraction() -> None:
    assert stats.spread([2.0, 2.2, 2.1]) == pytest.approx(0.1)


@pytest.mark.parametrize("seconds, steps", [(0.0001, 250), (0.01, 100), (1.0, 20)])
def test_steps_follow_the_speed_of_a_step(seconds: float, steps: int) -> None:
    assert Settings().steps_per_window(seconds) == steps
    assert Settings(steps=7).steps_per_window(seconds) == 7


def test_first_layer_of_settings_wins() -> None:
    assert choose({"steps": None, "windows": 3}, {"steps": 9, "windows": 4}) == Settings(windows=3, steps=9)


@pytest.mark.parametrize("wrong", [{"windows": 1}, {"steps": 1}, {"profiled": 0}, {"warmup": 0}])
def test_settings_that_cannot_work(wrong: Dict[str, int]) -> None:
    with pytest.raises(UsageError, match="must be at least"):
        Settings(**wrong)


# The loop ----------------------------------------------------------------------------------------------------------


def test_data_starts_over() -> None:
    seen: List[int] = []
    loop = Loop(seen.append, [1, 2, 3])
    for _ in range(7):
        loop.run()
    assert seen == [1, 2, 3, 1, 2, 3, 1]
    assert loop.first_batch == 1


def test_no_data_means_no_argument() -> None:
    calls: List[None] = []
    Loop(lambda: calls.append(None), None).run()
    assert len(calls) == 1


def test_an_iterator_that_runs_out_is_explained() -> None:
    loop = Loop(lambda batch: None, iter([1, 2]))
    loop.run()
    loop.run()
    with pytest.raises(UsageError, match="ran out after 2 batches"):
        loop.run()


@pytest.mark.parametrize("step, data, message", [(3, [], "callable"), (print, 3, "iterable")])
def test_wrong_step_or_data(step: Any, data: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Loop(step, data)


def test_empty_data() -> None:
    with pytest.raises(UsageError, match="no batch"):
        Loop(print, []).run()


def test_a_window_is_synchronised_at_its_ends_only() -> None:
    happened: List[str] = []
    ticks = iter([0.0, 0.001, 0.003, 0.006, 0.010])
    loop = Loop(lambda: happened.append("step"), None)
    window = loop.follow(time_window(3, lambda: happened.append("sync"), lambda: next(ticks)))
    assert happened == ["sync", "step", "step", "step", "sync"]
    assert window.steps_ms == pytest.approx([1, 2, 3])
    assert window.mean_ms == pytest.approx(10 / 3)
    assert window.drain_ms == pytest.approx(4)


# Checks ------------------------------------------------------------------------------------------------------------


def test_drift() -> None:
    steady = [Window([1.0] * 4, 4.0), Window([1.05] * 4, 4.2)]
    assert checks.drift(steady) is None
    assert "50% apart" in str(checks.drift([*steady, Window([1.5] * 4, 6.0)]))


def test_a_host_that_runs_ahead_gives_way_to_wall_time() -> None:
    ahead = [Window([1.0] * 10, 50.0)] * 3
    assert checks.ran_ahead(ahead)
    assert recording.times(ahead)["step_ms"] == pytest.approx(5.0)
    bound = [Window([5.0] * 10, 50.1)] * 3
    assert not checks.ran_ahead(bound)
    assert recording.times(bound)["step_ms"] == pytest.approx(5.0)


def test_a_full_queue_keeps_the_single_times() -> None:
    assert not checks.ran_ahead([Window([1.0] * 3 + [5.0] * 97, 500.0)] * 3)


def test_ops_are_compared_by_thread() -> None:
    timing = trace(mark(0, 0), op("a", 1), op("b", 2, tid=2), op("c", 3), mark(1, 10), op("a", 11), op("c", 12), op("b", 13, tid=2))
    assert checks.same_ops(timing, trace(op("a", 1, tid=8), op("c", 2, tid=8), op("b", 9, tid=9))) is None
    assert "0 of 2" in str(checks.same_ops(timing, trace(op("a", 1), op("c", 2), op("d", 3, tid=2))))
    assert "no ProfilerStep" in str(checks.same_ops(trace(op("a", 1)), trace(op("a", 1))))


def test_join_by_rf_id() -> None:
    nodes = {"nodes": [{"attrs": [{"name": "rf_id", "value": each}]} for each in (0, 4, 5)]}
    assert checks.joined(nodes, trace(op("a", 1, 4), op("b", 2, 5))) is None
    assert "1 of 2" in str(checks.joined(nodes, trace(op("a", 1, 4))))


# The folder --------------------------------------------------------------------------------------------------------


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "rec"
    with folder.whole(out) as partial:
        (partial / "meta.json").write_text("{}")
        assert not out.exists()
    assert [each.name for each in out.iterdir()] == ["meta.json"]
    assert nothing_left(out.parent)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path: Path, error: Any) -> None:
    with pytest.raises(error):
        with folder.whole(tmp_path / "rec") as partial:
            (partial / "meta.json").write_text("{}")
            raise error()
    assert list(tmp_path.iterdir()) == []


def test_a_recording_is_replaced_only_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "rec"
    out.mkdir()
    (out / "meta.json").write_text("old")
    with pytest.raises(UsageError, match="--force"):
        folder.check_free(out)
    with pytest.raises(RuntimeError):
        with folder.whole(out, overwrite=True):
            raise RuntimeError
    assert (out / "meta.json").read_text() == "old"
    with folder.whole(out, overwrite=True) as partial:
        (partial / "meta.json").write_text("new")
    assert (out / "meta.json").read_text() == "new"
    assert nothing_left(tmp_path)


def test_other_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="thesis.tex"):
        folder.check_free(tmp_path, overwrite=True)
    with pytest.raises(UsageError, match="not a folder"):
        folder.check_free(tmp_path / "thesis.tex", overwrite=True)


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    out = tmp_path / "rec"
    out.mkdir()
    with folder.whole(out) as partial:
        (partial / "meta.json").write_text("{}")
    assert (out / "meta.json").exists()


def test_compressed_bytes_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("same" * 100)
        folder.compress(tmp_path / name, tmp_path / f"{name}.gz")
        assert not (tmp_path / name).exists()
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


# record() with the fake --------------------------------------------------------------------------------------------


def test_a_recording(tmp_path: Path, fake: None) -> None:
    out = steptime.record(lambda batch: None, [0], out=tmp_path / "rec", batch=32, model="m", params=5, **SMALL)
    assert {each.name for each in out.iterdir()} == folder.FILES
    meta = json.loads((out / "meta.json").read_text())
    assert (meta["model"], meta["batch"], meta["params"], meta["device"]) == ("m", 32, 5, "fake")
    # Of four steps in a window, the one after the pulse does not count.
    assert (len(meta["steps_ms"]), len(meta["windows_ms"])) == (9, 3)
    assert meta["record"]["steps"] == 4 and meta["record"]["windows_before"] == 2
    assert meta["process"] == "fresh"  # read before the profiler of this recording ran
    assert len(checks.step_marks(unpack(out / "kineto.json.gz"))) == 5


def test_other_ops_in_the_single_step_are_reported(tmp_path: Path, fake: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeProfiler, "single", ["aten::div"])
    with pytest.warns(steptime.RecordWarning, match="0 of 5 timed steps"):
        out = steptime.record(lambda: None, out=tmp_path / "rec", **SMALL)
    assert any("timed steps" in each for each in json.loads((out / "meta.json").read_text())["record"]["warnings"])


@pytest.mark.parametrize("fails_at", [1, 4, 9, 15, 17])
def test_a_step_that_raises(tmp_path: Path, fake: None, fails_at: int) -> None:
    count = [0]

    def step() -> None:
        count[0] += 1
        if count[0] == fails_at:
            raise ZeroDivisionError("in the step")

    with pytest.raises(ZeroDivisionError, match="in the step"):
        steptime.record(step, out=tmp_path / "rec", **SMALL)
    assert list(tmp_path.iterdir()) == []


def test_out_is_needed(fake: None) -> None:
    with pytest.raises(UsageError, match="out="):
        steptime.record(lambda: None)


def test_torch_is_needed_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        steptime.record(lambda: None, out=tmp_path / "rec")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["recrd", "step.py"], []])
def test_the_package_says_which_command_it_has(words: List[str], capfd: pytest.CaptureFixture[str]) -> None:
    from steptime.__main__ import main as package

    assert package(words) == USAGE
    assert "steptime" in capfd.readouterr().err


def test_old_pytorch_has_no_sync_events() -> None:
    def config(**unknown: Any) -> None:
        raise TypeError("unexpected keyword")

    old = profiling.TorchProfiler.__new__(profiling.TorchProfiler)
    cuda = type("Cuda", (), {"is_available": lambda self: True, "is_initialized": lambda self: True})()
    old.torch = type("Torch", (), {"cuda": cuda, "profiler": type("P", (), {"_ExperimentalConfig": staticmethod(config)})})()
    old._sync_events = True
    assert old._experimental_config() is None


def test_only_the_windows_before_the_profiler_count() -> None:
    windows = [Window([1.0] * 4, 4.0), Window([1.2] * 4, 4.8), Window([9.0] * 4, 36.0)]
    found = recording.times(windows, 2)
    assert found["step_ms"] == pytest.approx(1.1)
    assert found["quantiles_ms"]["0.9"] == pytest.approx(1.2)
    assert found["windows_ms"] == pytest.approx([1.0, 1.2, 9.0]) and len(found["steps_ms"]) == 12


def test_a_running_profiler_and_an_earlier_one_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def process(autograd: Any) -> str:
        profiler = profiling.TorchProfiler.__new__(profiling.TorchProfiler)
        profiler.torch = type("Torch", (), {"autograd": autograd})()
        return profiler.process()

    running = [False]
    autograd = type("Autograd", (), {"_profiler_enabled": lambda self: running[0]})()
    monkeypatch.setattr(profiling, "_has_profiled", False)
    assert process(autograd) == process(object()) == "fresh"
    running[0] = True
    assert process(autograd) == "profiled"
    monkeypatch.setattr(profiling, "_has_profiled", True)
    assert process(object()) == "profiled"


def tensor(*shape: int) -> Any:
    return type("Tensor", (), {"shape": shape})()


@pytest.mark.parametrize(
    "batch, count, source",
    [
        ([{"x": tensor(64, 3)}, 5], 64, "first dimension of most tensors"),
        # Lookups of all samples are concatenated.
        ((tensor(64, 13), [tensor(512), tensor(256)], [tensor(64), tensor(64)], tensor(64)), 64, "first dimension of most tensors"),
        (([tensor(3, 480, 640), tensor(3, 500, 333)], [{"boxes": tensor(4, 4)}, {"boxes": tensor(1, 4)}]), 2, "images in a list"),
        ((tensor(8, 3, 32, 32), tensor(8)), 8, "first dimension of most tensors"),
        (type("Batch", (), {"num_graphs": 32, "x": tensor(737, 16)})(), 32, "num_graphs"),
        ((type("Dict", (), {"batch_size": (16, 4)})(),), 16, "batch_size"),
    ],
)
def test_the_batch_is_guessed(batch: Any, count: int, source: str) -> None:
    assert describe.guess_batch(batch) == describe.Samples(count, source)


def test_a_batch_without_tensors_has_no_size() -> None:
    assert describe.guess_batch(["words", 5]) is None
    assert describe.given({"batch": None}, None) == {"batch": None}
    assert describe.given({"batch": 7}, describe.Samples(3, "num_graphs")) == {"batch": 7, "batch_source": "given"}


def test_cpu_name(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Some CPU @ 3 GHz\n")
    assert describe.cpu_name(str(tmp_path / "cpuinfo")) == "Some CPU @ 3 GHz"
    assert describe.cpu_name(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    "named, allowed, expected",
    [(None, True, "tf32"), (None, False, "float32"), ("none", True, "tf32"), ("tf32", False, "tf32"), ("ieee", True, "float32")],
)
def test_it_is_noted_whether_products_may_run_in_tf32(named: Any, allowed: bool, expected: str) -> None:
    matmul = SimpleNamespace(allow_tf32=allowed, **({} if named is None else {"fp32_precision": named}))
    torch = SimpleNamespace(backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)))
    assert describe.settings(torch) == {"matmul_precision": expected}


# The command -------------------------------------------------------------------------------------------------------


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "train.py"
    path.write_text(text)
    return str(path)


FEW = ["--windows", "2", "--steps", "2", "--profiled", "2", "--warmup", "1"]


def test_options_and_arguments_of_the_script() -> None:
    options, arguments = parse(["--force", "s.py", "--out", "o", "7", "--", "--lr", "0.1", "--"])
    assert (options.script, str(options.out), options.force) == ("s.py", "o", True)
    assert arguments == ["7", "--lr", "0.1", "--"]


def test_setup_is_called_and_main_is_not(tmp_path: Path, fake: None, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
import sys
def steptime_setup():
    assert sys.argv[1:] == ["--lr", "0.1"], sys.argv
    return (lambda batch: None), [1, 2], {"batch": 32, "model": "name"}
if __name__ == "__main__":
    raise SystemExit("the usual training")
"""
    out = tmp_path / "rec"
    assert main([script(tmp_path, text), "--out", str(out), *FEW, "--", "--lr", "0.1"]) == OK
    assert json.loads((out / "meta.json").read_text())["model"] == "name"
    assert f"recorded {out}" in capsys.readouterr().out


def test_a_script_may_record_itself(tmp_path: Path, fake: None) -> None:
    text = "import steptime\nif __name__ == '__main__':\n    steptime.record(lambda: None)\n    raise SystemExit(0)\n"
    assert main([script(tmp_path, text), "--out", str(tmp_path / "rec"), *FEW]) == OK
    assert json.loads((tmp_path / "rec" / "meta.json").read_text())["record"]["profiled"] == 2


@pytest.mark.parametrize(
    "text, code, message",
    [
        ("x = 1", USAGE, "recorded nothing"),
        ("def steptime_setup(): return 5", USAGE, "must return (step, data)"),
        ("def steptime_setup(): return print, None, 5", USAGE, "must be a dictionary"),
        ("def steptime_setup(): return print, None, {'bathc': 1}", USAGE, "'bathc'"),
        ("def steptime_setup(): return 5, None", USAGE, "must be callable"),
        ("def steptime_setup(:", USAGE, "not a Python script"),
        ("raise ValueError('broken')", FAILED, "ValueError: broken"),
        ("raise SystemExit(3)", FAILED, "exit code 3"),
        ("def step(): 1 / 0\ndef steptime_setup(): return step, None", FAILED, "ZeroDivisionError"),
    ],
)
def test_scripts_that_cannot_be_recorded(tmp_path: Path, fake: None, capsys: pytest.CaptureFixture[str], text: str, code: int, message: str) -> None:
    out = tmp_path / "rec"
    assert main([script(tmp_path, text), "--out", str(out)]) == code
    assert message in capsys.readouterr().err
    assert not out.exists() and nothing_left(tmp_path)


def test_no_such_script_and_taken_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.py"), "--out", str(tmp_path / "rec")]) == USAGE
    assert "cannot read the script" in capsys.readouterr().err
    assert main([script(tmp_path, "pass"), "--out", str(tmp_path)]) == USAGE
    assert "not part of a recording" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [[], ["s.py", "--windows", "many"], ["s.py", "--lr", "0.1"]])
def test_wrong_options_exit_with_2(wrong: List[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(wrong)
    assert stopped.value.code == USAGE


def test_a_script_that_needs_a_gpu_gets_the_remedy_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "raise RuntimeError('No CUDA GPUs are available')"
    assert main([script(tmp_path, text), "--out", str(tmp_path / "rec")]) == FAILED
    said = capsys.readouterr().err
    assert "--only et" in said and "Traceback" not in said


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another folder"):
        with folder.whole(tmp_path / "file" / "rec"):
            pass


def test_a_compiled_step_is_called_so() -> None:
    timing = trace(mark(0, 10), op("Torch-Compiled Region: 0/0", 1))
    single = trace(op("Torch-Compiled Region: 0/0", 1), op("aten::add", 2))
    assert "without torch.compile" in str(checks.same_ops(timing, single))


def test_a_setting_that_cannot_work_exits_with_2(tmp_path: Path, fake: None) -> None:
    text = "def steptime_setup(): return (lambda: None), None"
    assert main([script(tmp_path, text), "--out", str(tmp_path / "rec"), "--windows", "1"]) == USAGE


# For real ----------------------------------------------------------------------------------------------------------

TINY = """
import torch
from torch import nn

bag = nn.EmbeddingBag(1000, 16, mode="sum")
mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*bag.parameters(), *mlp.parameters()])
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randint(0, 1000, (64, 8)), torch.rand(64, 1)), batch_size=16)

def step(batch):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(mlp(bag(batch[0])), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()

def steptime_setup():
    return step, data, {"model": "tiny"}
"""


def tiny() -> Dict[str, Any]:
    names: Dict[str, Any] = {}
    exec(compile(TINY, "tiny", "exec"), names)
    return names


@needs_torch
def test_a_real_recording(tmp_path: Path) -> None:
    names = tiny()
    one_batch = [next(iter(names["data"]))]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=steptime.RecordWarning)
        warnings.filterwarnings("ignore", message="un-profiled windows", category=steptime.RecordWarning)
        out = steptime.record(names["step"], one_batch, out=tmp_path / "rec", batch=16, windows=3, steps=20, profiled=6)

    meta = json.loads((out / "meta.json").read_text())
    assert meta["batch"] == 16
    assert meta["params"] == 1000 * 16 + 16 * 32 + 32 + 32 + 1
    # Steps after a pulse are left out: at most every other one.
    assert 3 * 10 < len(meta["steps_ms"]) <= 3 * 20 and len(meta["windows_ms"]) == 3
    pulses = meta["pulses"]
    assert len(pulses["before_loop_us"]) + len(pulses["after_loop_us"]) + len(meta["steps_ms"]) == 3 * 20
    assert len(pulses["profiled_loop_us"]) == 7
    assert meta["step_ms"] == pytest.approx(meta["quantiles_ms"]["0.5"])
    assert min(meta["steps_ms"]) <= meta["step_ms"] <= max(meta["steps_ms"])
    assert meta.get("peak_rss_bytes", 0) + meta.get("peak_memory_bytes", 0) > 0

    timing, single = unpack(out / "kineto.json.gz"), unpack(out / "kineto_et.json.gz")
    assert len(checks.step_marks(timing)) == 6
    assert not any("Input Dims" in event.get("args", {}) for event in timing["traceEvents"])
    assert any("Input Dims" in event.get("args", {}) for event in single["traceEvents"])
    ids = checks.record_function_ids(unpack(out / "et.json.gz"))
    known = {event["args"]["Record function id"] for event in single["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")}
    assert len(ids) > 50 and set(ids) <= known
    assert any("embedding_bag" in node["name"] for node in unpack(out / "et.json.gz")["nodes"])


@needs_torch
def test_a_real_recording_by_the_command(tmp_path: Path) -> None:
    out = tmp_path / "rec"
    arguments = [script(tmp_path, TINY), "--out", str(out), "--windows", "2", "--steps", "5", "--profiled", "3"]
    ran = subprocess.run(
        [sys.executable, "-m", "steptime", "record", *arguments],
        capture_output=True, text=True, cwd=Path(steptime.__file__).parents[1],
    )
    assert ran.returncode == OK, ran.stderr
    assert "RuntimeWarning" not in ran.stderr
    assert {each.name for each in out.iterdir()} == folder.FILES
    assert json.loads((out / "meta.json").read_text())["process"] == "fresh"


TWICE = """
import pathlib, sys, torch, steptime
weight = torch.rand(8, 8, requires_grad=True)
few = {"windows": 2, "steps": 2, "profiled": 2, "warmup": 1}
def step():
    (weight @ weight).sum().backward()
out = pathlib.Path(sys.argv[1])
with torch.autograd.profiler.profile():
    print(steptime.recording.TorchProfiler().process())
for name in ("first", "second"):
    steptime.record(step, out=out / name, **few)
"""


@needs_torch
def test_the_second_recording_of_a_process_is_not_fresh(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TWICE, str(tmp_path)],
        capture_output=True, text=True, cwd=Path(steptime.__file__).parents[1],
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] == "profiled"  # read while another profiler was running
    processes = [json.loads((tmp_path / name / "meta.json").read_text())["process"] for name in ("first", "second")]
    assert processes == ["fresh", "profiled"]


@needs_torch
@pytest.mark.parametrize("fails_at", [3, 13, 15])
def test_a_real_step_that_raises_can_be_recorded_afterwards(tmp_path: Path, fails_at: int) -> None:
    names = tiny()
    count = [0]

    def step(batch: Any) -> None:
        count[0] += 1
        if count[0] == fails_at:
            raise ZeroDivisionError
        names["step"](batch)

    few = {"windows": 2, "steps": 2, "profiled": 3, "warmup": 4}
    with pytest.raises(ZeroDivisionError):
        steptime.record(step, names["data"], out=tmp_path / "rec", **few)
    assert list(tmp_path.iterdir()) == []
    steptime.record(step, names["data"], out=tmp_path / "rec", **few)
    assert {each.name for each in (tmp_path / "rec").iterdir()} == folder.FILES
