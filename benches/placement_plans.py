"""Placements of a described model's tables on two GPUs, as plans in TorchRec's format, which `steptime shard --evaluate` reads."""

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python/workloads"))

from job_description import Shard, parts_of_lists, read, tables_of  # noqa: E402

GPUS, COUNT, SEED = 2, 10, 28
MODULE = "sparse_arch.embedding_bag_collection"


def largest_first(loads):
    """Tables of each GPU: the table with the largest load first, each on the GPU with the least load."""
    lists, sums = [[] for _ in range(GPUS)], [0] * GPUS
    for table in sorted(range(len(loads)), key=lambda at: -loads[at]):
        gpu = sums.index(min(sums))
        lists[gpu].append(table)
        sums[gpu] += loads[table]
    return lists


def with_largest_cut(tables):
    """Tables of each GPU: that with the most elements looked up is on all, the others by their elements."""
    loads = [columns * lookups for _, columns, lookups in tables]
    cut = loads.index(max(loads))
    return [[*own, cut] for own in ([t for t in own if t != cut] for own in largest_first([0 if t == cut else load for t, load in enumerate(loads)]))]


def random_lists(tables, draws, may_cut):
    """Tables of each GPU, drawn: the share of the first GPU is between a fifth and four fifths."""
    share, lists = draws.uniform(0.2, 0.8), [[] for _ in range(GPUS)]
    for table in range(len(tables)):
        lists[0 if draws.random() < share else 1].append(table)
    if may_cut:
        table = draws.randrange(len(tables))
        lists = [own if table in own else [*own, table] for own in lists]
    return lists


def kinds_of(parts, tables):
    """The shards of each GPU by their sizes and lookups, in any order: equal for placements that differ only by the names of GPUs and of equal tables."""
    return tuple(sorted(tuple(sorted((tables[shard.table], shard.columns) for shard in own)) for own in parts))


def generated(model, may_cut, pick):
    """Tables of each GPU by the name of the placement: with the shards of the pick, ten placements that differ."""
    tables, draws = tables_of(model), random.Random(SEED)
    loads = [columns * lookups for _, columns, lookups in tables]
    hot = sorted(range(len(tables)), key=lambda at: -loads[at])[: len(tables) // 2]
    cold = [t for t in range(len(tables)) if t not in hot]
    named = {
        "round_robin": [[t for t in range(len(tables)) if t % GPUS == gpu] for gpu in range(GPUS)],
        "by_lookups": largest_first([lookups for _, _, lookups in tables]),
        "by_size": largest_first([rows * columns for rows, columns, _ in tables]),
        "hot_on_one": [hot, cold],
        "all_on_one": [list(range(len(tables))), []],
        "halves": [list(range(len(tables) // 2)), list(range(len(tables) // 2, len(tables)))],
    }
    if may_cut:
        named["largest_cut"] = with_largest_cut(tables)
    found, seen = {}, set()

    def keep(name, lists):
        kinds = kinds_of(parts_of_lists(lists, tables), tables)
        if kinds not in seen:
            seen.add(kinds)
            found[name] = [sorted(own) for own in lists]

    for name, lists in named.items():
        keep(name, lists)
    firsts = len(found)
    seen.add(kinds_of(pick, tables))
    while len(seen) < COUNT:
        keep(f"random_{len(found) - firsts + 1}", random_lists(tables, draws, may_cut))
    return found


def plan_of(lists, tables):
    """The plan of a placement."""
    shards = {table: [] for table in range(len(tables))}
    for gpu, own in enumerate(parts_of_lists(lists, tables)):
        for shard in own:
            sizes = {"shard_offsets": [0, shard.first], "shard_sizes": [tables[shard.table][0], shard.columns]}
            shards[shard.table].append({**sizes, "placement": f"rank:{gpu}/cuda:{gpu}"})
    plan = {}
    for table, own in shards.items():
        kind = "table_wise" if len(own) == 1 else "column_wise"
        ranks = [int(shard["placement"].partition("/")[0][5:]) for shard in own]
        plan[f"t_{table}"] = {"sharding_type": kind, "compute_kernel": "fused", "ranks": ranks, "shards": own}
    return plan


def write_plan(path, plan):
    """Writes a plan, a line for each table."""
    lines = ",\n".join(f'  "{name}": {json.dumps(table)}' for name, table in plan.items())
    path.write_text(f'{{"plan": {{"{MODULE}": {{\n{lines}\n}}}}}}\n', encoding="utf-8")


def read_plan(path):
    """The tables of a plan, in their order. Raises ValueError for a file that is not a plan."""
    try:
        (plan,) = json.loads(Path(path).read_text(encoding="utf-8"))["plan"].values()
        return {f"t_{table}": plan[f"t_{table}"] for table in range(len(plan))}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: not a plan of tables t_0, t_1, ..: {error}; `steptime shard -o` writes one") from None


def parts_of_plan(path, tables, gpus=GPUS):
    """Shards of each rank by a plan. Raises ValueError for tables cut by rows, copied, or in host memory, and for a plan of another model."""
    plan, parts = read_plan(path), [[] for _ in range(gpus)]
    if len(plan) != len(tables):
        raise ValueError(f"{path}: {len(plan)} tables, and the model has {len(tables)}: it is a plan of another model")
    for table, (rows, columns, _) in enumerate(tables):
        own = plan[f"t_{table}"]
        if own["sharding_type"] not in ("table_wise", "column_wise") or own["compute_kernel"] != "fused":
            raise ValueError(f"{path}: t_{table} is {own['sharding_type']}, {own['compute_kernel']}: only whole tables and columns are trained here")
        for shard in own["shards"]:
            gpu, (_, first), (held, width) = int(shard["placement"].partition("/")[0][5:]), shard["shard_offsets"], shard["shard_sizes"]
            if held != rows or gpu >= gpus:
                raise ValueError(f"{path}: t_{table}: {held} rows on GPU {gpu}, and the model has {rows}, on {gpus} GPUs: it is a plan of another model")
            parts[gpu].append(Shard(table, first, width))
        if sum(shard["shard_sizes"][1] for shard in own["shards"]) != columns:
            raise ValueError(f"{path}: t_{table}: its shards do not have {columns} columns: it is a plan of another model")
    return [sorted(own) for own in parts]
