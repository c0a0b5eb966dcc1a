"""Placement of the embedding tables of a described model on the GPUs of a job: search, evaluation, and plans for TorchRec.

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

# TorchRec's name for rows in host memory behind a cache on the GPU.
CACHED = "fused_uvm_caching"

Names = Union[None, Mapping[str, str], Callable[[str], str]]


class Sharding(Report):
    """A placement of the tables of a model on the GPUs of a job.

    >>> Sharding({"command": "shard", "tables": [{"table": 0, "cut": "whole", "gpus": [1]}], "predicted": {"step_ms": 4.0}, "regret": None})
    Sharding(shard: tables (1))
    """

    @property
    def step_ms(self) -> float:
        """Time from one step to the next, in milliseconds."""
        return float(self.raw["predicted"]["step_ms"])

    @property
    def predicted(self) -> JobPrediction:
        """The predicted step of all ranks together."""
        raw = self.raw["predicted"]
        return JobPrediction(raw, Input(raw["input"]))

    @property
    def bound_ms(self) -> Optional[float]:
        """Lower bound on the step time of any plan, from the loads of tables alone, in milliseconds; None where not known."""
        return None if self.raw.get("bound_ms") is None else float(self.raw["bound_ms"])

    @property
    def regret(self) -> Optional[float]:
        """Expected largest saving of another plan, as a share of the step; None where no bound is known."""
        found = self.raw.get("regret")
        return float(found["expected"]) if found else None

    @property
    def where(self) -> Table:
        """Placement of each table: its cut, and its GPUs."""
        return self.table("tables")

    @property
    def gpus(self) -> Table:
        """Load of each GPU: its tables, memory, and its step time without waits for other GPUs."""
        return self.table("gpus")


class Scaled(Report):
    """Step time of a model's job by number of GPUs."""

    @property
    def rows(self) -> Table:
        """One row per number of GPUs: step, samples per second, efficiency, exposed communication, cost."""
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
    """Searches a placement of the tables of a described model on `gpus` GPUs; with `evaluate`, predicts the step of that plan.

    `host_memory` is the host memory of each machine available to tables, in GiB. `output` is the plan file to write, in TorchRec's
    form or with `format="hugectr"`."""
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
    """Predicts the step of a described or recorded model for several numbers of GPUs. A described model needs `device`. `weak` keeps
    the batch size of each GPU, `plot` is an SVG file to write."""
    options: Dict[str, Value] = {"gpus": list(gpus), "device": device, "nodes": None if nodes is None else list(nodes), "host": host}
    options.update({"weak": weak, "price": price, "plot": plot, "indices": indices})
    return Scaled(Input(model).answer("scale", options))


def torchrec_plan(path: PathLike, module: Any, names: Names = None, *, node: Optional[int] = None, **options: Any) -> Any:
    """Converts a plan written by `steptime shard -o` to TorchRec's `EmbeddingModuleShardingPlan` for `module`, an
    `EmbeddingBagCollection`.

    `names` maps the plan's tables to those of `module`: a mapping, `{"t_0": "user_id"}`, or a function. Without it the tables keep
    their names if the module has the same ones, else they are matched in order. `node` is the number of GPUs per node, for use
    without TorchRec's process group. Other arguments go to TorchRec's `construct_module_sharding_plan`: `world_size`,
    `device_type`, `sharder`.
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
    """Entries of a plan by table, sorted by table number."""
    wanted = 'a plan is {"plan": {MODULE: {TABLE: {"sharding_type", "ranks", "shards"}}}}, as steptime shard -o writes it'
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        modules = plan["plan"]
        tables = {table: said for tables in modules.values() for table, said in tables.items()}
        kinds = [str(said["sharding_type"]) for said in tables.values()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: {wanted} ({type(error).__name__}: {error})") from error
    if not kinds:
        raise InputError(f"{path}: the plan has no tables; {wanted}")
    return dict(sorted(tables.items(), key=lambda each: (len(each[0]), each[0])))


def _called(tables: List[str], module: Any, names: Names) -> Dict[str, str]:
    """Names in the module of the tables of a plan."""
    if callable(names):
        return {table: names(table) for table in tables}
    if names is not None:
        missing = [table for table in tables if table not in names]
        if missing:
            raise UsageError(f"names= lacks {', '.join(missing)}: it must map every table of the plan to the module's name of it")
        return {table: names[table] for table in tables}
    own = [str(config.name) for config in module.embedding_bag_configs()]
    if set(own) == set(tables):
        return {table: table for table in tables}
    if len(own) != len(tables):
        raise UsageError(f"the plan places {len(tables)} tables and the module has {len(own)}: map them with names=")
    return dict(zip(tables, own))


def _placed(torchrec: Any, table: str, said: Mapping[str, Any], node: Optional[int]) -> Any:
    """TorchRec's sharding function for the placement of a table."""
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
    raise InputError(f"{table} has the sharding type {kind!r}, which steptime does not write")


def _cached(word: Any, said: Mapping[str, Any]) -> Any:
    """The same sharding, with rows in host memory behind a cache if the plan has it so."""
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
    """Index of the node whose GPUs are this group of ranks."""
    size = node or len(group)
    if group[0] % size or group != list(range(group[0], group[0] + size)):
        raise InputError(f"the rows of {table} are on GPUs {group}, and TorchRec divides them over all GPUs of a node: search with --nodes")
    return group[0] // size
