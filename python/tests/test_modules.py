"""Notes of the modules that a step called, and their side effects. Runs on CPU PyTorch."""

import json
import warnings

import pytest

import steptime
from steptime.modules import ModuleCalls

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(autouse=True)
def nothinghas_compiled(monkeypatch):
    """Hides that other tests of the process have compiled."""
    monkeypatch.setattr("steptime.modules.has_compiled", lambda: False)


class Twice(nn.Module):
    """Calls a layer twice, and a layer that is not its own."""

    def __init__(self, other):
        super().__init__()
        self.layer, self.others = nn.Linear(4, 4), [other]

    def forward(self, x):
        return self.others[0](self.layer(self.layer(x)))


def noted(run):
    calls = ModuleCalls(torch)
    with calls:
        run()
    return calls.as_dict().get("modules", [])


def test_calls_are_told_by_the_names_that_modules_have_for_those_in_them():
    model, loss = nn.Sequential(nn.Linear(4, 4), Twice(nn.ReLU())), nn.MSELoss()
    calls = noted(lambda: loss(model(torch.ones(2, 4)), torch.zeros(2, 4)).backward())
    assert [(path, kind) for path, kind, _, _ in calls] == [
        ("Sequential", "Sequential"),
        ("Sequential.0", "Linear"),
        ("Sequential.1", "Twice"),
        ("Sequential.1.layer", "Linear"),
        ("Sequential.1.layer", "Linear"),
        ("Sequential.1.ReLU", "ReLU"),
        ("MSELoss", "MSELoss"),
    ]
    begin, end = calls[0][2:]
    assert all(begin <= first < last <= end for _, _, first, last in calls[:-1]) and calls[-1][2] >= end
    assert all(one[3] <= next[2] for one, next in zip(calls[3:5], calls[4:6]))


def test_two_modules_of_one_class_are_two():
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    calls = noted(lambda: one(two(one(torch.ones(2, 4)))).sum().backward())
    assert [path for path, *_ in calls] == ["Linear", "Linear#2", "Linear"]


def test_modules_of_a_moment_are_not_taken_for_one_another():
    x = torch.ones(2, 4)
    calls = noted(lambda: [nn.ReLU()(x), nn.Tanh()(x), nn.ReLU()(x)])
    assert [path for path, *_ in calls] == ["ReLU", "Tanh", "ReLU#2"]


def test_a_shared_module_is_of_whoever_calls_it():
    one = nn.Sequential(nn.Linear(4, 4))
    two = nn.Sequential(nn.ReLU(), one[0])
    calls = noted(lambda: [one(torch.ones(2, 4)), one[0](torch.ones(2, 4)), two(torch.ones(2, 4))])
    assert [path for path, *_ in calls] == ["Sequential", "Sequential.0", "Sequential.0", "Sequential#2", "Sequential#2.0", "Sequential#2.1"]


def test_a_step_that_compiles_is_recorded(tmp_path):
    model, plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4)
    compiled, steps = torch.compile(model, backend="eager"), []

    def step(x):
        steps.append(None)
        (compiled(plain(x)) if len(steps) > 1 else model(plain(x))).sum().backward()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = steptime.record(step, [torch.ones(2, 4)], out=tmp_path / "one", only="et")
    assert json.loads((out / "meta.json").read_text())["modules"][0][0] == "Linear"


def test_a_call_that_fails_leaves_no_hook_and_no_open_call():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    model, good = nn.Sequential(nn.Linear(4, 4), Fails()), nn.Linear(4, 4)

    def run():
        with pytest.raises(ValueError):
            model(torch.ones(2, 4))
        good(torch.ones(2, 4))

    assert [path for path, *_ in noted(run)] == ["Sequential", "Sequential.0", "Sequential.1", "Linear"]
    hooks = torch.nn.modules.module
    assert not hooks._global_forward_hooks and not hooks._global_forward_pre_hooks


def test_frozen_modules_are_told_apart_too():
    one, two = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 4).requires_grad_(False)
    (_, _, begin, end), (_, _, next_begin, next_end) = noted(lambda: two(one(torch.ones(2, 4))))
    assert begin < end < next_begin < next_end


def test_too_many_calls_are_none(monkeypatch):
    layer = nn.Linear(4, 4)
    monkeypatch.setattr("steptime.modules.MOST", 2)
    assert noted(lambda: [layer(torch.ones(2, 4)) for _ in range(3)]) == []


def test_calls_of_other_threads_are_not_noted():
    import threading

    layer = nn.Linear(4, 4)

    def run():
        thread = threading.Thread(target=lambda: layer(torch.ones(2, 4)))
        thread.start()
        thread.join()
        nn.ReLU()(layer(torch.ones(2, 4)))

    assert [path for path, *_ in noted(run)] == ["Linear", "ReLU"]


def test_a_process_thathas_compiled_notes_nothing(monkeypatch):
    monkeypatch.setattr("steptime.modules.has_compiled", lambda: True)
    assert noted(lambda: nn.Linear(4, 4)(torch.ones(2, 4))) == []


