"""A change applied to a recording gives the same as a recording of the changed script: small models, on the CPU."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fleet import ROOT, program  # noqa: E402

sys.path.insert(0, str(ROOT / "python" / "workloads"))

from pairs import __main__ as recording  # noqa: E402


def _compare() -> Any:
    """The module `benches/pairs.py`, which has the same name as the package."""
    spec = importlib.util.spec_from_file_location("compare_pairs", ROOT / "benches" / "pairs.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


compare = _compare()
# Largest difference of active time and of memory.
ACTIVE, MEMORY = 0.02, 0.03
# A recurrent layer returns 32-bit numbers under autocast on a CPU, and 16-bit ones in cuDNN: the recording of the changed script has two casts
# that a GPU does not have.
ACTIVE_OF = {("gru", "bf16"): 0.04}


PAIRS = [
    ("perceptron", "batch-x4"),
    ("perceptron", "batch-1"),
    ("perceptron", "tf32"),
    ("perceptron", "size-0"),
    ("perceptron", "loop-fused"),
    ("deepfm", "batch-x0.5"),
    ("deepfm", "remove-0"),
    ("square", "batch-x4"),
    ("unet", "channels-last"),
    ("perceptron", "bf16"),
    ("sasrec", "batch-1"),
    ("graph_attention", "batch-x4"),
    ("perceptron", "ddp"),
    ("conformer", "checkpoint"),
    ("unet", "checkpoint"),
    ("sasrec", "fsdp"),
    ("gru", "bf16"),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the recordings; each is made on first use. PyTorch's record of functions compiled by other tests is reset, because in a
    process that compiles the recorder notes neither modules nor lookups."""
    if dynamo := sys.modules.get("torch._dynamo"):
        dynamo.reset()
        dynamo.utils.counters.clear()
    return tmp_path_factory.mktemp("pairs")


def noted(folder: Path, model: str, change: str, on: str = "cpu") -> dict[str, Any]:
    """Makes the recordings of a pair; returns the notes on the changed one."""
    try:
        recording.record(model, folder / model, on, ["base", "loop", change])
    finally:
        if torch.distributed.is_initialized():  # by a script of several ranks
            torch.distributed.destroy_process_group()
    rows = {row["name"]: row for row in json.loads((folder / model / "pairs.json").read_text())}
    if "error" in rows[change]:
        pytest.fail(f"{model}/{change}: {rows[change]['error']}")
    return rows[change]


@pytest.mark.parametrize("model, change", PAIRS)
def test_what_is_asked_of_a_recording_is_what_the_changed_script_gives(recorded: Path, model: str, change: str) -> None:
    row = compare.compare(Path(program()), recorded / model, noted(recorded, model, change), "h200")
    assert not row.lost and not row.refused, row.lost or row.refused
    active = ACTIVE_OF.get((model, change), ACTIVE)
    assert abs(row.active) <= active and abs(row.memory) <= MEMORY, "\n".join(compare.explain(row))


@pytest.mark.parametrize("on", ["fake", "meta"])
def test_tensors_without_memory_give_what_real_ones_give(recorded: Path, on: str) -> None:
    noted(recorded, "unet", "base")
    elsewhere = recorded / on
    pair = {**noted(elsewhere, "unet", "base", on), "after": recorded / "unet" / "base", "before": "base", "flags": []}
    row = compare.compare(Path(program()), elsewhere / "unet", pair, "h200")
    assert abs(row.active) <= ACTIVE and abs(row.memory) <= MEMORY, "\n".join(compare.explain(row))


def test_parameters_are_counted_as_arithmetic_has_them(recorded: Path) -> None:
    for model, change in (("perceptron", "base"), ("deepfm", "base"), ("deepfm", "fsdp")):
        found = compare.sums(Path(program()), recorded / model, noted(recorded, model, change), "h200")
        assert found is not None and found.kinds["parameters"][1] <= found.kinds["parameters"][0] <= found.kinds["parameters"][2]
