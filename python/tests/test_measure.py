"""The sweep: its generators, rows and files; with PyTorch on the CPU a whole sweep, with operators in place of kernels."""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Dict

import pytest

from steptime.measure import families, kernels, sheet
from steptime.measure.__main__ import FAILED, OK, USAGE, main
from steptime.measure.case import FAMILY_SLOTS, Case, Family, Limits, Op, generate, interleave
from steptime.measure.draw import Draw
from steptime.measure.harvest import harvest, harvest_file, region_name

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed: nothing can be measured (pip install torch)")
needs_arrow = pytest.mark.skipif(sheet.arrow() is None, reason="pyarrow is not installed (pip install pyarrow)")
SMALL = Limits(bytes=200_000, seconds=1e-4, usual=1e-4, brief=0.0)


# Generators --------------------------------------------------------------------------------------------------------


def test_a_case_is_always_the_same() -> None:
    for family in families.load():
        first, again = ([generate(family, 3, i) for i in range(20)] for _ in range(2))
        assert [(each.what, each.bytes, each.after) for each in first] == [(each.what, each.bytes, each.after) for each in again]
        assert len({each.what for each in first}) > 5
        assert [each.what for each in first] != [generate(family, 4, i).what for i in range(20)]


def test_choices_do_not_depend_on_the_python_that_draws_them() -> None:
    rng = Draw("0/gemm/0")
    assert [rng.log(1, 4096), rng.size(1, 4096), rng.pick("a", "b", "c"), rng.weigh({"x": 1, "y": 3})] == [3604, 32, "c", "y"]


def test_sizes_stay_within_their_bounds_and_are_often_those_of_models() -> None:
    rng = Draw("sizes")
    sizes = [rng.size(3, 5000) for _ in range(4000)]
    assert min(sizes) >= 3 and max(sizes) <= 5000
    assert 0.3 < sum(each % 8 == 0 for each in sizes) / len(sizes) < 0.6
    assert sum(each % 2 for each in sizes) > 800


def test_cases_are_within_the_limits_and_mostly_short() -> None:
    limits = Limits()
    cases = [generate(family, 0, i) for family in families.load() for i in range(100)]
    assert all(each.allocated <= limits.bytes and each.estimate <= limits.seconds for each in cases)
    assert sum(each.estimate > limits.usual for each in cases) < 0.1 * len(cases)


def test_no_case_within_the_limits_is_none() -> None:
    assert generate(Family("large", 1, 0, lambda rng: Case("x", lambda make: None, 1e12)), 0, 0) is None


def test_families_take_turns_by_weight_and_go_on_where_they_were() -> None:
    chosen = [Family("a", 3, 0, None), Family("b", 1, 1, None)]
    first = [(family.name, index) for family, index in itertools.islice(interleave(chosen, {}), 8)]
    assert sorted(first) == [("a", i) for i in range(6)] + [("b", 0), ("b", 1)]
    done = {"a": sum(name == "a" for name, _ in first[:5]), "b": sum(name == "b" for name, _ in first[:5])}
    assert [(family.name, index) for family, index in itertools.islice(interleave(chosen, done), 3)] == first[5:]


def test_numbers_of_cases_differ_between_families() -> None:
    cases = [generate(family, 0, i) for family in families.load() for i in range(3)]
    assert len({each.number for each in cases}) == len(cases)
    assert len(families.WEIGHTS) < FAMILY_SLOTS


@needs_torch
@pytest.mark.parametrize("name", [name for name in families.NAMES if name not in ("tbe", "operators", "inductor")])
def test_every_family_has_cases_that_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from steptime.measure import runner as running
    from steptime.measure.runner import Runner

    monkeypatch.setattr(running, "LONGEST", 60.0)  # this processor may be busy
    (family,) = families.load([name])
    runner = Runner(torch, "cpu", 1_000_000)
    ready = [runner.ready(generate(family, 0, i, SMALL)) for i in range(60)]
    only_gpu = ("on the CPU", "'CPU' backend", "CUDA", "not implemented for", "index out of range", "too long on the host")
    only_gpu += ("scale_a.numel() == 1",)  # scales of rows
    unexpected = [reason for reason in runner.skipped if not any(each in reason for each in only_gpu)]
    assert not unexpected
    least = {"attention": 0, "wide_heads": 0, "scaled": 30}.get(name, 40)
    assert sum(each is not None for each in ready) >= least


