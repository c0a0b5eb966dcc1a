"""The host's probe and pulse."""

from __future__ import annotations

import importlib.util

import pytest

from steptime import probe, pulse
from steptime.loop import Loop, Window, time_window

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: pip install torch")


def test_the_time_of_pulses_is_no_step_s() -> None:
    now = 0.0

    def clock() -> float:
        return now

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    loop = Loop(lambda: wait(0.003), None)
    window = loop.follow(time_window(7, lambda: None, clock, pulse=lambda: wait(0.5), every=3))
    assert window.steps_ms == pytest.approx([3.0] * 7)
    assert window.mean_ms == pytest.approx(3.0) and window.drain_ms == pytest.approx(0.0)
    assert window.after_pulse == {3, 6}
    assert len(window.undisturbed_ms) == 5


def test_a_device_that_lags_works_through_the_pulses() -> None:
    lags = Window([1.0] * 10, wall_ms=100.0, pulses_ms=8.0)
    assert lags.mean_ms == pytest.approx(10.0)
    keeps_up = Window([10.0] * 10, wall_ms=108.5, pulses_ms=8.0)
    assert keeps_up.drain_ms == pytest.approx(0.5) and keeps_up.mean_ms == pytest.approx(10.1)


def test_pulses_hold_durations_by_phase() -> None:
    class Two:
        def take(self) -> dict:
            return {"loop": 30.04, "whole": 42.0}

    pulses = pulse.Pulses(Two())
    assert pulses.as_dict() is None
    pulses.before += [Two().take(), Two().take()]
    found = pulses.as_dict()
    assert found is not None and found["before_loop_us"] == [30.04, 30.04] and found["version"] == pulse.VERSION


def test_a_probe_without_torch_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> None:
    def missing() -> None:
        raise probe.MissingTorch("no torch")

    monkeypatch.setattr(probe, "TorchProfiler", missing)
    assert probe.main(["-o", str(tmp_path / "host.toml")]) == 1
    assert "no torch" in capsys.readouterr().err and not list(tmp_path.iterdir())


@needs_torch
def test_a_probe_without_a_gpu_says_so(tmp_path, capsys) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    assert probe.main(["-o", str(tmp_path / "host.toml")]) == 1
    assert "no GPU" in capsys.readouterr().err and not list(tmp_path.iterdir())


@needs_torch
def test_a_real_probe() -> None:
    tomllib = pytest.importorskip("tomllib")
    backend = probe.TorchProfiler()
    host = backend.probe()
    for phase in (host.before, host.under, host.after):
        phase()
    found = tomllib.loads(probe.to_toml(host.as_dict(), backend.machine()))
    for phase in ("before", "under", "after"):
        assert found[phase]["op_us"] > 0.0 and found[phase]["step_cpu_us"] > found[phase]["op_us"]
    assert found["events"]["step_cpu"]["ops"] > 50


def test_a_window_has_a_pulse_however_short_its_steps_are() -> None:
    from steptime.pulse import apart

    assert [apart(seconds, 20) for seconds in (1e-6, 0.002, 1.0)] == [10, 5, 2]
    assert apart(1e-6, 2) == 2
