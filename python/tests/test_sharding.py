"""Plans for TorchRec, and table placements from the program."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

import steptime
from steptime import sharding
from steptime.errors import InputError, MissingLibrary, UsageError

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples" / "models" / "dlrm_4_gpus.toml"


class Config:
    """Fake of a table's configuration."""

    def __init__(self, name: str) -> None:
        self.name = name


class Module:
    """Fake of an `EmbeddingBagCollection`."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def embedding_bag_configs(self) -> List[Config]:
        return [Config(name) for name in self.names]


@pytest.fixture()
def torchrec(monkeypatch: pytest.MonkeyPatch) -> List[Tuple[Any, Dict[str, Any], Dict[str, Any]]]:
    """Fake of TorchRec whose functions return their arguments."""
    made: List[Tuple[Any, Dict[str, Any], Dict[str, Any]]] = []
    fake = types.ModuleType("torchrec.distributed.sharding_plan")
    for word in ("data_parallel", "row_wise", "table_wise", "column_wise", "table_row_wise", "grid_shard"):
        setattr(fake, word, lambda word=word, **given: (word, given))

    def construct(module: Any, by_name: Dict[str, Any], **options: Any) -> str:
        made.append((module, by_name, options))
        return "a plan"

    fake.construct_module_sharding_plan = construct  # type: ignore[attr-defined]
    distributed = types.ModuleType("torchrec.distributed")
    distributed.sharding_plan = fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchrec", types.ModuleType("torchrec"))
    monkeypatch.setitem(sys.modules, "torchrec.distributed", distributed)
    monkeypatch.setitem(sys.modules, "torchrec.distributed.sharding_plan", fake)
    return made


def said(kind: str, *shards: Tuple[int, List[int], List[int]]) -> Dict[str, Any]:
    """A table of a plan, from rank, offsets and sizes of each shard."""
    found = [{"shard_offsets": at, "shard_sizes": size, "placement": f"rank:{rank}/cuda:{rank}"} for rank, at, size in shards]
    return {"sharding_type": kind, "compute_kernel": "fused", "ranks": [rank for rank, _, _ in shards], "shards": found}


def plan(folder: Path, **tables: Dict[str, Any]) -> Path:
    """Writes a plan; returns its path."""
    path = folder / "plan.json"
    path.write_text(json.dumps({"plan": {"sparse": tables}}))
    return path


ALL = {
    "t_0": said("table_wise", (3, [0, 0], [9, 8])),
    "t_1": said("column_wise", (1, [0, 0], [9, 4]), (2, [0, 4], [9, 4])),
    "t_2": said("row_wise", *((rank, [2 * rank, 0], [2, 8]) for rank in range(4))),
    "t_3": {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1, 2, 3], "shards": None},
    "t_4": said("table_row_wise", (2, [0, 0], [5, 8]), (3, [5, 0], [4, 8])),
    "t_10": said("grid_shard", (2, [0, 0], [5, 4]), (3, [5, 0], [4, 4]), (0, [0, 4], [5, 4]), (1, [5, 4], [4, 4])),
}
WORDS = [
    ("table_wise", {"rank": 3}),
    ("column_wise", {"ranks": [1, 2]}),
    ("row_wise", {}),
    ("data_parallel", {}),
    ("table_row_wise", {"host_index": 1}),
    ("grid_shard", {"host_indexes": [1, 0]}),
]


def test_every_way_to_lie_has_its_word(tmp_path: Path, torchrec: List[Any]) -> None:
    module = Module("user", "item", "shop", "day", "word", "ad")
    assert steptime.torchrec_plan(plan(tmp_path, **ALL), module, world_size=4) == "a plan"
    ((given, by_name, options),) = torchrec
    # Tables in the order of their numbers are the module's in their order.
    assert list(by_name.items()) == list(zip(module.names, WORDS))
    assert given is module and options == {"world_size": 4}


def test_tables_in_host_memory_have_their_cache(tmp_path: Path, torchrec: List[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = types.ModuleType("torchrec.distributed.types")
    kinds.CacheParams = lambda **given: given  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchrec.distributed.types", kinds)
    made = types.SimpleNamespace(compute_kernel="fused", cache_params=None)
    fake = sys.modules["torchrec.distributed.sharding_plan"]
    monkeypatch.setattr(fake, "table_wise", lambda rank: lambda *given: made)
    table = {**ALL["t_0"], "compute_kernel": "fused_uvm_caching", "cache_params": {"load_factor": 0.25}}
    steptime.torchrec_plan(plan(tmp_path, t_0=table), Module("t_0"))
    assert torchrec[0][1]["t_0"]("param", 4, 4, "cuda", "sharder") is made
    assert (made.compute_kernel, made.cache_params) == ("fused_uvm_caching", {"load_factor": 0.25})


def test_tables_are_called_as_names_say(tmp_path: Path, torchrec: List[Any]) -> None:
    path = plan(tmp_path, **ALL)
    names = {table: f"my_{table}" for table in ALL}
    steptime.torchrec_plan(path, Module(), names)
    steptime.torchrec_plan(path, Module(), lambda table: f"my_{table}", node=2)
    steptime.torchrec_plan(path, Module(*reversed(list(ALL))))
    assert [set(by_name) for _, by_name, _ in torchrec] == [set(names.values()), set(names.values()), set(ALL)]
    assert torchrec[1][2] == {"local_size": 2}
    assert torchrec[2][1]["t_0"] == WORDS[0]
    with pytest.raises(UsageError, match="names= lacks t_10: it must map every table"):
        steptime.torchrec_plan(path, Module(), {table: table for table in ALL if table != "t_10"})
    with pytest.raises(UsageError, match="places 6 tables and the module has 1: map them with names="):
        steptime.torchrec_plan(path, Module("user"))


def test_what_torchrec_cannot_do_and_what_is_no_plan_is_said(tmp_path: Path, torchrec: List[Any]) -> None:
    def refused(words: str, **tables: Dict[str, Any]) -> None:
        with pytest.raises(InputError, match=words):
            steptime.torchrec_plan(plan(tmp_path, **tables), Module(*tables))

    refused("t_0 is cut into columns of", t_0=said("column_wise", (0, [0, 0], [9, 4]), (1, [0, 4], [9, 8])))
    refused("over all GPUs of a node", t_0=said("table_row_wise", (1, [0, 0], [5, 8]), (2, [5, 0], [4, 8])))
    refused("over all GPUs of a node", t_0=said("table_row_wise", (0, [0, 0], [5, 8]), (2, [5, 0], [4, 8])))
    refused("which steptime does not write", t_0=said("diagonal", (0, [0, 0], [5, 8])))
    refused("has no tables")
    with pytest.raises(InputError, match="over all GPUs of a node"):
        steptime.torchrec_plan(plan(tmp_path, t_4=ALL["t_4"]), Module("t_4"), node=4)
    for text in ("{", "[]", '{"plan": [1]}', '{"plan": {"m": {"t_0": {}}}}', '{"plan": {"m": {"t_0": 1}}}'):
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(InputError, match="a plan is"):
            steptime.torchrec_plan(tmp_path / "plan.json", Module("t_0"))
    assert torchrec == []


def test_without_torchrec_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchrec", None)
    monkeypatch.setitem(sys.modules, "torchrec.distributed", None)
    with pytest.raises(MissingLibrary, match="pip install torchrec"):
        steptime.torchrec_plan(plan(tmp_path, **ALL), Module())


def program(*arguments: str) -> Dict[str, Any]:
    """JSON answer of the program."""
    command = [sys.executable, "-m", "steptime", *arguments, "--json"]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def test_where_tables_lie_is_what_the_program_says(tmp_path: Path, torchrec: List[Any]) -> None:
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    path = tmp_path / "plan.json"
    found = steptime.shard(MODEL, gpus=4, device="h200", output=path)
    assert isinstance(found, sharding.Sharding)
    assert found.raw == program("shard", str(MODEL), "--gpus", "4", "--device", "h200")
    assert found.bound_ms is not None and found.regret is not None and found.bound_ms <= found.step_ms
    assert found.where["table"] == list(range(12)) and len(found.gpus) == 4
    assert found.predicted.step_ms == found.step_ms
    told = steptime.shard(MODEL, device="h200", evaluate=path)
    assert (told.step_ms, told.regret, told.bound_ms) == (found.step_ms, None, None)
    steptime.torchrec_plan(path, Module(*(f"f{table}" for table in range(12))))
    ranks = [given["rank"] for word, given in torchrec[0][1].values() if word == "table_wise"]
    assert [[rank] for rank in ranks] == found.where["gpus"]


def test_scaling_is_what_the_program_says(tmp_path: Path) -> None:
    pytest.importorskip("steptime._core", reason="the native half is not built (pip install ./python)")
    plot = tmp_path / "scale.svg"
    found = steptime.scale_out(MODEL, gpus=[2, 4], nodes=[1, 2], device="h200", weak=True, plot=plot)
    typed = ("--gpus=2", "--gpus=4", "--nodes=1", "--nodes=2", "--weak", "--device", "h200")
    assert found.raw == program("scale", str(MODEL), *typed)
    assert found.rows["nodes"] == [1, 2] and plot.read_text().startswith("<svg")
