"""Arguments of Python are those of the command line: the same answers, byte for byte, and errors in terms of Python."""

from __future__ import annotations

import contextlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

import steptime
from steptime import _ask, errors

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DLRM, FUSED, RESNET = (EXAMPLES / name for name in ("dlrm_default_2048", "dlrm_default_fused_2048", "resnet50_32"))
MODEL = EXAMPLES / "models" / "dlrm_4_gpus.toml"

core = pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")

# Operands of commands, in their order; all other arguments are options.
OPERANDS = ("input", "a", "b", "recordings", "sweeps", "name", "file")


class Listener:
    """The native half, with a list of the queries and their answers."""

    def __init__(self) -> None:
        self.heard: List[Tuple[str, Dict[str, Any], str, Tuple[str, str]]] = []
        self.Opened = core.Opened

    def ask(self, command: str, arguments: str, opened: List[Any], given: str) -> Tuple[str, str]:
        found: Tuple[str, str] = core.ask(command, arguments, opened, given)
        self.heard.append((command, json.loads(arguments), given, found))
        return found


def words(command: str, arguments: Dict[str, Any]) -> List[str]:
    """The command line with the same arguments."""
    operands = (*OPERANDS, *(["model"] if command in ("shard", "scale") else []))
    line = command.split(" ")
    for name in operands:
        value = arguments.get(name)
        line += [] if value is None else value if isinstance(value, list) else [value]
    for name, value in arguments.items():
        if name not in operands and value is not None and value is not False:
            flag = "--" + name.replace("_", "-")
            values = value if isinstance(value, list) else [value]
            if name in ("blocks", "gpus", "nodes", "device"):
                values = [",".join(map(str, values))] if values else []
            line += [flag] if value is True else [f"{flag}={each}" for each in values]
    return line


Call = Tuple[Callable[..., Any], Tuple[Any, ...], Dict[str, Any]]
PRICED: Dict[str, Any] = {"device": "a100", "host": "default", "models": "analytic", "indices": "zipf:1.05", "tf32": True}
PART: Dict[str, Any] = {"step": 6, "rank": 0}


def calls(folder: Path) -> List[Call]:
    """Calls that use every argument of every function."""
    plan, price = folder / "plan.toml", folder / "price.toml"
    plan.write_text("no-sync = true\n")
    price.write_text("h100 = 2.5\n")
    indices = folder / "indices.txt"
    indices.write_text("1\n2\n3\n")
    out = lambda name: folder / name  # noqa: E731
    return [
        (steptime.inspect, (DLRM,), PART),
        (steptime.predict, (DLRM,), {**PRICED, "host_speed": 0.5, "process": "fresh", **PART}),
        (steptime.predict, (DLRM,), {"method": "kernel-sum"}),
        (steptime.predict, (DLRM,), {"keep_profiler": True}),
        (steptime.explain, (DLRM,), {**PRICED, **PART}),
        (steptime.roofline, (DLRM,), {**{name: PRICED[name] for name in PRICED if name != "host"}, "plot": out("r.svg"), **PART}),
        (steptime.compare, (DLRM, FUSED), {"device": "h200", "host": "own"}),
        (steptime.validate, ([DLRM, FUSED],), {"host": "default", "kernels": "h200", "lone": True}),
        (steptime.validate, (str(DLRM),), {"replay_only": True}),
        (steptime.choose, (RESNET,), {**PRICED, "device": ["h100", "t4"], "price": price, "recorded_batch": 32, **PART}),
        (steptime.choose, (RESNET,), {"device": "h100,t4"}),
        (steptime.what_if, (DLRM,), {**PRICED, **PART, "batch": 4096, "recorded_batch": 2048, "batch_dim": 0, "plan": plan}),
        (steptime.what_if, (DLRM,), {"set": {"tables[0].rows": 500_000}, "fuse": ["embedding-bags", "linear"], "among": "aten::*"}),
        (steptime.what_if, (DLRM,), {"operators": "steptime", "prefetch_inputs": True, "no_sync": True, "reorder": True}),
        (steptime.what_if, (DLRM,), {"dtype": "bf16", "accumulate": 2, "cuda_graph": True, "host_speed": 2, "timeline": out("t.json"), "graph": out("g.dot")}),
        (steptime.what_if, (RESNET,), {"channels_last": True, "checkpoint": 2, "remove": ["aten::relu_"]}),
        (steptime.what_if, (RESNET,), {"checkpoint": True, "blocks": ["module:Net.down.*", "module:Net.up.*"]}),
        (steptime.what_if, (DLRM,), {"streams": 2, "on_stream": ["aten::embedding_bag"]}),
        (steptime.shard, (MODEL,), {"gpus": 4, "device": "h200", "nodes": 2, "memory": 60.5, "host_memory": 100, "indices": "uniform", "host": "default"}),
        (steptime.shard, (MODEL,), {"gpus": 4, "device": "h200", "output": out("plan.json"), "format": "torchrec", "module": "a.b"}),
        (steptime.shard, (MODEL,), {"device": "h200", "evaluate": out("plan.json")}),
        (
            steptime.scale_out,
            (MODEL,),
            {"gpus": [2, 4], "device": "h200", "nodes": [1], "host": "default", "weak": True, "price": 3.5, "plot": out("s.svg"), "indices": "uniform"},
        ),
        (steptime.devices, (), {}),
        (steptime.device_profile, ("h200",), {}),
        (steptime.host_profile, (), {}),
        (steptime.fit_host_profile, ([DLRM, RESNET], out("host.toml")), {"others": [FUSED]}),
        (steptime.host_profile, (out("host.toml"),), {}),
        (steptime.gather_plan, (8192, 64, 1024), {"zipf": 1.1, "device": "h100"}),
        (steptime.gather_plan, (8192, 64, 1024), {"indices": indices}),
        (steptime.kernels, ({"op": "aten::relu", "shapes": [[512, 512]]},), {name: PRICED[name] for name in PRICED if name != "host"}),
        (steptime.view, (DLRM, out("v.html")), {"device": "h200", "against": FUSED}),
    ]


