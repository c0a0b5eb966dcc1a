"""Where the tables of a described model lie on the GPUs of a job: found, told, and handed to TorchRec.

>>> import steptime
>>> found = steptime.shard("examples/models/dlrm_4_gpus.toml", gpus=4, device="h200", output="plan.json")  # doctest: +SKIP
>>> found.step_ms, found.regret, found.tables  # doctest: +SKIP
>>> plan = steptime.torchrec_plan("plan.json", model.embedding_bag_collection)  # doctest: +SKIP
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from steptime._ask import Input, PathLike, Value
from steptime.errors import InputError, MissingLibrary, UsageError
from steptime.job import JobPrediction
from steptime.report import Report
from steptime.table import Table

# What TorchRec calls rows in the host's memory behind a cache on the GPU.
CACHED = "fused_uvm_caching"

Names = Union[None, Mapping[str, str], Callable[[str], str]]


class Sharding(Report):
    """The tables of a model on the GPUs of a job.

    >>> Sharding({"command": "shard", "tables": [{"table": 0, "cut": "whole", "gpus": [1]}], "predicted": {"step_ms": 4.0}, "regret": None})
    Sharding(shard: tables (1))
    """

    @property
    def step_ms(self) -> float:
        """From one step to the next, in milliseconds."""
        return float(self.raw["predicted"]["step_ms"])

    @property
    def predicted(self) -> JobPrediction:
        """The step, all ranks together."""
        raw = self.raw["predicted"]
        return JobPrediction(raw, Input(raw["input"]))

    @property
    def bound_ms(self) -> Optional[float]:
        """No plan is shorter, by the loads of tables alone, in milliseconds; None where that is not known."""
        return None if self.raw.get("bound_ms") is None else float(self.raw["bound_ms"])

    @property
    def regret(self) -> Optional[float]:
        """What another plan is expected to save at most, as a share of the step; None where no bound is known."""
        found = self.raw.get("regret")
        return float(found["expected"]) if found else None

    @property
    def where(self) -> Table:
        """Where each table lies: how it is cut, on which GPUs."""
        return self.table("tables")

    @property
    def gpus(self) -> Table:
        """What each GPU has to do: its tables, memory, its step if no other kept it waiting."""
        return self.table("gpus")


class Scaled(Report):
    """How the step of a model's job changes with the number of its GPUs."""

    @property
    def rows(self) -> Table:
        """One row a number of GPUs: step, samples a second, efficiency, exposed communication, cost."""
        return self.table("rows")


def shard(
    model: PathLike,
    *,
    gpus: Optional[int] = None,
    device: str,
    nodes: Optional[int] = None,
    host: Optional[str] = None,
    memory: Optional[float] = None,
    host_memory: Optional[float] = None,
    evaluate: Optional[PathLike] = None,
    output: Optional[PathLike] = None,
    format: Optional[str] = None,
    module: Optional[str] = None,
    indices: Optional[str] = None,
) -> Sharding:
    """Where the tables of a described model should lie on `gpus` GPUs; with `evaluate` how long a step takes with that plan.

    `host_memory` is what tables may take of each machine's host, in GiB. `output` is a plan to write, as TorchRec has it or with `format="hugectr"`."""
    options: Dict[str, Value] = {"gpus": gpus, "device": device, "nodes": nodes, "host": host, "memory": memory, "evaluate": evaluate}
    options.update({"output": output, "format": format, "module": module, "indices": indices, "host_memory": host_memory})
    return Sharding(Input(model).answer("shard", options))


def scale_out(
    model: PathLike,
    *,
    gpus: Sequence[int] = (1, 2, 4, 8),
    device: Optional[str] = None,
    nodes: Optional[Sequence[int]] = None,
    host: Optional[str] = None,
    weak: bool = False,
    price: Optional[float] = None,
    plot: Optional[PathLike] = None,
    indices: Optional[str] = None,
) -> Scaled:
    """How the step of a described model, or a recorded one, changes with the number of GPUs; a described model needs `device`. `weak` keeps the samples of each, `plot` is an SVG to write."""
    options: Dict[str, Value] = {"gpus": list(gpus), "device": device, "nodes": None if nodes is None else list(nodes), "host": host}
    options.update({"weak": weak, "price": price, "plot": plot, "indices": indices})
    return Scaled(Input(model).answer("scale", options))


