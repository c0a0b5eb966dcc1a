"""Modules of described models, and checkpoints of `steptime-train`.

`data/tiny_run` has the folder of a run: `steptime-train model.toml --data rows --epochs 3 --rate 0.05 -o run --json > answer.json`, on
`steptime-train data synthetic model.toml --rows 400 --validation 0.5 -o rows`. Tests of the crate `steptime-train-cli` compare all kinds
of models.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch)")

from steptime import errors  # noqa: E402
from steptime.models import Checkpoint, build, description, load  # noqa: E402
from steptime.models import digest as hashes  # noqa: E402
from steptime.models.__main__ import main  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).parent / "data/tiny_run"
TYPES = {"u8": torch.uint8, "u16": torch.uint16, "i32": torch.int32}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the run, to be damaged."""
    return Path(shutil.copytree(TINY, tmp_path / "tiny_run"))


def validation() -> tuple:
    """Dense values, indices of each table, and labels of the rows for validation."""
    features = description.toml((TINY / "rows/features.toml").read_text(), "features.toml")

    def column(name: str, dtype: torch.dtype) -> torch.Tensor:
        return torch.frombuffer(bytearray((TINY / "rows" / name).read_bytes()), dtype=dtype)

    rows = slice(*features["splits"]["validation"])
    labels = column(features["label"]["file"], torch.float32)[rows]
    dense = column(features["dense"]["file"], torch.float32).view(-1, len(features["dense"]["columns"]))[rows]
    return dense, [column(one["file"], TYPES[one["type"]]).view(-1, one["hotness"])[rows].long() for one in features["categorical"]], labels


def checkpoint(run: Path) -> Path:
    return next((run / "run").iterdir())


def shard(run: Path) -> Path:
    return checkpoint(run) / "shard-00000.safetensors"


def refusal(*arguments: object, kind: type = errors.InputError) -> str:
    with pytest.raises(kind) as raised:
        load(*arguments)
    return str(raised.value)


def test_a_loaded_module_has_the_measures_of_the_program() -> None:
    module = load(TINY / "model.toml", TINY / "run")
    dense, lookups, labels = validation()
    with torch.no_grad():
        logits = module(dense, lookups)
    found = json.loads((TINY / "answer.json").read_text())["evaluations"][-1]
    assert found["samples"] == len(labels) == 200
    assert abs(float(module.loss(logits.double(), labels)) - found["log_loss"]) < 1e-5
    above = logits[labels > 0] - logits[labels == 0].T
    assert abs(float((above > 0).double().mean()) - found["auc"]) < 1e-5


def test_the_program_lists_what_is_loaded_and_writes_a_state(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    state = tmp_path / "state.pt"
    assert main([str(TINY / "model.toml"), "--checkpoint", str(TINY / "run"), "-o", str(state)]) == 0
    printed = capsys.readouterr().out
    module, opened = load(TINY / "model.toml", TINY / "run"), Checkpoint(TINY / "run")
    count, size = len(list(module.parameters())), sum(4 * each.numel() for each in module.parameters())
    assert f"step {opened.step}" in printed and f"loaded {count} tensors, {size} bytes" in printed
    assert f"left out {len(opened.tensors) - count} optimizer states" in printed
    other = build(TINY / "model.toml")
    other.load_state_dict(torch.load(state))
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), other.parameters()))
    assert main([str(TINY / "model.toml"), "--checkpoint", str(tmp_path)]) == 1
    assert "error:" in capsys.readouterr().err


def test_a_module_of_ones_own_is_filled_by_names() -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, child in build(TINY / "model.toml").named_children():
                self.add_module(name, child)

    own = load(Own(), TINY / "run")
    assert all(torch.equal(a, b) for a, b in zip(own.parameters(), load(TINY / "model.toml", TINY / "run").parameters()))
    own.register_parameter("more", torch.nn.Parameter(torch.ones(3)))
    assert "more is missing" in refusal(own, TINY / "run")
    del own.more
    own.top[0].bias = torch.nn.Parameter(torch.ones(3))
    assert "top.0.bias is [8] there, and [3] here" in refusal(own, TINY / "run")
    del own.tables
    assert "tables.0.weight is no parameter of the module" in refusal(own, TINY / "run")