def test_answers_are_those_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for function, given, named in calls(tmp_path):
        listener = Listener()
        monkeypatch.setattr(_ask, "core", lambda: listener)
        with contextlib.suppress(steptime.NotApplicable):
            function(*given, **named)
        command, arguments, text, (kind, answer) = listener.heard[-1]
        line = words(command, arguments)
        if text:
            printed = subprocess.run([sys.executable, "-m", "steptime", *line], input=text, capture_output=True, text=True, check=True).stdout
            assert (kind, answer) == ("", printed)
        else:
            typed = core.capture(line)
            assert (kind, answer) == typed if kind == "" else kind == typed[0], line


def test_the_calls_use_every_argument(tmp_path: Path) -> None:
    used: Dict[Callable[..., Any], set[str]] = {}
    for function, given, named in calls(tmp_path):
        positional = list(inspect.signature(function).parameters)[: len(given)]
        used.setdefault(function, set()).update(named, positional)
    from steptime.changes import change

    for function, names in used.items():
        wanted = set(inspect.signature(function).parameters)
        if function is steptime.what_if:
            wanted = (wanted | set(inspect.signature(change).parameters)) - {"changes", "source"}
        # A batch is only for a step function, which is recorded first.
        assert wanted - names - ({"batch"} if function is steptime.predict else set()) == set(), function


def test_numbers_of_other_libraries_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    found = steptime.what_if(DLRM, batch=numpy.int64(4096), host_speed=numpy.float32(0.5))
    assert found.raw == steptime.what_if(DLRM, batch=4096, host_speed=0.5).raw


@pytest.mark.parametrize(
    "ask, kind, said",
    [
        (lambda: steptime.predict(DLRM, method="guess"), errors.UsageError, "method='guess': must be one of simulate, paper, paper-published, kernel-sum"),
        (lambda: steptime.predict(DLRM, host_speed=float("inf")), errors.UsageError, "host_speed=inf: must be a finite number"),
        (lambda: steptime.predict(DLRM, host_speed=100), errors.UsageError, "host_speed=100: it is a factor between 0.05 and 50"),
        (lambda: steptime.predict(DLRM, host_speed=0.5), errors.InputError, "host_speed= needs a host profile: add host='default' or host=FILE"),
        (lambda: steptime.predict(DLRM, tf32="yes"), errors.UsageError, "tf32='yes': must be True or False"),
        (lambda: steptime.predict(DLRM, device=object()), errors.UsageError, "device=<object"),
        (lambda: steptime.predict(DLRM, device="a\udcff"), errors.UsageError, "is not UTF-8"),
        (lambda: steptime.predict(DLRM / "et.json.gz"), errors.InputError, "name a GPU to predict for (device='h200')"),
        (lambda: steptime.predict(DLRM, keep_profiler=True, host="default"), errors.UsageError, "keep_profiler=True needs host='own'"),
        (lambda: steptime.what_if(DLRM, recorded_batch=5), errors.UsageError, "batch= is required"),
        (lambda: steptime.what_if(DLRM, batch="many"), errors.UsageError, "batch='many': must be a whole number"),
        (lambda: steptime.what_if(DLRM), errors.InputError, "such as batch=, fuse= or cuda_graph=True, or plan=; `help(steptime.what_if)` lists all"),
        (lambda: steptime.choose(DLRM, device=["h100", "h100"]), errors.UsageError, "device= names h100 twice"),
        (lambda: steptime.validate(DLRM, lone=True), errors.UsageError, "lone=True has no measured kernels: it needs kernels=NAME"),
        (lambda: steptime.gather_plan(1, 1, 1, zipf=1.0, indices="x"), errors.UsageError, "zipf= excludes indices="),
        (lambda: steptime.shard(MODEL, device="h200"), errors.UsageError, "gpus= is required"),
        (lambda: steptime.scale_out(MODEL), errors.UsageError, "give device="),
    ],
)
def test_errors_speak_of_arguments(ask: Callable[[], Any], kind: type, said: str) -> None:
    with pytest.raises(kind) as raised:
        ask()
    assert said in str(raised.value) and "--" not in str(raised.value)


def test_a_path_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "-step").symlink_to(DLRM)
    monkeypatch.chdir(tmp_path)
    assert steptime.predict("-step").step_ms == steptime.predict(DLRM).step_ms
