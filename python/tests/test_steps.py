"""Training steps of random models: every kind builds, trains, is recorded, and is reproducible."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from steptime.measure.draw import Draw
from steptime.measure.steps.__main__ import OK, USAGE, main
from steptime.measure.steps.plan import WEIGHTS, Limits, kinds

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed: nothing can be recorded (pip install torch)")
TINY = Limits(low=1e3, high=2e4, rows=50, tables=1e6, lookups=2000, width=32, image=32, seq=16, vocab=60, batch=16, flops=1e7)


def test_kinds_take_turns_by_their_weights() -> None:
    first = [kind for _, kind in itertools.islice(kinds(), 100)]
    assert Counter(first) == WEIGHTS
    assert set(first[:6]) == set(WEIGHTS)


def test_activations_and_batches_are_within_their_bounds() -> None:
    rng, limits = Draw("steps"), Limits()
    sizes = [4 * limits.activation(rng) for _ in range(500)]
    assert min(sizes) >= 4e5 and max(sizes) <= 3e8
    batches = [limits.samples(rng, size, 1000, 64, 8192) for size in sizes]
    assert min(batches) >= 64 and max(batches) <= 8192
    assert sum(each & (each - 1) == 0 for each in batches) > 350


@needs_torch
@pytest.mark.parametrize("kind", WEIGHTS)
def test_models_train_and_are_the_same_each_time(kind: str) -> None:
    import torch

    from steptime.measure.steps.session import make

    seen = set()
    for index in range(12):
        pair = [make(1, index, kind, TINY, "cpu") for _ in range(2)]
        assert pair[0].what == pair[1].what
        assert all(torch.equal(*both) for both in zip(pair[0].batches[0], pair[1].batches[0]))
        assert all(torch.equal(*both) for both in zip(pair[0].module.parameters(), pair[1].module.parameters()))
        model = pair[0]
        step = model.step("cpu")
        before = [each.detach().clone() for each in model.module.parameters()]
        for batch in model.batches:
            step(batch)
        after = list(model.module.parameters())
        assert any(not torch.equal(*both) for both in zip(before, after)), model.what
        assert all(torch.isfinite(each).all() for each in after), model.what
        seen.add(model.what)
    assert len(seen) > 8


@needs_torch
def test_every_kind_is_recorded_and_a_second_run_leaves_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from steptime.measure.steps import session
    from steptime.measure.steps.session import Options, run

    monkeypatch.setattr(session, "SLOWEST_SECONDS", 60.0)  # this processor may be busy
    options = Options(tmp_path, 5.0, 0, "cpu", 4)
    done = run(options, TINY)
    assert done == {"recorded": 4}
    folders = sorted(each.name for each in tmp_path.iterdir())
    assert [each.rpartition("_")[2] for each in folders] == ["recommender", "cnn", "transformer", "mixed"]
    meta = json.loads((tmp_path / folders[0] / "meta.json").read_text())
    assert meta["model"] == folders[0] and meta["params"] > 0 and meta["record"]["profiled"] == 8
    assert (tmp_path / folders[0] / "kineto.json.gz").exists() and (tmp_path / folders[0] / "et.json.gz").exists()
    assert "recorded: " in capsys.readouterr().err
    assert not run(options, TINY)


@needs_torch
def test_models_that_fail_or_are_too_slow_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from steptime.measure.steps import session

    def fails(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setitem(session.BUILDERS, "recommender", fails)
    monkeypatch.setattr(session, "SLOWEST_SECONDS", 0.0)
    done = session.run(session.Options(tmp_path, 5.0, 0, "cpu", 2), TINY)
    assert done == {"failed": 1, "too slow": 1}
    assert not list(tmp_path.iterdir())


@needs_torch
def test_the_time_budget_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path), "--minutes", "0", "--device", "cpu"]) == OK
    assert "nothing to do" in capsys.readouterr().out
    import torch

    if not torch.cuda.is_available():
        assert main(["--out", str(tmp_path)]) == USAGE
        assert "no GPU" in capsys.readouterr().err
