"""The sweep of collectives: its cases, the reading of kernels and links, refusals, and a run of two ranks on the CPU."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

import steptime
from steptime.errors import UsageError
from steptime.measure import collectives
from steptime.measure.collectives import BYTES, COLUMNS, DTYPES, OK, USAGE, WHOLE, Case, Member, Timing


def gloo() -> bool:
    """Whether two ranks can run here on the CPU."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_gloo_available())


needs_gloo = pytest.mark.skipif(not gloo(), reason="PyTorch with gloo is not installed (pip install torch)")


def plan(*arguments: str, world: int = 8) -> List[Case]:
    return collectives.plan(collectives.parse(["-o", "x.csv", *arguments]), world)


# Cases -------------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_cases_and_another_other_sizes() -> None:
    first, again, other = plan(), plan(), plan("--seed", "1")
    assert first == again
    assert set(first) != set(other)
    powers = {case for case in first if case.bytes & (case.bytes - 1) == 0 and case.op != "all_to_all_v"}
    assert powers <= set(other) and 0.3 < len(powers) / len([case for case in first if case.op != "all_to_all_v"]) < 0.7


def test_every_op_is_measured_over_every_group_and_pairs_once() -> None:
    groups = {(case.op, case.world) for case in plan(world=6)}
    assert groups == {(op, world) for op in BYTES for world in ((2,) if op == "send_receive" else (2, 4, 6))}


def test_sizes_are_within_the_bounds_and_shared_evenly() -> None:
    for case in plan("--from", "3KiB", "--to", "1MB", "--dtypes", "float32,int64", world=6):
        assert 3072 - 8 * 6 < case.bytes <= 1_000_000
        assert case.bytes % (DTYPES[case.dtype] * (1 if case.op in WHOLE else case.world)) == 0


