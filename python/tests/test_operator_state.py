"""The state of the optimizers in embedding bags: saved, loaded, moved, with learning-rate schedules that do not wait."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, List

import pytest

from steptime.operators import library
from steptime.operators.library import OperatorError
from steptime.operators.plans import OPTIMIZERS, state_pitch

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: there are no ops to test (pip install torch)")

from steptime.operators import EmbeddingBags  # noqa: E402

LACKING = "no GPU" if not torch.cuda.is_available() else None if library.available() else f"no library: set {library.VARIABLE}"
needs_gpu = pytest.mark.skipif(LACKING is not None, reason=f"{LACKING}: that training goes on from a saved state is not tested")
ROWS, DIMS, BAGS = [40, 300], [8, 5], 33


def tables(optimizer: Any, device: str = "cpu", rows: Any = None, dims: Any = None, **settings: Any) -> Any:
    return EmbeddingBags(rows or ROWS, dims or DIMS, optimizer=optimizer, lr=0.1, device=device, **settings)


# Anywhere ----------------------------------------------------------------------------------------------------------


def test_a_state_dict_has_the_optimizers_state() -> None:
    sgd = list(tables("sgd").state_dict())
    assert sgd == ["tables.0", "tables.1"] == list(tables(None).state_dict())
    for optimizer, widths in (("adagrad", [8, 8]), ("rowwise_adagrad", [1, 1]), ("adam", [16, 16]), ("partial_rowwise_adam", [16, 8])):
        found = tables(optimizer).state_dict()
        names = [f"optimizer_state.{optimizer}.{at}" for at in range(2)]
        assert [tuple(found[name].shape) for name in names] == list(zip(ROWS, widths))
        assert all(found[name].dtype == torch.float32 and not found[name].any() for name in names)
        assert (f"optimizer_state.{optimizer}.steps" in found) == ("adam" in optimizer)
        assert len(list(tables(optimizer).parameters())) == 2, "state is no parameter"


def test_rows_of_state_begin_where_the_kernels_say() -> None:
    pitches = {optimizer: [state_pitch(optimizer, dim) for dim in (64, 3, 127, 5, 9, 33, 60)] for optimizer in OPTIMIZERS}
    assert pitches["partial_rowwise_adam"][:3] == [68, 4, 128]
    assert pitches["adam"][3:] == [16, 20, 68, 128]
    assert set(pitches["sgd"]) == {0} and set(pitches["rowwise_adagrad"]) == {1}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_is_saved_is_loaded(optimizer: str) -> None:
    model, other = (torch.nn.Sequential(tables(optimizer)) for _ in range(2))
    for buffer in model.buffers():
        buffer.fill_(3)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    same(model, other)
    same(model, copy.deepcopy(model))
    same(model, pickle.loads(pickle.dumps(model)))


def same(one: Any, other: Any) -> None:
    one, other = one.state_dict(), other.state_dict()
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_state_dict_of_something_else_is_refused() -> None:
    adam = tables("adam")
    for saved, message in (
        (tables("adagrad"), "the state of adagrad is saved, but these tables are trained by adam: make the module with"),
        (tables("sgd"), r"Missing key.*optimizer_state.adam.0"),
        (tables("adam", rows=[40, 301]), r"size mismatch for optimizer_state.adam.1"),
        (tables("adam", dims=[8, 6]), r"size mismatch for tables.1"),
        (tables("adam", rows=[40], dims=[8]), r"Missing key.*optimizer_state.adam.1"),
    ):
        with pytest.raises(RuntimeError, match=message):
            adam.load_state_dict(saved.state_dict())
    with pytest.raises(RuntimeError, match="the state of adam is saved, but these tables are trained by sgd"):
        torch.nn.Sequential(tables("sgd")).load_state_dict(torch.nn.Sequential(adam).state_dict())


def test_tables_alone_are_loaded_where_that_is_asked_for() -> None:
    adam, trained = tables("adam"), tables("adagrad")
    with pytest.raises(RuntimeError, match="leave the names that begin with optimizer_state out and load with strict=False"):
        adam.load_state_dict(trained.state_dict(), strict=False)
    adam.load_state_dict({name: value for name, value in trained.state_dict().items() if name.startswith("tables")}, strict=False)
    assert torch.equal(adam.tables[0], trained.tables[0])
    serving = tables(None)
    serving.load_state_dict(trained.state_dict())
    assert torch.equal(serving.tables[1], trained.tables[1])


def test_moving_converts_nothing() -> None:
    for dtype in ("float32", "bfloat16"):
        module = tables("adam", dtype=dtype)
        for moved in (module.half(), module.to(torch.float64), module.to("cpu"), module.bfloat16()):
            assert [table.dtype for table in moved.tables] == [getattr(torch, dtype)] * 2
            assert [buffer.dtype for buffer in moved.buffers()] == [torch.float32, torch.float32, torch.int64]
    assert {each.device.type for each in module.to("meta").state_dict().values()} == {"meta"}


def test_kinds_of_decay_are_named() -> None:
    with pytest.raises(OperatorError, match="decay is 'l1': choose one of l2, decoupled"):
        tables("sgd", decay="l1")


# On a GPU ----------------------------------------------------------------------------------------------------------


def batches(count: int) -> List[Any]:
    """Lookups and gradients of `count` steps; every third has other bags, every second more lookups."""
    made = []
    for at in range(count):
        bags, each = BAGS - (at % 3 == 2), 4 + 3 * (at % 2)
        indices = torch.cat([torch.randint(rows, (bags * each,)) for rows in ROWS])
        offsets = torch.arange(0, len(ROWS) * bags * each + 1, each)
        made.append((indices.cuda(), offsets.cuda(), torch.randn(bags, sum(DIMS), device="cuda")))
    return made


def train(module: Any, steps: List[Any]) -> Any:
    for indices, offsets, gradient in steps:
        module(indices, offsets).backward(gradient)
    return module


def saved_and_loaded(module: Any) -> Any:
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = tables(module.optimizer, "cuda")
    train(other, batches(2))  # it has taken steps of its own
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def assigned(module: Any) -> Any:
    other = train(tables(module.optimizer, "cuda"), batches(2))
    other.load_state_dict(copy.deepcopy(module.state_dict()), assign=True)
    return other


WAYS: Any = {
    "saved and loaded": saved_and_loaded,
    "assigned": assigned,
    "copied": copy.deepcopy,
    "pickled": lambda module: pickle.loads(pickle.dumps(module)),
    "moved": lambda module: module.cpu().to(torch.float16).cuda(),
    "left there": lambda module: module.cuda().float(),
}


@needs_gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("way", WAYS)
def test_training_goes_on_with_the_same_bits(optimizer: str, way: str) -> None:
    torch.manual_seed(11)
    before, after = batches(4), batches(4)
    one = tables(optimizer, "cuda")
    twin = train(copy.deepcopy(one), before)
    other = WAYS[way](twin)
    train(one, before)
    same(one, other)
    train(one, after)
    train(other, after)
    same(one, other)
    if "adam" in optimizer:
        assert other.state_dict()[f"optimizer_state.{optimizer}.steps"] == 8


@needs_gpu
def test_a_captured_step_goes_on_from_what_is_loaded() -> None:
    torch.manual_seed(12)
    one, other = (tables("adam", "cuda") for _ in range(2))
    (step,) = batches(1)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        train(one, [step])
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train(one, [step])
    train(other, batches(3))
    one.load_state_dict(other.state_dict())
    for _ in range(2):
        graph.replay()
    train(other, [step, step])
    same(one, other)
    assert one.state_dict()["optimizer_state.adam.steps"] == 5, "replayed steps count"


@needs_gpu
@pytest.mark.parametrize("decay", ["l2", "decoupled"])
def test_weights_decay_as_pytorchs_do(decay: str) -> None:
    torch.manual_seed(13)
    for optimizer in ("sgd", "adam"):
        module = EmbeddingBags([6], 8, optimizer=optimizer, lr=0.1, device="cuda", weight_decay=0.3, decay=decay)
        theirs = torch.nn.EmbeddingBag.from_pretrained(module.tables[0].clone(), freeze=False, mode="sum", include_last_offset=True)
        make = {("adam", "l2"): torch.optim.Adam, ("adam", "decoupled"): torch.optim.AdamW}.get((optimizer, decay), torch.optim.SGD)
        reference = make([theirs.weight], lr=0.1, weight_decay=0.3)
        indices, offsets = torch.arange(6, device="cuda").repeat(2), torch.arange(0, 13, 3, device="cuda")
        for step in range(3):
            gradient = torch.randn(4, 8, device="cuda")
            module.lr = reference.param_groups[0]["lr"] = 0.1 / (step + 1)
            module.weight_decay = reference.param_groups[0]["weight_decay"] = 0.3 / (step + 1)
            module(indices, offsets).backward(gradient)
            reference.zero_grad()
            theirs(indices, offsets).backward(gradient)
            if (optimizer, decay) == ("sgd", "decoupled"):
                reference.param_groups[0]["weight_decay"] = 0.0
                theirs.weight.data *= 1 - module.lr * module.weight_decay
            reference.step()
        torch.testing.assert_close(module.tables[0], theirs.weight.data, rtol=1e-5, atol=1e-6)


@needs_gpu
def test_schedules_wait_for_nothing() -> None:
    torch.manual_seed(14)
    for optimizer in OPTIMIZERS:
        module = tables(optimizer, "cuda", weight_decay=0.1)
        (step,) = batches(1)
        train(module, [step])
        module.lr, module.weight_decay = 0.02, 0.2
        torch.cuda.synchronize()
        torch.cuda._sleep(10**9)
        module.lr, module.weight_decay = 0.01, 0.3
        train(module, [step])
        assert not torch.cuda.current_stream().query(), f"{optimizer}: the GPU was waited for"
        torch.cuda.synchronize()


@needs_gpu
def test_batches_of_other_sizes_share_one_state() -> None:
    module = EmbeddingBags([400_000], 64, optimizer="adam", device="cuda")
    free: List[int] = []
    for bags in (16, 32, 64):
        train(module, [(torch.zeros(bags, dtype=torch.int64, device="cuda"), torch.arange(bags + 1, device="cuda"), torch.ones(bags, 64, device="cuda"))])
        free.append(torch.cuda.mem_get_info()[0])
    assert free[0] - free[2] < 2**26, "a plan more takes less than the 200 MB of the state"
