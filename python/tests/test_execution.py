"""Recordings of the execution trace only: files, messages and errors. Runs on CPU PyTorch."""

import gc
import gzip
import json
import warnings

import pytest

import steptime
from steptime import execution, layouts

torch = pytest.importorskip("torch")


def training(device="cpu"):
    """A small step: embedding, linear, loss, Adam."""
    table, linear = torch.nn.EmbeddingBag(50, 8, device=device), torch.nn.Linear(8, 4, device=device)
    optimizer = torch.optim.Adam([*table.parameters(), *linear.parameters()])

    def step(batch):
        there = batch.to(device)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(linear(table(there)), torch.zeros(there.shape[0], 4, device=device)).backward()
        optimizer.step()

    return step


def batches(device="cpu"):
    return [torch.zeros(6, 3, dtype=torch.int64, device=device) for _ in range(2)]


def read(folder):
    with gzip.open(folder / "et.json.gz") as source:
        return json.load(source)["nodes"]


def test_a_step_is_recorded_by_its_ops_alone(tmp_path, capsys):
    out = steptime.record(training(), batches(), out=tmp_path / "one", only="et")
    assert sorted(entry.name for entry in out.iterdir()) == ["et.json.gz", "meta.json"]
    meta = json.loads((out / "meta.json").read_text())
    assert meta["batch"] == 6 and meta["record"]["only"] == "et"
    assert not [key for key in meta if key.endswith("_ms")]
    names = [node["name"] for node in read(out)]
    assert "aten::_embedding_bag" in names and any(name.startswith("Optimizer.step#Adam") for name in names)
    said = capsys.readouterr()
    assert said.out.strip().splitlines()[-1] == f"steptime predict {out} --device h200"
    assert "one step" in said.err and " ops" in said.err


def test_tensors_without_memory_will_do(tmp_path, capsys):
    out = steptime.record(training("meta"), batches("meta"), out=tmp_path / "meta", only="et")
    assert any(node["name"] == "aten::addmm" for node in read(out))
    assert "meta tensors" in capsys.readouterr().err