def test_uneven_parts_fit_the_buffers_and_their_skew_is_told() -> None:
    cases = [case for case in plan(world=4) if case.op == "all_to_all_v"]
    for case in cases:
        item = DTYPES[case.dtype]
        assert max(case.parts) * case.world * item == case.bytes and sum(case.parts) * item <= case.bytes
        assert 1 <= case.skew <= case.world
    assert Case("all_to_all_v", 4, 4096, "float32", (64, 128, 192, 256)) in cases  # rank r in proportion to r + 1
    assert len({round(case.skew, 2) for case in cases}) > 10
    assert {case.skew for case in plan() if case.op != "all_to_all_v"} == {1.0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ops", "all_reduce,reduce"], "no op 'reduce'; there are all_reduce, reduce_scatter"),
        (["--dtypes", "float8"], "no dtype 'float8'"),
        (["--groups", "2,9"], "from 2 to the 8 ranks"),
        (["--groups", "two"], "not a list of numbers"),
        (["--from", "1 mile"], "not a number of bytes"),
        (["--from", "2KiB", "--to", "1KiB"], "contains no size"),
        (["--from", "5", "--to", "7", "--sizes-per-doubling", "0"], "no power of two"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: List[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(*arguments)


def test_amounts_of_bytes() -> None:
    said = {"64": 64, "1KiB": 1024, "256MiB": 2**28, "1.5 kB": 1500, "2g": 2 * 10**9}
    assert {text: collectives.amount(text) for text in said} == said


def test_without_torchrun_the_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    assert collectives.main(["-o", "x.csv"]) == USAGE
    with pytest.raises(UsageError, match="torchrun --nproc-per-node N -m steptime.measure.collectives -o FILE.csv"):
        collectives.started()


# Kernels and links -------------------------------------------------------------------------------------------------

MARK = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<float>>"
SMALL, SENT = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_SendRecv(...)"


def test_kernels_are_those_after_the_small_all_reduce_of_each_call() -> None:
    names = [SMALL, MARK, SMALL, "nccl:all_to_all", SENT, MARK, SMALL, SENT, SENT, MARK, SMALL, SENT]
    kernels = [(name, 10.0 * at, 10.0 * at + 4) for at, name in enumerate(names)]
    assert collectives.cut(kernels, [2, 1]) == [[4.0, 14.0], [4.0]]
    assert collectives.cut(kernels, [2, 2]) == [[], []]  # a mark is missing
    assert collectives.cut(kernels[:-1], [2, 1]) == [[4.0, 14.0], []]  # a kernel is missing


def test_a_kernel_counts_on_the_rank_that_waited_least() -> None:
    assert collectives.shared([[9.0, 5.0, 7.0], [4.0, 8.0, 6.0]]) == 5.0
    assert collectives.shared([[9.0, 5.0], [4.0]]) is None
    assert collectives.shared([[], []]) is None


TOPOLOGY = (
    "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tNODE\tPIX\t0-47\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPIX\t0-47\t0\t\tN/A\n"
    "GPU2\tNODE\tSYS\t X \tSYS\t48-95\t1\t\tN/A\n"
    "NIC0\tPIX\tPIX\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
)


def test_the_link_of_a_group_is_its_slowest() -> None:
    between = collectives.links(TOPOLOGY)
    members = [Member("0", 0), Member("0", 1), Member("0", 2)]
    assert [collectives.link(members[:2], between), collectives.link(members, between)] == ["NV18", "SYS"]
    assert collectives.link([Member("0", 0), Member("1", 0)], between) == "NET"
    assert collectives.link([Member("0", 0), Member("0", None)], between) == ""
    assert collectives.link(members, collectives.links("")) == ""
    assert max("NV12", "NV4", "NV18", key=collectives.slowness) == "NV4"


def test_a_row_holds_the_slowest_rank_and_the_shortest_kernel() -> None:
    found = {Case("all_reduce", 2, 4096, "float32"): [Timing(30.0, 20.0, [9.0, 8.0]), Timing(31.0, 19.0, [7.0, 9.0])]}
    (row,) = collectives.rows(found, [Member("0", 0), Member("0", 1)], TOPOLOGY)
    assert row == ["all_reduce", "2", "1", "4096", "float32", "1", "31.000", "20.000", "7.500", "NV18"]


# Two ranks on the CPU ----------------------------------------------------------------------------------------------


def job(ranks: int, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs the command under torchrun."""
    package = str(Path(steptime.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [*launch, "-m", "steptime.measure.collectives", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@needs_gloo
def test_two_ranks_measure_every_op_on_the_cpu(tmp_path: Path) -> None:
    out = tmp_path / "sweep.csv"
    ran = job(2, "-o", out, "--backend", "gloo", "--from", 64, "--to", "1KiB", "--iterations", 3, "--seed", 7)
    assert ran.returncode == OK, ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sweep.csv", "sweep.json"]
    with out.open(newline="") as file:
        table = csv.DictReader(file)
        rows = list(table)
    assert tuple(table.fieldnames or ()) == COLUMNS
    assert {row["op"] for row in rows} == set(BYTES)
    planned = plan("--from", "64", "--to", "1KiB", "--seed", "7", world=2)
    assert {(row["op"], int(row["bytes"])) for row in rows} == {(case.op, case.bytes) for case in planned}
    for row in rows:
        assert (row["world"], row["nodes"], row["kernel_us"], row["link"]) == ("2", "1", "", "HOST")
        assert 0 < float(row["min_us"]) <= float(row["median_us"])
        assert (float(row["skew"]) > 1) <= (row["op"] == "all_to_all_v")
    about = json.loads(out.with_suffix(".json").read_text())
    assert (about["backend"], about["ranks"], about["nodes"], about["seed"]) == ("gloo", 2, 1, 7)
    assert about["cases"] == about["measured"] == len(rows)


@needs_gloo
def test_a_job_that_cannot_be_says_why_and_writes_nothing(tmp_path: Path) -> None:
    import torch

    ran = job(2, "-o", tmp_path / "sweep.csv", "--backend", "gloo", "--ops", "reduce")
    assert ran.returncode != OK and "there is no op 'reduce'; there are all_reduce" in ran.stderr
    if torch.cuda.device_count() < 2:
        ran = job(2, "-o", tmp_path / "sweep.csv")
        assert ran.returncode != OK and "NCCL needs a GPU for each rank, so 2 on this node" in ran.stderr
    assert list(tmp_path.iterdir()) == []