@needs_torch
def test_regions_of_compiled_functions_run_as_they_are_and_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from steptime.measure.families import inductor
    from steptime.measure.tensors import Maker

    compiled = torch.compile
    family = Family("inductor", 1, 0, inductor.draw)
    for backend, count in ((None, 60), ("aot_eager", 4)):
        monkeypatch.setattr(torch, "compile", lambda f, backend=backend, **_: compiled(f, backend=backend) if backend else f)
        for index in range(count):
            generate(family, 0, index, Limits(bytes=2e7, brief=0.0)).setup(Maker(torch, "cpu"))()


def test_a_batch_ends_where_making_its_cases_ready_takes_too_long() -> None:
    from steptime.measure.sweep import BATCH_SECONDS, Options, Sweep

    slow = Family("slow", 1, 0, lambda rng: Case("x", lambda make: None, 1e7, prepare=BATCH_SECONDS / 3))
    sweep = Sweep.__new__(Sweep)
    sweep.options, sweep.families, sweep.limits = Options(Path("x"), device="cpu", cases=7), [slow], Limits()
    sweep.progress = type("P", (), {"done": {}})()
    sweep.skipped = {}
    assert [len(batch) for batch in sweep._batches()] == [3, 3, 1]


def test_rare_shapes_are_drawn_together_with_usual_ones() -> None:
    chosen = {family.name: [generate(family, 0, i).what for i in range(600)] for family in families.load(["layout", "rare_shapes"])}
    rare, layout = chosen["rare_shapes"], chosen["layout"]
    for start in ("conv1d", "odd conv", "transposed conv", "efficient attention", "layer_norm", "group_norm", "bmm", "cat of", "gather"):
        assert sum(each.startswith(start) for each in rare) >= 8, start
    assert sum("dilation" in each and "dilation 1 " not in each for each in rare) >= 20
    assert any("mask each" in each for each in rare) and any("over 1 backward" in each for each in rare)
    usual = sum(each.startswith(("conv2d", "linear (", "mm ", "embedding_bag:", "fused", "foreach", "batch_norm")) for each in rare)
    assert usual >= 60
    assert sum(each.startswith(("channels-last", "permuted", "copy")) for each in layout) > 450


def test_shapes_of_third_party_models_are_drawn_together_with_usual_ones() -> None:
    (family,) = families.load(["third_party"])
    drawn = [case.what for case in (generate(family, 0, i) for i in range(400)) if case is not None]
    counts = {start: sum(each.startswith(start) for each in drawn) for start in ("patches", "bmm", "cat of")}
    assert all(count >= 20 for count in counts.values()), counts
    assert sum("over classes first" in each for each in drawn) >= 40 and sum("lie apart" in each for each in drawn) >= 10
    assert sum(each.startswith(("conv2d", "linear (", "mm ", "embedding_bag:", "fused", "foreach", "batch_norm")) for each in drawn) >= 30


def test_renamed_families_draw_the_cases_of_their_earlier_names() -> None:
    first = {family.name: generate(family, 0, 3) for family in families.load(list(families.RENAMED.values()))}
    assert {name: case.what for name, case in first.items()} == {
        "rare_shapes": "odd conv [8, 8, 128, 128] [10, 8, 5, 5] stride 1 dilation 1 float32",
        "hard_shapes": "channels-last sum over [0] [31, 512, 15, 15] float32",
        "long_softmax": "_softmax [383, 3582] bfloat16",
        "rare_layers": "short rows [4096, 65, 2] [480, 65, 1] stride 1 dilation 1 float32",
        "third_party": "_log_softmax over classes first [16, 448, 1189] bfloat16",
    }
    assert main(["--families", ",".join(families.RENAMED), "--list"]) == OK


