"""Which modules a step called: what is noted, and what it leaves as it was. Runs on CPU PyTorch."""

import json

import pytest

import steptime
from steptime.modules import ModuleCalls

torch = pytest.importorskip("torch")
nn = torch.nn


class Twice(nn.Module):
    """Calls a layer twice, and one that is not its own."""

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


def test_a_process_that_has_compiled_notes_nothing(monkeypatch):
    monkeypatch.setattr("steptime.modules._has_compiled", lambda: True)
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
    # All that these launch is theirs: the mean and its square are nobody's.
    assert 0.5 * p.active_ms < rows["Sequential"]["forward_ms"] + rows["Sequential"]["backward_ms"] < p.active_ms
    assert steptime.predict("examples/dlrm_default_2048").modules.columns == []


def test_what_a_frozen_model_holds_is_no_batch(tmp_path):
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")

    class Scaled(nn.Module):
        """Its scale is taken by an op that knows no weights."""

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
    assert sorted(constants) == [[[32, 64], 4], [[64], 4], [[64], 4], [[64, 64], 4]]
    assert "one copy of the batch" in steptime.predict(out, device="h200").warnings[0]
