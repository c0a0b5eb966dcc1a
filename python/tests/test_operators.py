"""Steptime's operators: schemas, plans and errors on any machine; results against PyTorch's with a GPU and the library."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any, List

import pytest

from steptime.operators import library, plans
from steptime.operators.library import OperatorError
from steptime.operators.plans import OPTIMIZERS, Bags

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: there are no ops to test (pip install torch)")

from steptime.operators import EmbeddingBags, dequantize, gather, interaction, quantize  # noqa: E402
from steptime.operators import functional, ops  # noqa: E402

F = torch.nn.functional
LACKING = "no GPU" if not torch.cuda.is_available() else None if library.available() else f"no library: set {library.VARIABLE}"
needs_gpu = pytest.mark.skipif(LACKING is not None, reason=f"{LACKING}: what kernels compute is not tested")


# Anywhere ----------------------------------------------------------------------------------------------------------


def test_ops_have_the_schemas_that_others_rely_on() -> None:
    schema = str(torch.ops.steptime.embedding_bag.default._schema)
    assert schema == (
        "steptime::embedding_bag(Tensor[] tables, Tensor indices, Tensor offsets, Tensor? weights, int mode, int bits, int plan) -> Tensor"
    )
    for optimizer in OPTIMIZERS:
        schema = str(getattr(torch.ops.steptime, f"embedding_bag_backward_{optimizer}").default._schema)
        assert "(Tensor grad, Tensor(a!)[] tables, Tensor indices, Tensor offsets, Tensor? weights, int mode, int plan) -> ()" in schema
    assert "(Tensor table, Tensor indices, int slice, int plan) -> Tensor" in str(torch.ops.steptime.gather.default._schema)
    assert "(Tensor vectors, int plan) -> Tensor" in str(torch.ops.steptime.interaction.default._schema)
    assert "(Tensor grad, Tensor vectors, int plan) -> Tensor" in str(torch.ops.steptime.interaction_backward.default._schema)


def test_shapes_are_known_without_data() -> None:
    meta = torch.device("meta")
    tables = [torch.empty(10, 8, device=meta), torch.empty(20, 4, device=meta)]
    indices, offsets = torch.empty(30, dtype=torch.int64, device=meta), torch.empty(11, dtype=torch.int64, device=meta)
    found = torch.ops.steptime.embedding_bag(tables, indices, offsets, None, 0, 32, 1)
    assert (found.shape, found.dtype) == ((5, 12), torch.float32)
    rows = [torch.empty(10, 12, dtype=torch.uint8, device=meta)]
    assert torch.ops.steptime.embedding_bag(rows, indices, offsets, None, 0, 8, 1).shape == (10, 8)
    assert torch.ops.steptime.embedding_bag(rows, indices, offsets, None, 0, 4, 1).shape == (10, 16)
    assert torch.ops.steptime.gather(tables[0], indices, 0, 1).shape == (30, 8)
    vectors = torch.empty(6, 4, 8, device=meta)
    assert torch.ops.steptime.interaction(vectors, 1).shape == (6, 8 + 6)
    assert torch.ops.steptime.interaction_backward(vectors, vectors, 1).shape == vectors.shape
    assert torch.ops.steptime.embedding_bag_backward_sgd(found, tables, indices, offsets, None, 0, 1) is None


def test_tensors_on_the_cpu_are_refused() -> None:
    with pytest.raises(OperatorError, match=r"steptime::gather runs on an NVIDIA GPU.*\.to\('cuda'\)"):
        torch.ops.steptime.gather(torch.ones(3, 4), torch.zeros(2, dtype=torch.int64), 0, 1)
    with pytest.raises(OperatorError, match="on cpu"):
        gather(torch.ones(3, 4), torch.zeros(2, dtype=torch.int64), slice=0)
    with pytest.raises(OperatorError, match="on cpu"):
        interaction(torch.ones(3, 4, 5))
    with pytest.raises(OperatorError, match="on cpu"):
        EmbeddingBags([3], 4)(torch.zeros(2, dtype=torch.int64), torch.tensor([0, 1, 2]))


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong, message in (
        (lambda: EmbeddingBags([], 4), "at least one table"),
        (lambda: EmbeddingBags([3], [4, 4]), "1 tables with 2 widths"),
        (lambda: EmbeddingBags([3], 4, mode="product"), "choose one of sum, mean, max"),
        (lambda: EmbeddingBags([3], 4, optimizer="lamb"), "choose one of sgd, adagrad"),
        (lambda: EmbeddingBags([3], 4, dtype="float64"), "choose one of float32"),
        (lambda: EmbeddingBags([3], 4, dtype="int8"), "optimizer=None"),
        (lambda: EmbeddingBags([3], 4, mode="max"), "optimizer=None"),
        (lambda: EmbeddingBags([3], 4, index_dtype=torch.int16), "torch.int32 or torch.int64"),
        (lambda: gather(torch.ones(3, 4, dtype=torch.float16), torch.zeros(2, dtype=torch.int64)), "torch.float32"),
        (lambda: interaction(torch.ones(3, 4)), r"\[B, F, D\]"),
        (lambda: quantize(torch.ones(3, 5), 4), "even D"),
    ):
        with pytest.raises(OperatorError, match=message):
            wrong()


def test_a_library_that_is_not_there_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setenv(library.VARIABLE, str(tmp_path / "none.so"))
    assert not library.available()
    with pytest.raises(OperatorError, match="none.so.*cargo build --release -p steptime-cuda-capi"):
        library.load()
    other = tmp_path / "other.so"
    other.write_bytes(b"not a library")
    with pytest.raises(OperatorError, match="other.so is not the library.*cargo build"):
        library.load(other)


class Fake:
    """A library that counts handles."""

    def __init__(self) -> None:
        self.handles, self.freed = itertools.count(100), []
        self.interaction_forward = self.interaction_backward = lambda *_: 0

    def gpu(self, ordinal: int) -> int:
        return 1

    def new(self, name: str, *arguments: Any) -> int:
        return next(self.handles)

    def interaction_free(self, handle: int) -> None:
        self.freed.append(handle)


def test_plans_live_as_long_as_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "settle", lambda ordinal: None)
    fake: Any = Fake()
    plan, other = (plans.InteractionPlan(fake, 0, 3, 8) for _ in range(2))
    assert plans.find(plan.number, plans.InteractionPlan) is plan and plan.number != other.number
    with pytest.raises(OperatorError, match="a plan for interaction has the number"):
        plans.find(plan.number, plans.BagPlan)
    number, handle = plan.number, plan.handle
    del plan
    assert fake.freed == [handle]
    with pytest.raises(OperatorError, match=f"no plan {number}"):
        plans.find(number, plans.InteractionPlan)


def test_a_cache_keeps_the_plans_used_last() -> None:
    cache, made = plans.Cache(most=2), []

    def make(key: str) -> Any:
        return cache.get(key, lambda: made.append(key) or key)

    for key in ("a", "b", "a", "c", "a", "b"):
        assert make(key) == key
    assert made == ["a", "b", "c", "b"]


def test_rows_are_as_wide_as_their_values_and_scales() -> None:
    assert [plans.pitch(element, 32) for element in plans.ELEMENTS] == [128, 64, 64, 36, 20]
    of = Bags((10, 20), (8, 4), bags=3, lookups=12, element="int8", index_bits=32, weighted=True, mode=2)
    sizes, tables = of.sizes(), of.tables([256, 512])
    assert [getattr(sizes, name) for name, _ in sizes._fields_] == [3, 12, 12, 32, 1, 2]
    assert (tables.count, tables.element) == (2, 3)
    assert [list(array) for array in tables.arrays] == [[256, 512], [10, 20], [8, 4], [12, 8]]


def test_quantized_rows_hold_what_went_in() -> None:
    table = torch.randn(50, 24)
    for bits, most in ((8, 0.02), (4, 0.3)):
        rows = quantize(table, bits)
        assert rows.shape == (50, 4 + 24 * bits // 8) and rows.dtype == torch.uint8
        assert (dequantize(rows, bits) - table).abs().max() < most
    assert torch.equal(dequantize(quantize(torch.full((2, 4), 1.5), 8), 8), torch.full((2, 4), 1.5))


# On a GPU ----------------------------------------------------------------------------------------------------------


def some_bags(rows: List[int], bags: int, longest: int, kind: Any = None, weighted: bool = False) -> Any:
    """Ragged lookups of all tables, some bags empty: indices, offsets, weights."""
    lengths = torch.randint(0, longest + 1, (len(rows), bags))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.flatten().cumsum(0)])
    indices = torch.cat([torch.randint(0, each, (int(count),)) for each, count in zip(rows, lengths.sum(1))])
    kind = kind or torch.int64
    weights = torch.rand(len(indices), device="cuda") if weighted else None
    return indices.to("cuda", kind), offsets.to("cuda", kind), weights


def parts_of(tables: int, bags: int, indices: Any, offsets: Any, weights: Any) -> Any:
    """Indices, bag offsets and weights of each table."""
    offsets = offsets.long()
    for table in range(tables):
        mine = offsets[table * bags : table * bags + bags + 1]
        start, end = int(mine[0]), int(mine[-1])
        yield indices[start:end].long(), mine - start, None if weights is None else weights[start:end]


def expected_bags(tables: List[Any], bags: int, mode: str, indices: Any, offsets: Any, weights: Any) -> Any:
    """Expected results, by PyTorch in double precision."""
    parts = parts_of(len(tables), bags, indices, offsets, weights)
    return torch.cat(
        [
            F.embedding_bag(index, table, starts, mode=mode, per_sample_weights=None if scale is None else scale.double(), include_last_offset=True)
            for table, (index, starts, scale) in zip(tables, parts)
        ],
        1,
    )


def close(found: Any, expected: Any, within: float = 1e-6) -> None:
    error = (found.double() - expected.double()).norm() / expected.double().norm()
    assert error < within, f"relative error {error:.2e}"


@needs_gpu
@pytest.mark.parametrize("dtype", plans.ELEMENTS)
@pytest.mark.parametrize("mode", plans.MODES)
def test_bags_pool_as_pytorch_does(dtype: str, mode: str) -> None:
    torch.manual_seed(1)
    rows, dims, bags = [50, 1000, 7, 333], [8, 32, 32, 130], 65
    for kind, weighted in ((torch.int32, False), (torch.int64, mode == "sum")):
        module = EmbeddingBags(rows, dims, mode, None, dtype=dtype, index_dtype=kind, device="cuda")
        batch = some_bags(rows, bags, 9, kind, weighted)
        bits = plans.BITS[dtype]
        tables = [dequantize(table, bits).double() if bits < 16 else table.double() for table in module.tables]
        for _ in range(2):
            close(module(*batch), expected_bags(tables, bags, mode, *batch))
        module.check(*batch)
        other = some_bags(rows, bags - 1, 20, kind, weighted)
        close(module(*other), expected_bags(tables, bags - 1, mode, *other))
    assert len(module._forward_plans) == 2


def stepped(optimizer: str, table: Any, gradient: Any, touched: Any, lr: float, state: Any) -> Any:
    """The documented step of an optimizer, on all rows that were looked up."""
    step = state["step"] = state.get("step", 0) + 1
    zero = torch.zeros_like(table)
    mean_square = gradient.pow(2).mean(1, keepdim=True)
    if optimizer == "sgd":
        change = gradient
    elif optimizer in ("adagrad", "rowwise_adagrad"):
        h = state["h"] = state.get("h", zero) + (gradient.pow(2) if optimizer == "adagrad" else mean_square)
        change = gradient / (h.sqrt() + 1e-8)
    else:
        square = gradient.pow(2) if optimizer == "adam" else mean_square
        m, v = state.get("m", zero), state.get("v", zero)
        m = state["m"] = torch.where(touched, m + 0.1 * (gradient - m), m)
        v = state["v"] = torch.where(touched, 0.999 * v + 0.001 * square, v)
        change = m / (1 - 0.9**step) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
    return torch.where(touched, table - lr * change, table)


@needs_gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_the_backward_pass_takes_the_optimizers_step(optimizer: str, mode: str) -> None:
    torch.manual_seed(2)
    rows, dims = [40, 1000, 5], [16, 64, 7]
    for kind, weighted in ((torch.int64, False), (torch.int32, True)):
        module = EmbeddingBags(rows, dims, mode, optimizer, lr=0.1, index_dtype=kind, device="cuda")
        tables = [table.double() for table in module.tables]
        states: List[Any] = [{} for _ in rows]
        # The second batch has more lookups, the third other bags: each makes a new plan with the same state.
        for bags, longest in ((64, 6), (64, 40), (33, 6)):
            batch = some_bags(rows, bags, longest, kind, weighted and mode == "sum")
            gradient = torch.randn(bags, sum(dims), device="cuda")
            module(*batch).backward(gradient)
            leaves = [table.clone().requires_grad_() for table in tables]
            expected_bags(leaves, bags, mode, *batch).backward(gradient.double())
            for at, (index, _, _) in enumerate(parts_of(len(rows), bags, *batch)):
                touched = torch.zeros(rows[at], 1, dtype=torch.bool, device="cuda").index_fill_(0, index, True)
                tables[at] = stepped(optimizer, tables[at], leaves[at].grad, touched, module.lr, states[at])
                close(module.tables[at], tables[at], 2e-6)
            module.check(*batch)
            module.lr *= 0.5
        assert all(table.grad is None for table in module.tables)


@needs_gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tables_of_half_precision_are_trained(dtype: str) -> None:
    torch.manual_seed(3)
    module = EmbeddingBags([300], 32, optimizer="sgd", lr=0.5, dtype=dtype, device="cuda")
    before, batch = module.tables[0].double(), some_bags([300], 40, 5)
    gradient = torch.randn(40, 32, device="cuda")
    module(*batch).backward(gradient)
    leaf = before.clone().requires_grad_()
    expected_bags([leaf], 40, "sum", *batch).backward(gradient.double())
    close(module.tables[0], before - 0.5 * leaf.grad, {"float16": 5e-4, "bfloat16": 4e-3}[dtype])


@needs_gpu
def test_optimizers_are_those_of_pytorch() -> None:
    torch.manual_seed(4)
    for name, make in (
        ("adagrad", lambda weight: torch.optim.Adagrad([weight], lr=0.1, eps=1e-8)),
        ("adam", lambda weight: torch.optim.Adam([weight], lr=0.1)),
        ("sgd", lambda weight: torch.optim.SGD([weight], lr=0.1)),
    ):
        module = EmbeddingBags([20], 32, optimizer=name, lr=0.1, device="cuda")
        # Every row is looked up, so that dense steps are the same.
        theirs = torch.nn.EmbeddingBag.from_pretrained(module.tables[0].clone(), freeze=False, mode="sum", include_last_offset=True)
        optimizer = make(theirs.weight)
        for _ in range(3):
            indices, offsets, _ = some_bags([20], 64, 9)
            assert len(indices.unique()) == 20
            gradient = torch.randn(64, 32, device="cuda")
            module(indices, offsets).backward(gradient)
            optimizer.zero_grad()
            theirs(indices, offsets).backward(gradient)
            optimizer.step()
        close(module.tables[0], theirs.weight, 1e-5)


@needs_gpu
def test_what_is_wrong_with_lookups_is_found_when_asked() -> None:
    module = EmbeddingBags([10, 20], 8, device="cuda")
    indices, offsets = torch.tensor([3, 9, 25, 1], device="cuda"), torch.tensor([0, 1, 2, 3, 4], device="cuda")
    before = [table.clone() for table in module.tables]
    module(indices, offsets).sum().backward()
    with pytest.raises(OperatorError, match="25"):
        module.check(indices, offsets)
    assert all(torch.equal(one, other) for one, other in zip(before, module.tables)), "no table changes"
    with pytest.raises(OperatorError, match="torch.int64"):
        module(indices.int(), offsets.int())
    with pytest.raises(OperatorError, match="offsets"):
        module(indices, offsets[:-1])


@needs_gpu
def test_a_step_is_captured_into_a_graph() -> None:
    torch.manual_seed(5)
    rows = [100, 50]
    one, other = (EmbeddingBags(rows, 16, optimizer="adam", lr=0.1, device="cuda") for _ in range(2))
    other.load_state_dict(one.state_dict())
    indices, offsets, _ = some_bags(rows, 32, 4)
    gradient = torch.randn(32, 32, device="cuda")

    def step(module: Any) -> None:
        module(indices, offsets).backward(gradient)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step(one)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(one)
    for _ in range(3):
        graph.replay()
    for _ in range(4):
        step(other)
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(one.tables, other.tables))


@needs_gpu
def test_gather_gives_the_rows_in_every_order() -> None:
    torch.manual_seed(6)
    for rows, dim in ((1000, 33), (300, 2048)):
        table, indices = torch.randn(rows, dim, device="cuda"), torch.randint(0, rows, (7, 100), device="cuda")
        for slice in (None, 0, 512, 1024):
            assert torch.equal(gather(table, indices, slice), table[indices])
    table.requires_grad_()
    gather(table, indices).sum().backward()
    counts = torch.bincount(indices.flatten(), minlength=rows).float()
    assert torch.equal(table.grad, counts[:, None].expand(rows, dim))
    assert functional.planned_slice(0, 8192, 4096, 16384) > 0


@needs_gpu
@pytest.mark.parametrize("shape", [(65, 9, 64), (33, 27, 128), (5, 2, 7), (17, 40, 16)])
def test_interaction_is_the_triangle_of_all_products(shape: Any) -> None:
    torch.manual_seed(7)
    vectors = torch.randn(shape, device="cuda", requires_grad=True)
    wide = vectors.detach().double().requires_grad_()
    rows, columns = torch.tril_indices(shape[1], shape[1], -1, device="cuda")
    expected = torch.cat([wide[:, 0], torch.bmm(wide, wide.transpose(1, 2))[:, rows, columns]], 1)
    found = interaction(vectors)
    close(found, expected)
    gradient = torch.randn_like(found)
    found.backward(gradient)
    expected.backward(gradient.double())
    close(vectors.grad, wide.grad)


@needs_gpu
def test_kernels_belong_to_their_ops_in_a_trace(tmp_path: Any) -> None:
    import json

    module, vectors = EmbeddingBags([100] * 4, 16, device="cuda"), torch.randn(8, 5, 16, device="cuda", requires_grad=True)
    indices, offsets, _ = some_bags([100] * 4, 64, 3)
    table = torch.randn(50, 16, device="cuda")

    def run() -> None:
        module(indices, offsets).sum().backward()
        interaction(vectors).sum().backward()
        gather(table, indices, 0)
        torch.cuda.synchronize()

    run()
    activities = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA], record_shapes=True) as profiler:
        run()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ops_by_id = {event["args"]["External id"]: event["name"] for event in events if event.get("cat") == "cpu_op"}
    launched: Any = {}
    for event in events:
        if event.get("cat") == "kernel":
            launched.setdefault(ops_by_id.get(event["args"].get("External id")), []).append(event["name"])
    assert [name for name in launched["steptime::embedding_bag"]] == ["bag_forward"]
    assert {"sort_tables", "update_rows"} <= set(launched["steptime::embedding_bag_backward_sgd"])
    for op in ("gather", "interaction", "interaction_backward"):
        assert len(launched[f"steptime::{op}"]) == 1, launched