def test_our_own_operators_have_shapes_of_recommenders(monkeypatch: pytest.MonkeyPatch) -> None:
    from steptime.operators import library

    monkeypatch.setattr(library, "available", lambda: True)
    (family,) = families.load(["operators"])
    cases = [generate(family, 0, i) for i in range(400)]
    assert all(each.compile is not None and each.ops == "steptime::" for each in cases)
    kinds = {each.what.partition(":")[0] for each in cases}
    assert {"bags", "bags backward sgd", "bags backward adam", "gather", "interaction", "interaction backward"} <= kinds
    assert sum("26 tables" in each.what for each in cases) > 20 and sum(" weighted" in each.what for each in cases) > 10


def test_a_family_whose_library_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from steptime.operators import library

    monkeypatch.setattr(library, "available", lambda: False)
    assert main(["--families", "operators", "--list"]) == USAGE
    assert "cargo build --release -p steptime-cuda-capi" in capsys.readouterr().err
    assert "operators" not in [family.name for family in families.load()]


def test_kernels_are_compiled_for_the_case_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from steptime.measure import sweep

    compiled = []

    def draw(rng: Draw) -> Case:
        number = rng.log(1, 1000000)
        return Case(str(number), lambda make: None, 1e6, compile=lambda device: compiled.append((number, device)))

    family = Family("own", 1, 0, draw)
    monkeypatch.setattr(sweep, "load", lambda names: [family])
    sweep.compile_case("own", 3, 5, Limits(), "cuda:0")
    assert compiled == [(int(generate(family, 3, 5).what), "cuda:0")]


@needs_torch
def test_zipf_indices_stay_in_the_table_and_some_rows_are_popular() -> None:
    import torch

    from steptime.measure.tensors import Maker

    make = Maker(torch, "cpu")
    for high in (1, 2, 10, 12345, 10_000_000):
        index = make.indices((5000,), high, "zipf:1.2")
        assert 0 <= int(index.min()) and int(index.max()) < high
    assert 0 <= int(make.indices((500,), 10, "zipf:1").max()) < 10
    scattered = make.indices((20000,), 1000, "zipf:1.2")
    counts = torch.bincount(scattered, minlength=1000).sort(descending=True).values
    assert counts[0] > 10 * counts[100] and int(scattered.mode().values) == 12345 % 1000


@needs_torch
def test_zipf_ranks_are_as_frequent_as_the_law_says() -> None:
    import torch

    from steptime.measure.tensors import Maker

    draws, rows = 1_000_000, 1000
    for exponent in (0.6, 1.0, 1.05, 1.2):
        weights = torch.arange(1, rows + 1, dtype=torch.float64) ** -exponent
        exact = weights / weights.sum()
        drawn = torch.bincount(Maker(torch, "cpu").zipf_ranks((draws,), rows, exponent), minlength=rows) / draws
        for first, last in ((0, 1), (1, 2), (2, 8), (8, 9), (9, 20), (20, 200), (200, 1000)):
            share = float(exact[first:last].sum())
            within = 5 * (share / draws) ** 0.5 + 2e-3 * share
            assert abs(float(drawn[first:last].sum()) - share) < within, (exponent, first, last)


# Harvest -----------------------------------------------------------------------------------------------------------


def op(name: str, ts: float, dur: float, id: int, dims: Any = (), types: Any = (), tid: int = 1) -> Dict[str, Any]:
    args = {"External id": id, "Input Dims": list(dims), "Input Strides": [], "Input type": list(types), "Concrete Inputs": ["", "1"]}
    return {"ph": "X", "cat": "cpu_op", "name": name, "tid": tid, "ts": ts, "dur": dur, "args": args}


def activity(cat: str, name: str, ts: float, dur: float, id: int) -> Dict[str, Any]:
    args = {"External id": id, **({"grid": [4, 2, 1], "block": [32, 4, 1]} if cat == "kernel" else {})}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}


def region(case: int, state: str, repetition: int, ts: float, dur: float) -> Dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": region_name(case, state, repetition), "tid": 1, "ts": ts, "dur": dur, "args": {}}


