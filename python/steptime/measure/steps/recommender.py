"""Recommenders: embedding tables and a dense MLP, their interaction, and an MLP on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steptime.measure.draw import Draw
from steptime.measure.steps.model import Model, activation, optimizer
from steptime.measure.steps.plan import Limits


@dataclass
class Tables:
    """Description of the tables.

    form: `bag` (1-D indices and offsets), `rows` (bags of equal length, no offsets), `single` (one row per sample) or
        `joint` (all fields in one table).
    """

    form: str
    mode: str
    sparse: bool
    dim: int
    rows: List[int]
    lookups: List[int]


def mlp(sizes: List[int], act: Callable[[], nn.Module], last: bool = True) -> nn.Sequential:
    """Linear layers with activations between them, and after the last if `last`."""
    layers: List[nn.Module] = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), act()]
    return nn.Sequential(*(layers if last else layers[:-1]))


class Cross(nn.Module):
    """Cross layers: with a vector, a matrix or a product of two thin matrices."""

    def __init__(self, form: str, width: int, layers: int, rank: int) -> None:
        super().__init__()
        self.form = form
        make = {
            "vector": lambda: nn.Linear(width, 1, bias=False),
            "matrix": lambda: nn.Linear(width, width),
            "thin": lambda: nn.Sequential(nn.Linear(width, rank, bias=False), nn.Linear(rank, width)),
        }[form]
        self.layers = nn.ModuleList(make() for _ in range(layers))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(layers if form == "vector" else 0))

    def forward(self, first: Tensor) -> Tensor:
        x = first
        for index, layer in enumerate(self.layers):
            if self.form == "vector":
                x = first * layer(x) + self.biases[index] + x
            else:
                x = first * layer(x) + x
        return x


class Recommender(nn.Module):
    """A recommender: vectors of the tables and of the dense features, combined by `interaction`."""

    def __init__(self, tables: Tables, bottom: nn.Module, interaction: str) -> None:
        super().__init__()
        self.spec, self.bottom, self.interaction = tables, bottom, interaction
        count = [sum(tables.rows)] if tables.form == "joint" else tables.rows
        if tables.form in ("bag", "rows"):
            self.tables = nn.ModuleList(nn.EmbeddingBag(rows, tables.dim, mode=tables.mode, sparse=tables.sparse) for rows in count)
        else:
            self.tables = nn.ModuleList(nn.Embedding(rows, tables.dim, sparse=tables.sparse) for rows in count)
        if tables.form == "joint":
            starts = torch.tensor([0, *tables.rows[:-1]]).cumsum(0)
            self.register_buffer("starts", starts)
        vectors = len(tables.rows) + 1
        if interaction == "dot":
            pairs = torch.tril_indices(vectors, vectors, -1)
            self.register_buffer("rows", pairs[0])
            self.register_buffer("columns", pairs[1])
        self.cross: nn.Module = nn.Identity()
        self.top: nn.Module = nn.Identity()

    def width(self) -> int:
        """Number of features after the interaction."""
        vectors, dim = len(self.spec.rows) + 1, self.spec.dim
        return {"dot": dim + vectors * (vectors - 1) // 2, "fm": 2 * dim}.get(self.interaction, vectors * dim)

    def embed(self, inputs: Tuple[Tensor, ...]) -> List[Tensor]:
        """A vector for each field."""
        if self.spec.form == "joint":
            return list(self.tables[0](inputs[0] + self.starts).unbind(1))
        if self.spec.form == "single":
            return [table(inputs[0][:, i]) for i, table in enumerate(self.tables)]
        if self.spec.form == "rows":
            return [table(each) for table, each in zip(self.tables, inputs)]
        half = len(inputs) // 2
        return [table(each, starts) for table, each, starts in zip(self.tables, inputs[:half], inputs[half:])]

    def forward(self, dense: Tensor, *inputs: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = [x, *self.embed(inputs)]
        return self.top(self.cross(self.interact(x, vectors))).squeeze(1)

    def interact(self, x: Tensor, vectors: List[Tensor]) -> Tensor:
        """The interaction of the vectors, one row per sample."""
        if self.interaction == "dot":
            stacked = torch.cat(vectors, dim=1).view(x.shape[0], len(vectors), -1)
            products = torch.bmm(stacked, stacked.transpose(1, 2))
            return torch.cat([x, products[:, self.rows, self.columns]], dim=1)
        if self.interaction == "fm":
            stacked = torch.stack(vectors, dim=1)
            pairs = 0.5 * (stacked.sum(dim=1).pow(2) - stacked.pow(2).sum(dim=1))
            return torch.cat([x, pairs], dim=1)
        return torch.cat(vectors, dim=1)


def build(rng: Draw, limits: Limits, device: str) -> Model:
    """Builds a recommender."""
    form = rng.weigh({"bag": 5, "rows": 2, "single": 2, "joint": 2})
    count, dim = rng.log(4, 30), _dim(rng, limits)
    batch = limits.samples(rng, limits.activation(rng), count * dim, 64, 8192)
    tables = _tables(rng, limits, form, count, dim, batch)
    act = activation(rng, "sigmoid", "gelu", "relu")
    features = rng.size(1, 64)
    interaction = rng.weigh({"dot": 4, "concat": 2, "fm": 2, "cross": 3})
    bottom = [features, *(limits.size(rng, 16, 1024) for _ in range(rng.log(1, 3))), dim]
    heights = [limits.size(rng, 16, 1024) for _ in range(rng.log(1, 3))]
    with torch.device(device):
        module = Recommender(tables, mlp(bottom, act), interaction)
        width = module.width()
        if interaction == "cross":
            module.cross = Cross(rng.pick("vector", "matrix", "thin"), width, rng.log(1, 4), limits.size(rng, 16, 256))
        module.top = mlp([width, *heights, 1], act, last=False)
    names, optimizers = _optimizers(rng, module, tables)
    entropy = rng.chance(0.75)

    def loss(label: Tensor, dense: Tensor, *inputs: Tensor) -> Tensor:
        out = module(dense, *inputs)
        return F.binary_cross_entropy_with_logits(out, label) if entropy else F.mse_loss(torch.sigmoid(out), label)

    batches = [(torch.randint(0, 2, (batch,)).float(), torch.rand(batch, features), *_inputs(tables, batch)) for _ in range(2)]
    kind = "sparse" if tables.sparse else "dense"
    what = f"{count} {kind} {form} tables of {dim}, {interaction}, batch {batch}, {names}"
    return Model(what, batch, module, loss, optimizers, batches, read=rng.chance(0.2))


def _dim(rng: Draw, limits: Limits) -> int:
    dim = rng.weigh({8: 1, 16: 3, 32: 3, 64: 3, 128: 2, 256: 1, 0: 2})
    return min(dim or max(rng.size(8, 200) // 4 * 4, 4), limits.width)


def _tables(rng: Draw, limits: Limits, form: str, count: int, dim: int, batch: int) -> Tables:
    sparse = rng.chance(0.65)
    most = min(limits.rows, max(int((limits.tables if sparse else limits.tables / 16) / (4 * dim * count)), 10))
    least = min(1000, most)
    alike = rng.chance(0.3)
    rows = [rng.size(least, most)] * count if alike else [rng.size(least, most) for _ in range(count)]
    longest = max(min(40, limits.lookups // (batch * count)), 1)
    if form not in ("bag", "rows"):
        lookups = [1] * count
    elif rng.chance(0.6):
        lookups = [rng.log(1, longest)] * count
    else:
        lookups = [rng.log(1, longest) for _ in range(count)]
    return Tables(form, rng.pick("sum", "sum", "mean"), sparse, dim, rows, lookups)


def _inputs(tables: Tables, batch: int) -> List[Tensor]:
    pairs = list(zip(tables.rows, tables.lookups))
    if tables.form in ("single", "joint"):
        return [torch.stack([torch.randint(0, rows, (batch,)) for rows in tables.rows], dim=1)]
    if tables.form == "rows":
        return [torch.randint(0, rows, (batch, lookups)) for rows, lookups in pairs]
    indices = [torch.randint(0, rows, (batch * lookups,)) for rows, lookups in pairs]
    return indices + [torch.arange(0, batch * lookups, lookups) for _, lookups in pairs]


def _optimizers(rng: Draw, module: Recommender, tables: Tables) -> Tuple[str, list]:
    if not tables.sparse:
        name, one = optimizer(rng, module.parameters(), {"adam": 3, "adagrad": 3, "sgd": 2})
        return name, [one]
    if rng.chance(0.75):
        name, one = optimizer(rng, module.parameters(), {"sgd": 4, "adagrad": 1})
        return name, [one]
    inside = {id(each) for each in module.tables.parameters()}
    name, one = optimizer(rng, [each for each in module.parameters() if id(each) not in inside], {"adam": 1, "adagrad": 1})
    if rng.chance(0.6):
        return f"sgd and {name}", [torch.optim.SGD(module.tables.parameters(), lr=1e-2), one]
    return f"sparse adam and {name}", [torch.optim.SparseAdam(list(module.tables.parameters()), lr=1e-3), one]
