"""Recordings of existing loops: plain, of Lightning, of transformers; with the fake of PyTorch's profilers, and real ones."""

from __future__ import annotations

import errno
import gc
import gzip
import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any, Iterator, List

import pytest

import steptime
from steptime import recording, watching
from test_record import FakeProfiler, nothing_left, unpack

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
SMALL = {"windows": 2, "steps": 3, "profiled": 4, "warmup": 2}
# Warm-up, two windows, the profiled steps, and one of the execution trace.
NEEDED = 2 + 2 * 3 + 4 + 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "TorchProfiler", FakeProfiler)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Ignores warnings about drift, which is expected for tiny steps on a busy machine."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="un-profiled windows", category=steptime.RecordWarning)
        yield


def test_a_loop_is_recorded_and_then_left_alone(fake: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with steptime.watch("net", out=tmp_path / "rec", batch=32, **SMALL) as w:
        for done in range(NEEDED + 5):
            assert w.done == (done >= NEEDED)
            w.step()
    meta = json.loads((tmp_path / "rec/meta.json").read_text())
    assert (meta["model"], meta["batch"], len(meta["windows_ms"])) == ("net", 32, 2)
    assert len(unpack(tmp_path / "rec/kineto.json.gz")["traceEvents"]) == 3 * 4
    assert w.step is watching._nothing and nothing_left(tmp_path)
    assert f"{NEEDED} steps" in capsys.readouterr().err


def test_a_loop_may_be_watched_by_hand(fake: None, tmp_path: Path) -> None:
    w = steptime.watch(out=tmp_path / "rec", quiet=True, **SMALL).start()
    for _ in range(NEEDED):
        w.step()
    w.stop()
    assert w.done and (tmp_path / "rec/et.json.gz").exists()


def test_a_tensor_that_crashes_the_observer_costs_the_execution_trace_alone(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.randn(8, 4))
    optimizer = torch.optim.Adam([weight])
    held = torch.eye(8).to_sparse_csr()

    def loop(matrix: Any, out: Path) -> None:
        with pytest.warns(steptime.RecordWarning, match="without the execution trace.*layout torch.sparse_csr"):
            with steptime.watch(out=out, probe=False, quiet=True, **SMALL) as w:
                for _ in range(NEEDED + 10):  # the profiler takes some steps to warm up
                    optimizer.zero_grad()
                    torch.sparse.mm(matrix(), weight).sum().backward()
                    optimizer.step()
                    w.step()
        assert w.done and sorted(each.name for each in out.iterdir()) == ["kineto.json.gz", "meta.json"]
        assert "without the execution trace" in " ".join(json.loads((out / "meta.json").read_text())["record"]["warnings"])
        assert watching.summary(out) == []

    loop(lambda: held, tmp_path / "held")
    del held
    loop(lambda: torch.eye(8).to_sparse_csr(), tmp_path / "made")
    gc.collect()


def test_a_loop_that_ends_too_soon_is_said_to(fake: None, tmp_path: Path) -> None:
    with pytest.warns(steptime.RecordWarning, match="ended after 5 steps"):
        with steptime.watch(out=tmp_path / "rec", **SMALL) as w:
            for _ in range(5):
                w.step()
    assert not (tmp_path / "rec").exists() and nothing_left(tmp_path)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_the_loop_raises_comes_through(fake: None, tmp_path: Path, error: type) -> None:
    with pytest.raises(error):
        with steptime.watch(out=tmp_path / "rec", **SMALL) as w:
            for at in range(NEEDED):
                w.step()
                if at == 9:
                    raise error
    assert not (tmp_path / "rec").exists() and nothing_left(tmp_path)


def test_what_fails_in_the_recorder_does_not_end_the_training(fake: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording.folder, "compress", full)
    steps = 0
    with pytest.warns(steptime.RecordWarning, match="No space left on device"):
        with steptime.watch(out=tmp_path / "rec", **SMALL) as w:
            for _ in range(NEEDED + 3):
                w.step()
                steps += 1
    assert steps == NEEDED + 3 and not w.done
    assert not (tmp_path / "rec").exists() and nothing_left(tmp_path)


def test_what_cannot_be_recorded_is_said_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(steptime.UsageError, match="needs a folder"):
        steptime.watch()
    with pytest.raises(steptime.UsageError, match="not a folder"):
        steptime.watch(out=tmp_path / "mine")
    with pytest.raises(steptime.UsageError, match="at least"):
        steptime.watch(out=tmp_path / "rec", steps=1)


def test_of_a_distributed_job_rank_0_records(fake: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with steptime.watch(out=tmp_path / "rec", **SMALL) as w:
        for _ in range(NEEDED):
            w.step()
    assert not (tmp_path / "rec").exists() and not w.done


def test_every_rank_records_into_a_folder_of_its_own(fake: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank in (1, 0):
        monkeypatch.setenv("RANK", str(rank))
        with steptime.watch(out=tmp_path / "rec", every_rank=True, quiet=True, **SMALL) as w:
            for _ in range(NEEDED):
                w.step()
        assert w.done and w.out == tmp_path / "rec" / f"rank{rank}"
        meta = json.loads((w.out / "meta.json").read_text())
        assert (meta["rank"], meta["world"]) == (rank, 2)
    # The same number of steps on every rank, independent of its speed.
    monkeypatch.setenv("RANK", "1")
    some = {name: value for name, value in SMALL.items() if name != "profiled"}
    watched = steptime.watch(out=tmp_path / "other", every_rank=True, **some)
    assert watched._settings.profiled == watching.PROFILED_TOGETHER


def test_a_process_of_a_group_knows_its_rank(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("not here: torch without distributed")
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert watching._place() == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


def net() -> Any:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    return torch, model, torch.optim.Adam(model.parameters())


@needs_torch
def test_a_real_loop_is_recorded(tmp_path: Path) -> None:
    torch, model, optimizer = net()
    with steptime.watch(model, optimizer, out=tmp_path / "rec", probe=False, **SMALL) as w:
        for _ in range(NEEDED + 10):
            optimizer.zero_grad()
            model(torch.ones(16, 8)).sum().backward()
            optimizer.step()
            w.step()
    meta = json.loads((tmp_path / "rec/meta.json").read_text())
    assert w.done and (meta["model"], meta["batch"], meta["params"]) == ("Sequential", 16, 41)
    assert any("Optimizer.step" in node["name"] for node in unpack(tmp_path / "rec/et.json.gz")["nodes"])


@needs_torch
@pytest.mark.parametrize("calls", [1, 2])
def test_the_samples_of_an_update_are_those_of_all_its_batches(tmp_path: Path, calls: int) -> None:
    torch, model, optimizer = net()
    with steptime.watch(model, optimizer, out=tmp_path / "rec", probe=False, quiet=True, **SMALL) as w:
        for _ in range(NEEDED + 10):
            for size in (16, 16, 8):
                # A model that is called several times for a batch gets one gradient of the batch.
                sum(model(torch.ones(size, 8)).sum() for _ in range(calls)).backward()
                with torch.no_grad():
                    model(torch.ones(64, 8))
            optimizer.step()
            optimizer.zero_grad()
            w.step()
    assert w.done and json.loads((tmp_path / "rec/meta.json").read_text())["batch"] == 40
    assert all(not parameter._post_accumulate_grad_hooks for parameter in model.parameters())


@needs_torch
def test_steps_that_are_not_updates_are_told(tmp_path: Path) -> None:
    torch, model, optimizer = net()
    with pytest.warns(steptime.RecordWarning, match="call w.step\\(\\) once after each update"):
        with steptime.watch(model, optimizer, out=tmp_path / "rec", probe=False, quiet=True, **SMALL) as w:
            for at in range(NEEDED + 10):
                model(torch.ones(16, 8)).sum().backward()
                if at % 2:
                    optimizer.step()
                w.step()


@needs_torch
def test_an_update_in_a_captured_graph_is_not_missed(tmp_path: Path) -> None:
    _, model, optimizer = net()
    seen = watching.Seen(model, optimizer)
    seen.attach()
    for name, lines in (("graph", ['{"name": "cudaGraphLaunch"}']), ("eager", ['{"name": "cudaLaunchKernel"}'])):
        (tmp_path / name).mkdir()
        with gzip.open(tmp_path / name / "kineto.json.gz", "wt") as out:
            out.write("\n".join(lines))
    assert seen.problems(132, tmp_path / "graph") == []
    assert "stepped 0 times in 132 steps" in seen.problems(132, tmp_path / "eager")[0]
    seen.detach()


@needs_torch
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_step_function_is_predicted(device: str) -> None:
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    torch = pytest.importorskip("torch")
    with torch.device(device):
        torch, model, optimizer = net()
        batch = torch.ones(64, 8)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    p = steptime.predict(step, batch, device="h200")
    assert p.raw["name"] == "step" and p.raw["batch"] == 64 and p.step_ms > 0
    larger = p.what_if(batch=65536)
    assert larger.before.step_ms == p.step_ms and larger.after.active_ms > 2 * p.active_ms
    assert len(p.explain().suggestions) > 0


@needs_torch
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_another_batch_is_predicted_as_if_it_were_recorded(device: str) -> None:
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    torch = pytest.importorskip("torch")
    nn = torch.nn
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5408, 10)]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    def batch(size: int) -> Any:
        return torch.ones(size, 3, 32, 32, device=device), torch.zeros(size, dtype=torch.long, device=device)

    changed = steptime.predict(step, batch(36), device="h200").what_if(batch=288).after
    recorded = steptime.predict(step, batch(288), device="h200")
    assert changed.step_ms == pytest.approx(recorded.step_ms, rel=0.02)
    assert changed.active_ms == pytest.approx(recorded.active_ms, rel=0.02)


@needs_torch
def test_what_a_step_function_raises_comes_through() -> None:
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    with pytest.raises(ZeroDivisionError):
        steptime.predict(lambda: 1 / 0, device="h200")
    with pytest.raises(steptime.NothingRecorded, match="no op was seen"):
        steptime.predict(lambda: None, device="h200")


@needs_torch
@pytest.mark.parametrize("batches", [1, 2])
def test_a_trainer_of_lightning_is_recorded(tmp_path: Path, batches: int) -> None:
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")
    torch, model, _ = net()

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

        def forward(self, x: Any) -> Any:
            return self.net(x)

    loader = torch.utils.data.DataLoader(torch.ones(16 * batches * (NEEDED + 5), 8), batch_size=16)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    callback = steptime.lightning.Watch(str(tmp_path / "rec"), probe=False, **SMALL)
    lightning.Trainer(max_epochs=1, accelerator="cpu", accumulate_grad_batches=batches, callbacks=[callback], **quiet).fit(Module(), loader)
    meta = json.loads((tmp_path / "rec/meta.json").read_text())
    assert (meta["model"], meta["batch"]) == ("Module", 16 * batches)
    names = [node["name"] for node in unpack(tmp_path / "rec/et.json.gz")["nodes"]]
    assert sum(name.startswith("Optimizer.step") for name in names) == 1
    assert names.count("AddmmBackward0") == 2 * batches
    assert nothing_left(tmp_path)


@needs_torch
def test_a_trainer_of_transformers_is_recorded(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    torch, model, _ = net()

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def forward(self, x: Any) -> Any:
            return {"loss": self.net(x).sum()}

    data: List[Any] = [{"x": torch.ones(8)} for _ in range(16 * (NEEDED + 5))]
    options = transformers.TrainingArguments(
        str(tmp_path / "out"), per_device_train_batch_size=16, num_train_epochs=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
    )
    callback = steptime.transformers.Watch(str(tmp_path / "rec"), probe=False, **SMALL)
    transformers.Trainer(Module(), options, train_dataset=data, callbacks=[callback]).train()
    meta = json.loads((tmp_path / "rec/meta.json").read_text())
    assert (meta["model"], meta["batch"]) == ("Module", 16)
    assert nothing_left(tmp_path)