def synthetic() -> list:
    """Case 7 in two states with three repetitions: a linear layer that clears and multiplies, then a copy it calls; and a flush."""
    events, id = [], 0
    for state in ("cold", "after:4096"):
        for repetition in range(3):
            at = 100.0 * id + 1000
            events += [op("aten::sum", at - 30, 10, id + 1), activity("kernel", "void flush(int)", at, 50, id + 1)]
            events.append(region(7, state, repetition, at, 50))
            events += [op("aten::addmm", at + 1, 40, id + 2, [[8, 4]], ["float"]), op("aten::copy_", at + 5, 10, id + 3)]
            events.append(activity("gpu_memset", "Memset (Device)", at + 60, 1, id + 2))
            events.append(activity("kernel", "void gemm<float, 3>(float*)", at + 70, 10 + repetition, id + 2))
            events.append(activity("gpu_memcpy", "Memcpy DtoD (Device -> Device)", at + 50, 5, id + 3))
            id += 10
    events.append({"ph": "i", "name": "no category"})
    return events


ABOUT = {7: {"family": "gemm", "tf32": True, "indices": "uniform", "devices": {"aten::copy_": '["cuda","cpu"]'}}}


def test_each_operator_with_work_of_its_own_gives_a_row_a_state() -> None:
    rows = harvest(synthetic(), ABOUT)
    assert [(row["op"], row["state"], row["leaf"]) for row in rows] == [
        (name, state, leaf) for state in ("cold", "after:4096") for leaf, name in enumerate(("aten::addmm", "aten::copy_"))
    ]
    first, copy = rows[:2]
    assert (first["us"], first["us_min"], first["us_max"], first["reps"]) == (12, 11, 13, 3)
    assert json.loads(first["kernels"]) == ["Memset (Device)", "gemm"] and first["kernel_us"] == [1, 11]
    assert json.loads(first["grids"]) == [[], [4, 2, 1, 128]]
    assert (first["span_us"], copy["span_us"]) == (21, 5)
    assert (first["dims"], first["types"], first["concrete"], first["tf32"]) == ("[[8,4]]", '["float"]', '["","1"]', True)
    assert (copy["us"], copy["kernels"], copy["devices"], first["devices"]) == (5, '["Memcpy DtoD (Device -> Device)"]', '["cuda","cpu"]', "")
    assert set(first) == set(sheet.COLUMNS)


def test_a_repetition_that_called_other_operators_is_left_out() -> None:
    events = [event for event in synthetic() if not (event["name"] == "aten::copy_" and event["args"]["External id"] == 3)]
    rows = harvest(events, ABOUT)
    assert [(row["op"], row["reps"]) for row in rows if row["state"] == "cold"] == [("aten::addmm", 2), ("aten::copy_", 2)]


def test_of_thousands_of_kernels_the_first_are_listed() -> None:
    events = [region(1, "warm", 0, 0, 50), op("aten::conv", 1, 5, 1)] + [activity("kernel", "fft", 9 + i, 2, 1) for i in range(1000)]
    (row,) = harvest(events, {1: {"family": "conv"}})
    assert (row["us"], row["span_us"], len(row["kernel_us"]), len(json.loads(row["grids"]))) == (2000, 1001, 64, 64)


def test_only_the_operators_that_a_case_is_about_give_rows() -> None:
    rows = harvest(synthetic(), {7: {**ABOUT[7], "ops": "aten::addmm"}})
    assert {row["op"] for row in rows} == {"aten::addmm"}


def test_lists_of_tensors_are_as_the_case_says() -> None:
    events = [region(1, "warm", 0, 0, 50), op("aten::_foreach_add_", 1, 5, 1, [[], []], ["", "Scalar"]), activity("kernel", "k", 9, 2, 1)]
    lists = {"aten::_foreach_add_": {0: ([[64, 3], []], [[3, 1], []], "TensorList<float>")}}
    (row,) = harvest(events, {1: {"family": "optimizer", "lists": lists}})
    assert (row["dims"], row["strides"], row["types"]) == ("[[[64,3],[]],[]]", "[[[3,1],[]]]", '["TensorList<float>","Scalar"]')


