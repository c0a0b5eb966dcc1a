"""The package over its native half: the same answers as the program's, tables, exceptions, lazy imports."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

import steptime
from steptime import errors
from steptime.table import Table

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DLRM = EXAMPLES / "dlrm_default_2048"

pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")


def program(*arguments: str, given: str = "") -> str:
    """Output of the program."""
    command = [sys.executable, "-m", "steptime", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout


# The same answers as the program's ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dlrm_default_2048", "resnet50_32", "dlrm_default_fused_2048"])
@pytest.mark.parametrize("device", [None, "h200", "a100"])
def test_predictions_are_those_of_the_program(name: str, device: str | None) -> None:
    on = [] if device is None else ["--device", device]
    found = steptime.predict(EXAMPLES / name, device=device)
    assert found.raw == json.loads(program("predict", str(EXAMPLES / name), *on, "--json"))
    assert str(found) == program("predict", str(EXAMPLES / name), *on).rstrip()


def test_causes_of_idle_time_have_the_names_that_the_program_prints() -> None:
    found = steptime.predict(DLRM)
    printed = program("predict", str(DLRM))
    shown = [name for name, ms in found.idle_by_name() if ms >= 0.0005]
    assert len(shown) > 3 and all(f"· {name}" in printed for name in shown)
    assert [ms for _, ms in found.idle_by_name()] == list(found.idle.values())


def test_questions_one_after_the_other_about_an_open_input_are_those_about_a_closed_one() -> None:
    found = steptime.predict(DLRM, device="h200")
    on = ["--device", "h200", "--json"]
    assert found.what_if(batch=8192).raw == json.loads(program("whatif", str(DLRM), "--batch", "8192", *on))
    assert found.explain().raw == json.loads(program("explain", str(DLRM), *on))
    assert found.roofline().raw == json.loads(program("roofline", str(DLRM), *on))
    other = EXAMPLES / "dlrm_default_fused_2048"
    assert found.compare(other).raw == json.loads(program("compare", str(DLRM), str(other), *on))
    assert found.on("a100").raw == steptime.predict(DLRM, device="a100").raw


def test_which_gpu_and_which_batch(tmp_path: Path) -> None:
    found = steptime.predict(EXAMPLES / "resnet50_32", device="h200").choose(["h100", "t4"])
    on = ["--device", "h100,t4", "--json"]
    assert found.raw == json.loads(program("choose", str(EXAMPLES / "resnet50_32"), *on))
    assert str(found) == program("choose", str(EXAMPLES / "resnet50_32"), *on[:2]).rstrip()
    assert found.gpus == ["h100", "t4"] and found.largest["fits"] == [True, True]
    assert found.largest["of_first"][0] == 1 and found.largest["sure"][1] is True
    assert found.recorded["batch"] == [32, 32] and len(found.remedies) == 0
    (tmp_path / "prices.toml").write_text("h100 = 2.5\nt4 = 0.1\n")
    priced = steptime.choose(EXAMPLES / "resnet50_32", device="h100,t4", price=tmp_path / "prices.toml")
    assert priced.largest["cost"] == sorted(priced.largest["cost"])


def test_doubts_hold_all_that_is_assumed() -> None:
    found = steptime.predict(DLRM / "et.json.gz", device="h200")
    kinds = [each["kind"] for each in found.raw["doubts"]]
    assert {"host", "kernels", "interval", "indices"} <= set(kinds)
    assert set(found.warnings) <= set(found.doubts)
    factors = [each["factor"] or 1 for each in found.raw["doubts"]]
    assert factors == sorted(factors, reverse=True), "the worst comes first"
    lines = str(found).splitlines()
    assert lines[3].startswith("! "), lines[:5]


def test_every_other_answer_can_be_had() -> None:
    assert steptime.inspect(DLRM).raw == json.loads(program("inspect", str(DLRM), "--json"))
    assert steptime.validate(DLRM).raw == json.loads(program("validate", str(DLRM), "--json"))
    assert list(steptime.devices()) == json.loads(program("device", "list", "--json"))
    assert steptime.device_profile("h200").raw == json.loads(program("device", "show", "h200", "--json"))
    assert steptime.host_profile() == json.loads(program("host", "show", "--json"))
    plan = steptime.gather_plan(8192, 4096, 16384)
    assert plan.raw == json.loads(program("gather-plan", "--rows=8192", "--dim=4096", "--lookups=16384", "--json"))
    query = {"op": "aten::addmm", "shapes": [[1024], [2048, 512], [512, 1024]], "dtype": "float"}
    answer = program("kernels", "predict", "--device", "h200", "--json", given=json.dumps(query) + "\n")
    assert steptime.kernels([query, query], device="h200") == [json.loads(answer)] * 2


def test_files_are_written_as_the_program_writes_them(tmp_path: Path) -> None:
    timeline = steptime.predict(DLRM).timeline(tmp_path / "step.json")
    assert len(json.loads(timeline.read_text())["traceEvents"]) > 100
    changed = steptime.what_if(DLRM, cuda_graph=True, graph=tmp_path / "step.dot")
    assert (tmp_path / "step.dot").read_text().startswith("digraph")
    assert changed.speedup > 1
    steptime.fit_host_profile([DLRM, EXAMPLES / "resnet50_32"], tmp_path / "host.toml")
    assert steptime.predict(DLRM, host=str(tmp_path / "host.toml")).step_ms > 0


def test_the_viewer_is_one_file(tmp_path: Path) -> None:
    shown = steptime.predict(DLRM, device="a100").view(tmp_path / "page.html")
    page = shown.path.read_text()
    assert page.startswith("<!doctype html>") and "<title>" in page
    assert 'sandbox="allow-scripts allow-downloads"' in shown._repr_html_() and "srcdoc" in shown._repr_html_()
    assert steptime.view(DLRM, against=EXAMPLES / "dlrm_default_fused_2048").path.stat().st_size > 10_000


# Changes -----------------------------------------------------------------------------------------------------------


def test_changes_are_said_in_python() -> None:
    found = steptime.what_if(DLRM, set={"tables[0].rows": 500_000}, fuse=["embedding-bags", "linear"], checkpoint=False)
    assert found.transforms["name"] == ["set", "fuse-embedding-bags", "fuse-linear"]
    assert found.before.step_ms == steptime.predict(DLRM).step_ms
    assert found.step_ms == found.after.step_ms


def test_an_unknown_change_is_named_with_the_nearest_one() -> None:
    with pytest.raises(steptime.UsageError, match="'batchsize' is not a change: did you mean batch"):
        steptime.what_if(DLRM, batchsize=3)
    with pytest.raises(steptime.UsageError, match="the changes are"):
        steptime.predict(DLRM).what_if(zzz=3)


def test_what_bounds_the_step_and_what_helps() -> None:
    found = steptime.explain(DLRM)
    assert found.suggestions["saves_ms"] == sorted(found.suggestions["saves_ms"], reverse=True)
    assert found.together is not None and found.together.step_ms < found.before.step_ms
    assert abs(sum(found.bound["share"]) - 1) < 1e-9


# Exceptions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask, kind, words",
    [
        (lambda: steptime.predict("not/there"), errors.NotFound, "not/there"),
        (lambda: steptime.predict(ROOT / "README.md"), errors.InputError, "not a JSON trace"),
        (lambda: steptime.predict(DLRM, device="h300"), errors.UsageError, "did you mean h200"),
        (lambda: steptime.predict(DLRM, method="guess"), errors.UsageError, "method='guess'"),
        (lambda: steptime.predict(DLRM, keep_profiler=True, host="default"), errors.UsageError, "keep_profiler=True needs host='own'"),
        (lambda: steptime.predict(DLRM, 3), errors.UsageError, "step function"),
        (lambda: steptime.predict(DLRM, rank=-1), errors.UsageError, "rank"),
        (lambda: steptime.predict(DLRM, method="kernel-sum").explain(), errors.UsageError, "without method"),
        (lambda: steptime.what_if(DLRM, batch=0), errors.UsageError, "1 or more"),
        (lambda: steptime.choose(DLRM, device=[]), errors.UsageError, "names no GPU"),
        (lambda: steptime.choose(DLRM, device="h100", price="not/there.toml"), errors.Error, "h100 = 2.50"),
        (lambda: steptime.what_if(DLRM), errors.InputError, "nothing to change"),
        (lambda: steptime.what_if(EXAMPLES / "resnet50_32", fuse="embedding-bags"), errors.NotApplicable, "two embedding bags"),
        (lambda: steptime.kernels({"op": "aten::relu", "shapes": [[-1]]}, device="h200"), errors.InputError, ""),
        (lambda: steptime.validate(DLRM, lone=True), errors.UsageError, "kernels=NAME"),
        (lambda: steptime.predict(DLRM).timeline("/not/there/step.json"), errors.Error, "/not/there/step.json"),
    ],
)
def test_what_is_refused(ask: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=".") as raised:
        ask()
    assert isinstance(raised.value, steptime.Error)
    assert words in str(raised.value)


# Tables ------------------------------------------------------------------------------------------------------------

ROWS: List[Dict[str, Any]] = [
    {"name": "a", "count": 1, "ms": 0.5, "known": True, "shapes": [1, 2], "mixed": 1, "none": None},
    {"name": None, "count": 2, "ms": 1, "known": False, "shapes": [], "mixed": "x", "none": None},
]


def test_tables_are_read_by_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(Table("t", ROWS))
    assert [str(field.type) for field in table.schema] == ["string", "int64", "double", "bool", "string", "string", "null"]
    assert table.to_pylist()[0] == {"name": "a", "count": 1, "ms": 0.5, "known": True, "shapes": "[1, 2]", "mixed": "1", "none": None}
    assert pyarrow.table(Table("empty", [])).num_rows == 0


def test_tables_are_read_by_pandas() -> None:
    pytest.importorskip("pandas")
    frame = steptime.predict(DLRM).ops.to_pandas()
    assert list(frame.columns)[:2] == ["name", "count"] and len(frame) == len(steptime.predict(DLRM).ops)


def test_tables_are_read_by_polars() -> None:
    pytest.importorskip("polars")
    ops = steptime.predict(DLRM).ops
    assert ops.to_polars()["device_ms"].to_list() == ops["device_ms"]


def test_tables_say_which_columns_there_are() -> None:
    with pytest.raises(KeyError, match="there are name, count"):
        Table("t", ROWS)["nix"]


def test_notebooks_show_text_as_text() -> None:
    shown = Table("t", [{"name": "<script>alert(1)</script>"}])._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown
    p = steptime.predict(DLRM)
    for each in (p, p.ops, p.explain(), p.what_if(cuda_graph=True), p.roofline()):
        assert "<script" not in each._repr_html_() and "<table" in each._repr_html_()


# The process -------------------------------------------------------------------------------------------------------


def test_importing_loads_nothing_of_others() -> None:
    heavy = ["torch", "numpy", "pandas", "polars", "pyarrow", "typing", "json", "steptime._core", "steptime.prediction"]
    code = f"import sys; before = set(sys.modules); import steptime; print([m for m in {heavy} if m in set(sys.modules) - before])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"


def test_other_threads_run_while_a_question_is_answered() -> None:
    turns, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            turns[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = turns[0]
    steptime.explain(DLRM)
    counted = turns[0] - before
    stop.set()
    other.join()
    # In one time slice the other thread counts to a few thousand; with the lock held it would get only one or two slices.
    assert counted > 20_000


def test_questions_from_several_threads_have_the_same_answers() -> None:
    found: List[Any] = []
    p = steptime.predict(DLRM)
    threads = [threading.Thread(target=lambda: found.append(p.what_if(cuda_graph=True).raw)) for _ in range(4)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert len(found) == 4 and all(each == found[0] for each in found)


def test_the_program_lists_all_commands_and_gives_exit_codes() -> None:
    shown = program("--help")
    assert all(command in shown for command in ("predict", "whatif", "record", "measure", "query"))
    wrong = [([], 2), (["nix"], 2), (["predict", "not/there"], 1), (["--version"], 0)]
    for arguments, code in wrong:
        assert subprocess.run([sys.executable, "-m", "steptime", *arguments], capture_output=True).returncode == code


@pytest.mark.parametrize("module", ["", ".changes", ".explanation", ".job", ".prediction", ".profiles", ".report", ".table"])
def test_examples_of_the_documentation(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    outcome = doctest.testmod(importlib.import_module(f"steptime{module}"))
    assert outcome.attempted > 0 and outcome.failed == 0


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("ops", [{"name": "aten::mm"}])
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(steptime.MissingLibrary, match=f"pip install {library}"):
            getattr(table, f"to_{library}")()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_question_does_not_hold_up_ctrl_c(tmp_path: Path) -> None:
    # No process writes to the pipe.
    os.mkfifo(tmp_path / "et.json")
    script = (
        "import os, signal, sys, threading, steptime\n"
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try: steptime.inspect(sys.argv[1])\n"
        "except KeyboardInterrupt: print('heard', flush=True); os._exit(0)"
    )
    asked = subprocess.run([sys.executable, "-c", script, str(tmp_path / "et.json")], capture_output=True, text=True, timeout=60)
    assert asked.stdout == "heard\n", asked.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
def test_a_fork_is_answered_too() -> None:
    script = (
        "import multiprocessing, steptime, sys\n"
        "ask = lambda: steptime.predict(sys.argv[1], device='h200').step_ms\n"
        "def tell(to): to.send(ask())\n"
        "mine, (here, there) = ask(), multiprocessing.Pipe(False)\n"
        "fork = multiprocessing.get_context('fork').Process(target=tell, args=(there,)); fork.start()\n"
        "print(here.poll(50) and here.recv() == mine); fork.kill()"
    )
    asked = subprocess.run([sys.executable, "-c", script, str(DLRM)], capture_output=True, text=True, timeout=60)
    assert asked.stdout == "True\n", asked.stderr