def images(device):
    """Two convolutions, an activation that saves its result, a loss, momentum."""
    with torch.device(device):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Tanh(), torch.nn.Conv2d(8, 2, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(batch):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return model, step


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_what_is_saved_without_memory_is_shown_by_whose_storage_it_has(tmp_path, kind):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() if kind == "fake" else torch.device("meta"):
        _, step = images("cpu" if kind == "fake" else "meta")
        out = steptime.record(step, [torch.empty(4, 3, 8, 8)], out=tmp_path / kind, only="et")
    nodes = {node["id"]: node for node in read(out)}
    backward = next(each for each in nodes.values() if each["name"] == "aten::tanh_backward")
    saved = backward["inputs"]["values"][1][0]
    giving = [each for each in nodes.values() if each["name"] == "aten::detach" and each["id"] < backward["id"]]
    assert any(each["outputs"]["values"][0][0] == saved and each["inputs"]["values"][0][5] == backward["inputs"]["values"][1][5] for each in giving)


def test_marks_of_fake_tensors_hold_what_is_marked(tmp_path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        _, step = images("cpu")
        out = steptime.record(step, [torch.empty(4, 3, 8, 8)], out=tmp_path / "fake", only="et")
    nodes = {node["id"]: node for node in read(out)}
    mark = next(node for node in nodes.values() if node["name"].startswith("Optimizer.step"))
    inside = [node["name"] for node in nodes.values() if node["ctrl_deps"] == mark["id"]]
    assert inside.count("aten::mul_") == 4


def test_a_step_that_reads_values_on_meta_says_what_to_leave_out(tmp_path):
    step = training("meta")

    def reads(batch):
        step(batch)
        batch.sum().item()

    with pytest.raises(steptime.NothingRecorded, match="tensors on the meta device have none .*GradScaler"):
        steptime.record(reads, batches("meta"), out=tmp_path / "out", only="et")
    assert not (tmp_path / "out").exists()


def test_sparse_gradients_on_meta_say_what_to_do(tmp_path):
    table = torch.nn.EmbeddingBag(50, 8, sparse=True, device="meta")
    optimizer = torch.optim.SparseAdam(list(table.parameters()))

    def step(batch):
        table(batch).sum().backward()
        optimizer.step()

    with pytest.raises(steptime.NothingRecorded, match="aten::_coalesce.*sparse=False.*record it on the CPU") as raised:
        steptime.record(step, batches("meta"), out=tmp_path / "out", only="et")
    assert len(str(raised.value)) < 300


def test_a_step_that_reads_values_of_fake_tensors_says_what_to_leave_out(tmp_path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(steptime.NothingRecorded, match="_local_scalar_dense.*leave out"):
        steptime.record(lambda: torch.ones(2).sum().item(), out=tmp_path / "out", only="et")


def test_fake_tensors_hear_autocast(tmp_path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*autocast", category=steptime.RecordWarning)
        linear = torch.nn.Linear(8, 8)

        def step():
            with torch.autocast("cpu", torch.bfloat16):
                linear(torch.ones(4, 8)).sum().backward()

        out = steptime.record(step, out=tmp_path / "fake", only="et")
    assert any("c10::BFloat16" in str(node) for node in read(out))


def test_fake_tensors_will_do(tmp_path, capsys):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        out = steptime.record(training(), batches(), out=tmp_path / "fake", only="et")
    assert any(node["name"] == "aten::addmm" for node in read(out))
    assert "tensors" in capsys.readouterr().err


def test_a_step_without_ops_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(execution.NothingRecorded, match="no op was seen"):
        steptime.record(lambda: None, out=tmp_path / "nothing", only="et")
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_said(tmp_path):
    weight = torch.randn(4, 4)
    with pytest.warns(steptime.RecordWarning, match="no backward pass"):
        steptime.record(lambda: weight @ weight, out=tmp_path / "forward", only="et")


def test_lower_precision_of_a_gpu_that_is_not_there_is_said(tmp_path):
    enter = torch.autocast.__enter__
    for name, device, place in (("gpu", "cuda", "cpu"), ("own", "cpu", "cpu"), ("nowhere", "cpu", "meta"), ("off", "cpu", "meta")):
        weight = torch.randn(4, 4, requires_grad=True, device=place)
        optimizer = torch.optim.SGD([weight])

        def step():
            with torch.autocast(device, torch.bfloat16, enabled=name != "off"):
                (weight @ weight).sum().backward()
            optimizer.step()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            steptime.record(step, out=tmp_path / name, only="et")
        said = [str(each.message) for each in caught if issubclass(each.category, steptime.RecordWarning)]
        assert any('what_if(dtype="bf16") or --dtype' in each for each in said) == (name not in ("own", "off")), said
        answered = steptime.predict(tmp_path / name, device="h200").warnings
        assert any("does nothing" in each for each in answered) == (name not in ("own", "off")), answered
    assert torch.autocast.__enter__ is enter


def test_only_something_else_is_wrong(tmp_path):
    with pytest.raises(steptime.UsageError, match="'et'"):
        steptime.record(training(), batches(), out=tmp_path / "x", only="kineto")


@pytest.fixture
def cleared():
    """Frees the tensors of the test: later tests would find a sparse one."""
    yield
    gc.collect()


def multiplied(make):
    """A step that multiplies by the tensor that `make` makes of a matrix in the step."""
    weight = torch.nn.Parameter(torch.randn(8, 4))
    optimizer = torch.optim.Adam([weight])

    def step():
        optimizer.zero_grad()
        torch.sparse.mm(make(torch.eye(8)), weight).sum().backward()
        optimizer.step()

    return step


@pytest.mark.parametrize("name", layouts.COMPRESSED)
def test_a_tensor_that_crashes_the_observer_is_refused(name, cleared):
    blocks = ((2, 2),) if name.startswith("sparse_bs") else ()
    held = getattr(torch.eye(8), f"to_{name}")(*blocks)
    with pytest.raises(steptime.NothingRecorded, match=rf"layout torch.{name}.*\.to_sparse_coo"):
        steptime.predict(training(), batches()[0], device="h200")
    del held
    assert steptime.predict(training(), batches()[0], device="h200").step_ms > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda dense: dense.to_sparse_csr(),
        lambda dense: dense.to_sparse(layout=torch.sparse_csr),
        lambda dense: torch.sparse_csr_tensor(torch.arange(9), torch.arange(8), torch.ones(8), (8, 8)),
        lambda dense: torch.sparse_compressed_tensor(torch.arange(9), torch.arange(8), torch.ones(8), (8, 8), layout=torch.sparse_csr),
    ],
)
def test_one_made_within_the_step_is_refused_too(tmp_path, make, cleared):
    originals = [torch.sparse_csr_tensor, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse]
    with pytest.raises(steptime.NothingRecorded, match="layout torch.sparse_csr"):
        steptime.record(multiplied(make), out=tmp_path / "made", only="et")
    assert not list(tmp_path.iterdir())
    assert originals == [torch.sparse_csr_tensor, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse]
    steptime.record(multiplied(lambda dense: dense.to_sparse_coo()), out=tmp_path / "coo", only="et")
    assert any(node["name"] == "aten::addmm" for node in read(tmp_path / "coo")), "ops are recorded again"


def test_nested_tensors_without_a_shape_are_refused(cleared):
    held = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)])
    with pytest.raises(steptime.NothingRecorded, match="jagged"):
        steptime.predict(training(), batches()[0], device="h200")
    assert held.is_nested


def test_the_form_of_optimizers_is_noted(tmp_path):
    noted = []
    for at, how in enumerate(({"foreach": False}, {}, {"foreach": True}, {"fused": True}, {"fused": False})):
        linear = torch.nn.Linear(4, 4)
        optimizer = torch.optim.Adam(linear.parameters(), **how)

        def step():
            optimizer.zero_grad()
            linear(torch.ones(2, 4)).sum().backward()
            optimizer.step()

        out = steptime.record(step, out=tmp_path / str(at), only="et")
        noted += json.loads((out / "meta.json").read_text())["optimizers"]
    assert noted == ["loop", "foreach", "foreach", "fused", "loop"]


def test_an_optimizer_asked_to_loop_is_priced_as_a_loop():
    lists, ms = {}, {}
    for foreach in (False, None):
        net = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(10)])
        optimizer = torch.optim.Adam(net.parameters(), foreach=foreach)

        def step(batch):
            optimizer.zero_grad()
            net(batch).sum().backward()
            optimizer.step()

        found = steptime.predict(step, torch.ones(4, 16), device="h200")
        lists[foreach] = "multi_tensor" in list(found.families["family"])
        ms[foreach] = found.step_ms
    assert lists == {False: False, None: True} and ms[False] > ms[None], (lists, ms)
