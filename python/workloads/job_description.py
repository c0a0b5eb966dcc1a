"""The description of a DLRM or DCN-v2, and the shards of its tables on the ranks of a job. Needs no PyTorch."""

import tomllib
from typing import NamedTuple

WORDS = {"model": ("dlrm", "dcn_v2"), "interaction": ("dot", "cat", "cross"), "loss": ("mse", "bce_with_logits")}
DEFAULTS = {"interaction": "dot", "loss": "bce_with_logits", "pooling": "sum"}


class Shard(NamedTuple):
    """Columns of a table on a rank."""

    table: int
    first: int
    columns: int


def read(path):
    """The keys of `model.toml`, with defaults. Raises ValueError for a model that is not trained here."""
    with open(path, "rb") as text:
        model = {**DEFAULTS, **tomllib.load(text)}
    model["interaction"] = "cross" if model["model"] == "dcn_v2" else model["interaction"]
    for key, words in WORDS.items():
        if model[key] not in words:
            raise ValueError(f"{path}: {key} is {model[key]!r}: choose of {', '.join(words)}")
    if not model.get("dense") or not model.get("bottom_mlp"):
        raise ValueError(f"{path}: dense features and bottom_mlp are needed")
    if model.get("optimizer", {}).get("name", "sgd") != "sgd":
        raise ValueError(f"{path}: the optimizer has to be sgd")
    widths = {columns for _, columns, _ in tables_of(model)} | {model["bottom_mlp"][-1]}
    if model["interaction"] == "dot" and len(widths) > 1:
        raise ValueError(f"{path}: the interaction dot needs vectors of one width, not of {sorted(widths)}")
    if cut := [key for key in ("row_wise", "data_parallel", "grid") if model.get("parallel", {}).get(key)]:
        raise ValueError(f"{path}: {cut[0]} is not trained here: give `placement` alone, with tables whole or cut by columns")
    return model


def tables_of(model):
    """Rows, columns and lookups of each table."""
    return [(t["rows"], t["columns"], t.get("lookups", 1)) for t in model["tables"] for _ in range(t.get("count", 1))]


def adjusted(model, batch=None, rows_at_most=None):
    """The model with another batch, or smaller tables."""
    tables = [{**table, "rows": min(table["rows"], rows_at_most or table["rows"])} for table in model["tables"]]
    return {**model, "batch": batch or model["batch"], "tables": tables}


def parts_of(model):
    """Shards of each rank by the model's `[parallel]`: tables in turn without a placement. Raises ValueError without `[parallel]`."""
    if "parallel" not in model:
        raise ValueError(f"{model.get('name', 'the model')}: the number of GPUs is missing: give `[parallel]` with gpus = 2")
    parallel, tables = model["parallel"], tables_of(model)
    lists = parallel.get("placement") or [[t for t in range(len(tables)) if t % parallel["gpus"] == g] for g in range(parallel["gpus"])]
    return parts_of_lists(lists, tables)


def parts_of_lists(lists, tables):
    """Shards of each rank from the tables of each rank; columns of a table on several ranks are cut as evenly as multiples of four allow."""
    owners = {t: [g for g, own in enumerate(lists) if t in own] for t in range(len(tables))}
    parts = [[] for _ in lists]
    for table, ranks in owners.items():
        columns = tables[table][1]
        grain = 4 if columns // 4 >= len(ranks) else 1
        cuts = [at * (columns // grain) // len(ranks) * grain for at in range(len(ranks))] + [columns]
        for rank, first, end in zip(ranks, cuts, cuts[1:]):
            parts[rank].append(Shard(table, first, end - first))
    return parts