def torchrec_plan(path: PathLike, module: Any, names: Names = None, *, node: Optional[int] = None, **options: Any) -> Any:
    """A plan that `steptime shard -o` wrote, as TorchRec takes it: its `EmbeddingModuleShardingPlan` for `module`, an
    `EmbeddingBagCollection`.

    `names` tells what `module` calls the plan's tables: a mapping, `{"t_0": "user_id"}`, or a function. Without it they are the
    module's tables in their order. `node` is how many GPUs a node has, where TorchRec is not to ask its process group. What else is
    given goes to TorchRec's `construct_module_sharding_plan`: `world_size`, `device_type`, `sharder`.
    """
    torchrec = _torchrec()
    tables = _tables(path)
    called = _called(list(tables), module, names)
    by_name = {called[table]: _cached(_placed(torchrec, table, said, node), said) for table, said in tables.items()}
    if node is not None:
        options["local_size"] = node
    return torchrec.construct_module_sharding_plan(module, by_name, **options)


def _torchrec() -> Any:
    try:
        from torchrec.distributed import sharding_plan
    except ImportError as error:
        raise MissingLibrary(f"TorchRec cannot be loaded ({error}): pip install torchrec, of the version that fits your PyTorch") from error
    return sharding_plan


def _tables(path: PathLike) -> Dict[str, Dict[str, Any]]:
    """What a plan says of each table, in the order of their numbers."""
    wanted = 'a plan is {"plan": {MODULE: {TABLE: {"sharding_type", "ranks", "shards"}}}}, as steptime shard -o writes it'
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        modules = plan["plan"]
        tables = {table: said for tables in modules.values() for table, said in tables.items()}
        kinds = [str(said["sharding_type"]) for said in tables.values()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: {wanted} ({type(error).__name__}: {error})") from error
    if not kinds:
        raise InputError(f"{path}: the plan names no table; {wanted}")
    return dict(sorted(tables.items(), key=lambda each: (len(each[0]), each[0])))


def _called(tables: List[str], module: Any, names: Names) -> Dict[str, str]:
    """What a module calls the tables of a plan."""
    if callable(names):
        return {table: names(table) for table in tables}
    if names is not None:
        missing = [table for table in tables if table not in names]
        if missing:
            raise UsageError(f"names= says nothing of {', '.join(missing)}: it maps every table of the plan to the module's name of it")
        return {table: names[table] for table in tables}
    own = [str(config.name) for config in module.embedding_bag_configs()]
    if set(own) == set(tables):
        return {table: table for table in tables}
    if len(own) != len(tables):
        raise UsageError(f"the plan places {len(tables)} tables and the module has {len(own)}: say by names= which is which")
    return dict(zip(tables, own))


def _placed(torchrec: Any, table: str, said: Mapping[str, Any], node: Optional[int]) -> Any:
    """TorchRec's word for where a table lies."""
    kind = said["sharding_type"]
    ranks = [int(rank) for rank in said.get("ranks") or []]
    if kind == "data_parallel":
        return torchrec.data_parallel()
    if kind == "row_wise":
        return torchrec.row_wise()
    if kind == "table_wise":
        return torchrec.table_wise(rank=ranks[0])
    if kind == "column_wise":
        widths = {shard["shard_sizes"][1] for shard in said["shards"]}
        if len(widths) > 1:
            raise InputError(f"{table} is cut into columns of {sorted(widths)}, and TorchRec cuts them evenly: give its width as a multiple of 4 x the GPUs")
        return torchrec.column_wise(ranks=ranks)
    if kind in ("table_row_wise", "grid_shard"):
        columns: Dict[int, List[int]] = {}
        for shard, rank in zip(said["shards"], ranks):
            columns.setdefault(int(shard["shard_offsets"][1]), []).append(rank)
        hosts = [_host(table, group, node) for _, group in sorted(columns.items())]
        return torchrec.table_row_wise(host_index=hosts[0]) if kind == "table_row_wise" else torchrec.grid_shard(host_indexes=hosts)
    raise InputError(f"{table} lies {kind!r}, which is none of TorchRec's ways that steptime writes")


def _cached(word: Any, said: Mapping[str, Any]) -> Any:
    """The same, in the host's memory behind a cache where the plan says so."""
    if said.get("compute_kernel") != CACHED:
        return word

    def behind(*given: Any, **named: Any) -> Any:
        from torchrec.distributed.types import CacheParams

        sharding = word(*given, **named)
        sharding.compute_kernel = CACHED
        factor = (said.get("cache_params") or {}).get("load_factor")
        if factor is not None:
            sharding.cache_params = CacheParams(load_factor=factor)
        return sharding

    return behind


def _host(table: str, group: List[int], node: Optional[int]) -> int:
    """The node whose GPUs a group of ranks is."""
    size = node or len(group)
    if group[0] % size or group != list(range(group[0], group[0] + size)):
        raise InputError(f"the rows of {table} lie on GPUs {group}, and TorchRec cuts them over all GPUs of a node: search with --nodes")
    return group[0] // size