def test_regions_of_other_programs_and_unknown_cases_are_ignored() -> None:
    assert harvest(synthetic(), {}) == []


def test_a_trace_file_is_removed_once_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": synthetic()}))
    assert len(harvest_file(str(path), ABOUT)) == 4
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)", "at::native::vectorized_elementwise_kernel"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<int>(int)", "at::native::anonymous::multi_tensor_apply_kernel"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T::Params)", "cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>"),
        ("void cudnn::ops::nchwToNhwcKernel<float, (Type)2>(cudnn::P<float>)", "cudnn::ops::nchwToNhwcKernel<float, (Type)2>"),
        ("nvjet_sm90_tst_208x192_64x4_1x2_h_bz_coopB_TNN", "nvjet_sm90_tst_208x192_64x4_1x2_h_bz_coopB_TNN"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("sm80_xmma_" + "x" * 200, "sm80_xmma_" + "x" * 110),
    ],
)
def test_short_names_of_kernels(name: str, expected: str) -> None:
    assert kernels.short(name) == expected


# Files -------------------------------------------------------------------------------------------------------------


def row(**changes: Any) -> Dict[str, Any]:
    (first, *_) = harvest(synthetic(), ABOUT)
    return {**first, **changes}


@pytest.fixture(params=[pytest.param("rows.parquet", marks=needs_arrow), "rows.jsonl.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / request.param


def test_rows_and_metadata_come_back(path: Path) -> None:
    first = sheet.Sheet(path)
    first.add([row(case=1)])
    first.write({"seed": "5"})
    again = sheet.Sheet(path)
    assert again.load() == {"seed": "5"} == sheet.peek(path)
    again.add([row(case=2), row(case=3)])
    again.write({"seed": "6"})
    last = sheet.Sheet(path)
    assert last.load() == {"seed": "6"} and last.count == again.count == 3


def test_a_failed_write_leaves_the_old_file(path: Path) -> None:
    good = sheet.Sheet(path)
    good.add([row()])
    good.write({"seed": "5"})
    before = path.read_bytes()
    bad = sheet.Sheet(path)
    bad.add([row(us=object())])
    with pytest.raises(Exception):
        bad.write({"seed": "6"})
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@needs_arrow
def test_json_lines_become_parquet(tmp_path: Path) -> None:
    lines, out = tmp_path / "rows.jsonl.gz", tmp_path / "rows.parquet"
    source = sheet.Sheet(lines)
    source.add([row(case=1), row(case=2)])
    source.write({"seed": "5"})
    assert main(["--convert", str(lines), "--out", str(out)]) == OK
    table = sheet.arrow().parquet.read_table(out)
    assert table.column("case").to_pylist() == [1, 2] and table.schema.metadata[b"seed"] == b"5"
    assert table.schema.field("kernel_us").type == sheet.schema().field("kernel_us").type


def test_without_pyarrow_rows_go_into_json_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sheet, "arrow", lambda: None)
    assert sheet.path_for(tmp_path / "a.parquet") == tmp_path / "a.parquet.jsonl.gz"
    assert main(["--convert", "x.jsonl.gz", "--out", "y.parquet"]) == USAGE


# The whole -----------------------------------------------------------------------------------------------------------


class InPlace:
    """A pool without processes, which runs work immediately."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, run: Any, *args: Any) -> Future:
        future: Future = Future()
        future.set_result(run(*args))
        return future

    def shutdown(self) -> None:
        pass


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Any:
    from steptime.measure import runner, sweep

    monkeypatch.setattr(sweep, "ProcessPoolExecutor", InPlace)
    monkeypatch.setattr(runner, "LONGEST", float("inf"))  # the machine may be busy
    return sweep


def read(path: Path) -> list:
    return sheet.arrow().parquet.read_table(path).to_pylist()


def measure(out: Path, *more: str) -> int:
    return main(["--device", "cpu", "--families", "gemm,elementwise,reduce", "--out", str(out), *more])


@needs_torch
@needs_arrow
def test_a_sweep_goes_on_where_the_file_stops(quick: Any, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    assert measure(whole, "--cases", "24") == OK
    for _ in range(2):
        assert measure(parts, "--cases", "12") == OK
    assert {each["case"] for each in read(whole)} == {each["case"] for each in read(parts)}
    meta = sheet.peek(parts)
    assert meta["cases_done"] == "24" and meta["steptime_sweep_version"] == "1" and meta["device"] == "cpu"
    rows = read(parts)
    assert len({(each["case"], each["state"], each["leaf"]) for each in rows}) == len(rows)
    assert {"cold", "warm"} <= {each["state"] for each in rows}
    assert all(each["us_min"] <= each["us"] <= each["us_max"] for each in rows)


@needs_torch
@needs_arrow
def test_rows_of_another_machine_or_seed_are_not_mixed(quick: Any, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "rows.parquet"
    first = sheet.Sheet(out)
    first.add([row()])
    first.write({"steptime_sweep_version": "1", "device": "another GPU", "seed": "0"})
    before = out.read_bytes()
    assert measure(out, "--cases", "2") == USAGE
    assert "another GPU" in capsys.readouterr().err and out.read_bytes() == before
    other = tmp_path / "seed.parquet"
    assert measure(other, "--cases", "2") == OK
    assert measure(other, "--cases", "2", "--seed", "1") == USAGE


@needs_torch
@needs_arrow
def test_an_interrupt_writes_what_is_there(quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = quick.Runner.run, []

    def interrupted(self: Any, cases: list, path: str) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(self, cases, path)

    monkeypatch.setattr(quick, "BATCH", 5)
    monkeypatch.setattr(quick.Runner, "run", interrupted)
    out = tmp_path / "rows.parquet"
    assert measure(out, "--cases", "20") == OK
    assert sheet.peek(out)["cases_done"] == "5" and read(out)


@needs_torch
@needs_arrow
def test_after_a_failed_gpu_the_next_run_passes_over_the_batch(quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from steptime.measure.runner import DeviceFailed

    def failing(self: Any, cases: list, path: str) -> Any:
        raise DeviceFailed("illegal access")

    out = tmp_path / "rows.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(quick.Runner, "run", failing)
        assert measure(out, "--cases", "6") == FAILED
    assert sheet.peek(out)["cases_done"] == "6"
    assert measure(out, "--cases", "6") == OK
    assert min(each["case"] for each in read(out)) >= FAMILY_SLOTS


@needs_torch
def test_cases_that_cannot_run_are_counted(quick: Any) -> None:
    import torch

    from steptime.measure.runner import DeviceFailed, Runner

    def broken(message: str) -> Case:
        def run() -> None:
            raise RuntimeError(message)

        return Case("x", lambda make: Op(run), 8.0, family="gemm")

    runner = Runner(torch, "cpu", 1000)
    assert runner.ready(broken("CUDA out of memory. Tried to allocate 3 GiB")) is None
    assert runner.skipped == {"gemm: RuntimeError: out of memory": 1}
    with pytest.raises(DeviceFailed):
        runner.ready(broken("CUDA error: an illegal memory access was encountered"))


@needs_torch
@needs_arrow
def test_the_command_with_its_processes(tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert main(["--device", "cpu", "--cases", "60", "--out", str(out)]) == OK
    rows = read(out)
    assert len({each["family"] for each in rows}) >= 10
    lists = [each for each in rows if each["op"] == "aten::cat" and each["family"] == "concat_index"]
    assert all(json.loads(each["types"])[0].startswith("TensorList<") for each in lists)


def test_wrong_usage(capsys: pytest.CaptureFixture) -> None:
    assert main([]) == USAGE
    assert main(["--families", "gemms", "--list"]) == USAGE
    assert families.available("tbe") or main(["--families", "tbe", "--list"]) == USAGE
    assert main(["--list"]) == OK and "gemm: weight 25" in capsys.readouterr().out
    assert main(["--list", "--cases", "5", "--families", "conv"]) == OK


def test_random_is_not_disturbed() -> None:
    random.seed(1)
    before = random.getstate()
    generate(families.load(["gemm"])[0], 0, 0)
    assert random.getstate() == before