def test_the_times_of_modules_are_in_the_prediction(tmp_path):
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(batch):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    out = steptime.record(step, [torch.ones(32, 64)], out=tmp_path / "one", only="et")
    assert len(json.loads((out / "meta.json").read_text())["modules"]) == 4
    p = steptime.predict(out, device="h200")
    rows = {row["name"]: row for row in p.modules}
    assert list(rows) == ["Sequential", "Sequential.0", "Sequential.1", "Sequential.2"]
    parts = [rows[f"Sequential.{at}"] for at in range(3)]
    for each in ("host_ms", "forward_ms", "backward_ms", "critical_ms"):
        assert rows["Sequential"][each] == pytest.approx(sum(part[each] for part in parts))
    # All launches of the layers belong to them; the mean and its square belong to no module.
    assert 0.5 * p.active_ms < rows["Sequential"]["forward_ms"] + rows["Sequential"]["backward_ms"] < p.active_ms
    assert steptime.predict("examples/dlrm_default_2048").modules.columns == []


def test_what_a_frozen_model_holds_is_no_batch(tmp_path):
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")

    class Scaled(nn.Module):
        """A module whose scale is used by an op without weight arguments."""

        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(64))
            self.register_buffer("mask", torch.ones(32, 64))

        def forward(self, x):
            return x * self.scale * self.mask

    frozen, head = nn.Sequential(nn.Linear(64, 64), Scaled()), nn.Linear(64, 8)
    frozen.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)

    def step(batch):
        optimizer.zero_grad()
        head(frozen(batch)).square().mean().backward()
        optimizer.step()

    # The batch looks like the mask: one of the two is copied.
    out = steptime.record(step, [torch.ones(32, 64)], out=tmp_path / "one", only="et")
    constants = json.loads((out / "meta.json").read_text())["constants"]
    assert sorted(constants) == [[[8], 4], [[8, 64], 4], [[32, 64], 4], [[64], 4], [[64], 4], [[64, 64], 4]]
    assert any("one copy of the batch" in each for each in steptime.predict(out, device="h200").warnings)


def copies(step, batch, out):
    """Number of batch copies that a prediction assumes, as reported."""
    steptime.record(step, [batch], out=out, only="et")
    told = next(each for each in steptime.predict(out, device="h200").warnings if "of the batch" in each)
    return told.rpartition(" of the batch")[0].rpartition("with ")[2]


def trained(model, loss, parameters=None):
    optimizer = torch.optim.SGD(parameters or model.parameters(), lr=0.1)

    def step(batch):
        optimizer.zero_grad()
        loss(model, *batch).backward()
        optimizer.step()

    return step


def test_what_looks_like_a_batch_and_is_none(tmp_path):
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    mse = nn.functional.mse_loss
    # Running statistics have the shape of the targets.
    norm = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 1))
    step = trained(norm, lambda model, x, y: mse(model(x)[:, 0], y))
    assert copies(step, [torch.ones(64, 64), torch.ones(64)], tmp_path / "norm") == "2 copies"
    # An unused buffer has the shape of the batch.
    held = nn.Linear(64, 8)
    held.register_buffer("history", torch.zeros(32, 64))
    assert copies(trained(held, lambda model, x: model(x).mean()), [torch.ones(32, 64)], tmp_path / "held") == "one copy"
    # A teacher that is not frozen.
    teacher, pupil = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64)), nn.Linear(64, 64)

    def distilled(model, x):
        with torch.no_grad():
            wanted = teacher(x)
        return mse(model(x), wanted)

    assert copies(trained(pupil, distilled), [torch.ones(32, 64)], tmp_path / "teacher") == "one copy"
    # Nothing is updated.
    linear = nn.Linear(64, 64)

    def gradients(x):
        linear(x).mean().backward()

    with pytest.warns(steptime.RecordWarning, match="no optimizer"):
        assert copies(gradients, torch.ones(32, 64), tmp_path / "gradients") == "one copy"
    # Weights of samples belong to the batch.
    weighted = lambda model, x, y, w: nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y, weight=w)  # noqa: E731
    step = trained(nn.Linear(64, 1), weighted)
    assert copies(step, [torch.ones(32, 64), torch.ones(32), torch.ones(32)], tmp_path / "weighted") == "3 copies"


def test_ops_without_gradients_are_of_the_only_module_that_ran(tmp_path):
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    teacher, pupil = nn.Sequential(nn.Linear(64, 64), nn.ReLU()), nn.Sequential(nn.Linear(64, 64))

    def distilled(model, x):
        first = model(x)
        with torch.no_grad():
            wanted = teacher(x)
        return nn.functional.mse_loss(first, wanted) + nn.functional.mse_loss(model(x), wanted)

    steptime.record(trained(pupil, distilled), [[torch.ones(32, 64)]], out=tmp_path / "one", only="et")
    p = steptime.predict(tmp_path / "one", device="h200")
    rows = {row["name"]: row for row in p.modules}
    assert list(rows) == ["Sequential", "Sequential.0", "Sequential#2"]
    # Two products of the pupil; a product and an activation of the teacher.
    assert rows["Sequential#2"]["forward_ms"] > 0.4 * rows["Sequential"]["forward_ms"] and rows["Sequential#2"]["backward_ms"] == 0
    assert p.what_if(remove="module:Sequential#2").why
    with pytest.raises(steptime.NotApplicable, match="are unknown"):
        p.what_if(remove="module:Sequential#2.0")
    with pytest.raises(steptime.UsageError, match="among"):
        p.what_if(among="aten::linear")


def test_a_checkpoint_that_ends_early_is_told(tmp_path):
    from torch.utils.checkpoint import checkpoint

    block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    for reentrant, told in ((False, 1), (True, 0)):
        step = trained(block, lambda model, x: checkpoint(model, x.requires_grad_(), use_reentrant=reentrant).mean())
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            steptime.record(step, [[torch.ones(2, 8)]], out=tmp_path / str(reentrant), only="et")
        assert sum("without checkpoints" in str(each.message) for each in found) == told
