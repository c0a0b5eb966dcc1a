"""Tensors that a script keeps: results beyond their last use, inputs from step to step."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: nothing can be recorded (pip install torch)")

LOGITS = ["aten::addmm", "256x2000", "0/1"]


def noted(step: Callable[..., Any], out: Path, **options: Any) -> Dict[str, Any]:
    from steptime import record

    record(step, out=out, batch=256, only="et", **options)
    return json.loads((out / "meta.json").read_text())


def steps(device: str) -> Dict[str, Callable[[], None]]:
    import torch
    from torch.nn import functional

    net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2000)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(256, 32, device=device), torch.zeros(256, dtype=torch.int64, device=device)
    kept: List[Any] = []

    def update(loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def in_a_variable() -> None:
        logits = net(x)
        update(functional.cross_entropy(logits, y))

    def nowhere() -> None:
        update(functional.cross_entropy(net(x), y))

    def from_step_to_step() -> None:
        logits = net(x)
        kept[:] = [logits]
        update(functional.cross_entropy(logits, y))

    def in_a_step_that_ends_with_the_backward_pass() -> None:
        logits = net(x)
        functional.cross_entropy(logits, y).backward()

    return {each.__name__: each for each in (in_a_variable, nowhere, from_step_to_step, in_a_step_that_ends_with_the_backward_pass)}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_results_are_kept_as_long_as_the_script_keeps_them(device: str, tmp_path: Path) -> None:
    expected = {
        "in_a_variable": [[*LOGITS, "step"]],
        "nowhere": [],
        "from_step_to_step": [[*LOGITS, "next"]],
        "in_a_step_that_ends_with_the_backward_pass": [[*LOGITS, "step"]],
    }
    for name, step in steps(device).items():
        found = noted(step, tmp_path / name).get("outlives", {"version": 1, "results": []})
        assert found == {"version": 1, "results": expected[name]}, name


def test_logits_in_a_variable_take_memory_beside_their_gradient(tmp_path: Path) -> None:
    from steptime import predict

    both = {name: steps("cpu")[name] for name in ("in_a_variable", "nowhere")}
    for name, step in both.items():
        noted(step, tmp_path / name)
    peaks = {name: predict(tmp_path / name, device="h200").raw["peak_mb"]["total"] for name in both}
    assert peaks["in_a_variable"] - peaks["nowhere"] == pytest.approx(256 * 2000 * 4 / 1e6, rel=0.03)


def test_inputs_that_stay_the_same_are_not_copied(tmp_path: Path) -> None:
    import torch

    from steptime import predict

    net, stays = torch.nn.Linear(8, 4), torch.randn(64, 8)

    def with_one() -> None:
        net(stays).sum().backward()

    def with_new_ones() -> None:
        net(torch.randn(64, 8)).sum().backward()

    assert noted(with_one, tmp_path / "one")["kept_inputs"] == [[[64, 8], 4]]
    assert "kept_inputs" not in noted(with_new_ones, tmp_path / "new")
    # The argument of the step is its batch.
    assert "kept_inputs" not in noted(lambda batch: net(batch).sum().backward(), tmp_path / "batch", data=[stays])
    said = {name: " ".join(predict(tmp_path / name, device="h200").warnings) for name in ("one", "new", "batch")}
    assert "an input that is the same in each step is on the device already" in said["one"] and "0 copies of the batch" in said["one"]
    assert "one copy of the batch" in said["batch"] and "on the device already" not in said["new"] + said["batch"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_gradients_are_clipped_over_lists_as_on_a_gpu(device: str, tmp_path: Path) -> None:
    import gzip

    import torch

    net = torch.nn.Linear(32, 64).to(device)
    x = torch.randn(8, 32, device=device)

    def step() -> None:
        net(x).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)

    before = torch.nn.utils.clip_grad._has_foreach_support
    noted(step, tmp_path / "clipped")
    with gzip.open(tmp_path / "clipped" / "et.json.gz") as trace:
        names = [node["name"] for node in json.load(trace)["nodes"]]
    assert "aten::_foreach_norm" in names and "aten::_foreach_mul_" in names
    assert torch.nn.utils.clip_grad._has_foreach_support is before
