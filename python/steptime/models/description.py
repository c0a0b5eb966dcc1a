"""The description of a model: the keys of `model.toml` that its parameters and its forward pass depend on."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from steptime.errors import InputError, MissingLibrary, NotFound

MODELS = ("dlrm", "dcn_v2", "deepfm", "wide_and_deep", "two_towers")
# Allowed values of keys that are words; the first is the default.
WORDS: Dict[str, Tuple[str, ...]] = {
    "model": MODELS,
    "interaction": ("dot", "cat", "cross", "fm"),
    "loss": ("bce_with_logits", "mse"),
    "pooling": ("sum", "mean"),
    "table_init": ("normal", "uniform"),
    "precision": ("fp32",),
}
KEYS = {*WORDS, "name", "batch", "dense", "bottom_mlp", "top_mlp", "cross_layers", "cross_rank", "sparse", "tables", "optimizer", "parallel"}
TABLE_KEYS = {"rows", "columns", "lookups", "count", "tower"}


@dataclass(frozen=True)
class Table:
    """An embedding table: rows, columns, lookups of a sample, and its tower in a model with two."""

    rows: int
    columns: int
    lookups: int = 1
    tower: Optional[str] = None


@dataclass(frozen=True)
class Description:
    """A model, with all defaults filled in. `cross_rank` is 0 for full weights; `sparse` is the kind of the tables' gradients."""

    model: str
    dense: int
    bottom_mlp: Tuple[int, ...]
    top_mlp: Tuple[int, ...]
    interaction: str
    cross_layers: int
    cross_rank: int
    loss: str
    pooling: str
    table_init: str
    sparse: bool
    tables: Tuple[Table, ...]

    def differences(self, other: "Description") -> List[str]:
        """Differences of another model that change its parameters or its outputs, each in words: the value there, and the one here."""
        keys = ("model", "dense", "bottom_mlp", "top_mlp", "interaction", "cross_layers", "cross_rank", "loss", "pooling")
        pairs = [(key, getattr(other, key), getattr(self, key)) for key in keys]
        pairs.append(("the number of tables", len(other.tables), len(self.tables)))
        for at, (there, here) in enumerate(zip(other.tables, self.tables)):
            pairs += [(f"{key} of table {at}", getattr(there, key), getattr(here, key)) for key in ("rows", "columns", "tower")]
        return [f"{key} is {_shown(there)} there, and {_shown(here)} here" for key, there, here in pairs if there != here]


def read(path: Union[str, Path]) -> Description:
    """Reads `model.toml`. Raises NotFound without such a file, and InputError for one that does not describe a model."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist: give the description of a model, such as examples/models/dlrm_default.toml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    return parse(text, str(path))


def parse(text: str, place: str) -> Description:
    """Parses the text of `model.toml`; `place` is its name in messages. Raises InputError where it does not describe a model."""
    return _described(toml(text, place), place)


def toml(text: str, place: str) -> Dict[str, Any]:
    """Parses TOML with Python's own parser, or with the package `tomli` before Python 3.11."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise MissingLibrary("TOML needs Python 3.11, or the package tomli: pip install tomli") from None
    try:
        values: Dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{place}: {error}") from None
    return values


def _described(found: Mapping[str, Any], place: str) -> Description:
    _known(found, KEYS, place)
    for key, words in WORDS.items():
        if key in found and found[key] not in words:
            raise InputError(f"{place}: {key} is {found[key]!r}; allowed are {', '.join(words)}")
    for key, kind in (("tables", list), ("top_mlp", list), ("bottom_mlp", list), ("optimizer", dict)):
        if not isinstance(found.get(key, kind()), kind):
            raise InputError(f"{place}: {key} is {found[key]!r}; it has to be a {'list' if kind is list else 'table of keys'}")
    for key in ("model", "tables", "top_mlp"):
        if not found.get(key):
            raise InputError(f"{place}: the key {key} is missing")
    model = found["model"]
    if model != "two_towers" and found["top_mlp"][-1] != 1:
        raise InputError(f"{place}: the last width of top_mlp is 1 in {model}, not {found['top_mlp'][-1]}")
    optimizer = found.get("optimizer", {})
    by_default = optimizer.get("name", "sgd") == "sgd" and optimizer.get("form", "foreach") != "fused"
    described = Description(
        model=model,
        dense=_whole(found.get("dense", 0), "dense", place, least=0),
        bottom_mlp=_widths(found, "bottom_mlp", place),
        top_mlp=_widths(found, "top_mlp", place),
        interaction="cross" if model == "dcn_v2" else found.get("interaction", "dot"),
        cross_layers=_whole(found.get("cross_layers", 3), "cross_layers", place),
        cross_rank=_whole(found.get("cross_rank", 0), "cross_rank", place, least=0),
        loss=found.get("loss", "bce_with_logits"),
        pooling=found.get("pooling", "sum"),
        table_init=found.get("table_init", "normal"),
        sparse=bool(found.get("sparse", by_default)),
        tables=tuple(_tables(found["tables"], place)),
    )
    _check(described, place)
    return described


def _check(of: Description, place: str) -> None:
    """Checks what one key demands of another."""
    towers = {table.tower for table in of.tables}
    if of.model == "two_towers" and towers != {"query", "item"}:
        raise InputError(f'{place}: in two_towers each table has a tower, "query" or "item", and there is one of each at least')
    if of.model != "two_towers" and towers != {None}:
        raise InputError(f"{place}: only tables of two_towers have a tower")
    if of.model == "dlrm" and of.interaction in ("dot", "fm") and of.dense and not of.bottom_mlp:
        raise InputError(f"{place}: the interaction {of.interaction} with dense features needs bottom_mlp")
    if of.bottom_mlp and (not of.dense or of.model not in ("dlrm", "dcn_v2")):
        raise InputError(f"{place}: bottom_mlp needs dense features, in a dlrm or dcn_v2")
    if of.model == "deepfm" and len({table.columns for table in of.tables}) > 1:
        raise InputError(f"{place}: the tables of deepfm have the same number of columns")


def _tables(found: Any, place: str) -> List[Table]:
    tables: List[Table] = []
    for at, each in enumerate(found):
        name = f"tables[{at}]"
        _known(each, TABLE_KEYS, f"{place}: {name}")
        for key in ("rows", "columns"):
            if key not in each:
                raise InputError(f"{place}: {name}: the key {key} is missing")
        numbers = {key: _whole(each.get(key, 1), f"{name}.{key}", place) for key in ("rows", "columns", "lookups", "count")}
        count = numbers.pop("count")
        tables += [Table(tower=each.get("tower"), **numbers)] * count
    return tables


def _widths(found: Mapping[str, Any], key: str, place: str) -> Tuple[int, ...]:
    return tuple(_whole(width, f"{key}[{at}]", place) for at, width in enumerate(found.get(key, [])))


def _whole(value: Any, key: str, place: str, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{place}: {key} is {value!r}, and has to be a whole number of at least {least}")
    return value


def _known(found: Any, keys: "set[str]", place: str) -> None:
    if not isinstance(found, Mapping):
        raise InputError(f"{place}: {found!r} is not a table of keys")
    unknown = sorted(set(found) - keys)
    if unknown:
        raise InputError(f"{place}: the key {unknown[0]} is unknown; allowed are {', '.join(sorted(keys))}")


def _shown(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