def test_another_model_is_refused_with_its_differences(run: Path) -> None:
    text = (run / "model.toml").read_text()
    (run / "model.toml").write_text(text.replace("rows = 50", "rows = 60").replace("[8, 1]", "[9, 1]"))
    message = refusal(run / "model.toml", run / "run")
    assert "rows of table 0 is 50 there, and 60 here" in message and "top_mlp is [8, 1] there, and [9, 1] here" in message


def test_damage_is_named_with_its_file(run: Path) -> None:
    model, whole = run / "model.toml", shard(run).read_bytes()
    for damaged, words in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), "does not have its hash"),
        (whole[:-4], f"it has {len(whole) - 4} bytes, not {len(whole)}"),
    ):
        shard(run).write_bytes(damaged)
        message = refusal(model, run / "run")
        assert words in message and "shard-00000.safetensors" in message and "use an earlier one" in message
    shard(run).unlink()
    assert "it is missing" in refusal(model, run / "run")
    manifest = checkpoint(run) / "checkpoint.toml"
    text = manifest.read_text()
    manifest.write_text(text.replace("step = ", "step = 1", 1))
    assert "do not have the hash" in refusal(model, run / "run")
    manifest.unlink()
    assert "does not exist" in refusal(model, run / "run", kind=errors.NotFound)


def test_a_missing_checkpoint_or_model_is_named(tmp_path: Path) -> None:
    assert "no checkpoint" in refusal(TINY / "model.toml", tmp_path, kind=errors.NotFound)
    assert "nowhere" in refusal(TINY / "model.toml", tmp_path / "nowhere", kind=errors.NotFound)
    assert "nowhere.toml" in refusal(tmp_path / "nowhere.toml", TINY / "run", kind=errors.NotFound)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = 'dlrm'", "the key tables is missing"),
        ("model = 'bert'", "model is 'bert'; allowed are dlrm"),
        ("model = 'dlrm'\ntop_mpl = [1]", "the key top_mpl is unknown"),
        ("model = 'dlrm'\ntop_mlp = [2]\ntables = [{ rows = 1, columns = 1 }]", "the last width of top_mlp is 1"),
        ("model = 'dlrm'\ntop_mlp = [1]\ntables = [{ rows = 0, columns = 1 }]", "tables[0].rows is 0"),
        ("model = 'dlrm'\ntop_mlp = [1]\ndense = 3\ntables = [{ rows = 1, columns = 1 }]", "needs bottom_mlp"),
        ("model = 'two_towers'\ntop_mlp = [1]\ntables = [{ rows = 1, columns = 1 }]", "has a tower"),
        ("model = 'dlrm'\ntop_mlp = 1", "top_mlp is 1; it has to be a list"),
        ("model = 'dlrm'\noptimizer = 'sgd'", "optimizer is 'sgd'; it has to be a table of keys"),
        ("model = 'dlrm'\ntop_mlp = [1]\ntables = [3]", "3 is not a table of keys"),
        ("model = ", "model.toml"),
    ],
)
def test_a_file_that_describes_no_model_is_refused(text: str, words: str) -> None:
    with pytest.raises(errors.InputError) as raised:
        description.parse(text, "model.toml")
    assert words in str(raised.value)


def test_all_examples_are_built_with_their_parameters() -> None:
    # Numbers of parameters that `steptime-train` prints.
    counts = {"two_towers": 40_107_264, "wide_and_deep": 53_995_023}
    for path in sorted((ROOT / "examples/models").glob("*.toml")):
        module = build(path, device="meta")
        count = sum(each.numel() for each in module.parameters())
        assert count == counts.get(path.stem, count), path
        assert count > 1_000_000


def test_uniform_tables_are_within_their_bound(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text((TINY / "model.toml").read_text() + "table_init = 'uniform'\n")
    bags = build(tmp_path / "model.toml").tables["0"]
    greatest = float(bags.weight.detach().abs().max())
    assert 0.5 * 50**-0.5 < greatest <= 50**-0.5


def test_hashes_are_those_of_xxh3(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes((at * at >> 3) % 256 for at in range(70_000))
    expected = json.loads((TINY.parent / "xxh3_128.json").read_text())
    monkeypatch.setitem(sys.modules, "xxhash", None)
    for length, hexadecimal in expected.items():
        assert hashes.digest(data[: int(length)]) == hashes.PREFIX + hexadecimal, length
