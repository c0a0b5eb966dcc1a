"""The models, with the parameter names of `steptime-train`.

Each takes dense features `[batch, dense]`, or None without any, and a list with the indices `[batch, lookups]` of each table, in the
order of the description.
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from steptime.models.description import Description
from steptime.models.layers import Cross, Mlp, Tables, machine, products

# Divisor of the cosine of two vectors in the logits of two towers.
TEMPERATURE = 0.1


class Network(nn.Module):
    """A described model. `description` has its sizes."""

    def __init__(self, description: Description) -> None:
        super().__init__()
        self.description = description

    def output(self, logit: Tensor) -> Tensor:
        """The logit, or its logistic for a squared loss."""
        return torch.sigmoid(logit) if self.description.loss == "mse" else logit

    def loss(self, output: Tensor, labels: Optional[Tensor] = None) -> Tensor:
        """The mean loss of outputs `[batch, 1]` on labels of 0 and 1, `[batch]` or `[batch, 1]`."""
        if labels is None:
            raise TypeError(f"the loss of {self.description.model} needs labels")
        labels = labels.reshape(output.shape).to(output.dtype)
        if self.description.loss == "mse":
            return functional.mse_loss(output, labels)
        return functional.binary_cross_entropy_with_logits(output, labels)


class Dlrm(Network):
    """DLRM, and DCN-v2, whose interaction is a cross network. Returns `[batch, 1]`."""

    def __init__(self, of: Description, device: Any) -> None:
        super().__init__(of)
        self.bottom = Mlp(of.dense, of.bottom_mlp, True, device)
        self.tables = Tables(of, enumerate(of.tables), device)
        meets = of.interaction in ("dot", "fm")
        common = self.bottom.width if of.dense else of.tables[0].columns
        odd = [(at, table.columns) for at, table in enumerate(of.tables) if meets and table.columns != common]
        self.projections = nn.ModuleDict({str(at): nn.Linear(columns, common, bias=False, device=device) for at, columns in odd})
        widths = [self.bottom.width] if of.dense else []
        widths += [common if meets else table.columns for table in of.tables]
        width = sum(widths)
        self.cross = nn.ModuleList(Cross(width, of.cross_rank, device) for _ in range(of.cross_layers if of.interaction == "cross" else 0))
        if meets:
            met = len(widths) * (len(widths) - 1) // 2 if of.interaction == "dot" else common
            width = met + (common if of.dense else 0)
        self.top = Mlp(width, of.top_mlp, False, device)

    def forward(self, dense: Optional[Tensor], lookups: Sequence[Tensor]) -> Tensor:
        """Returns the output of each sample."""
        rows = self.tables(lookups)
        for at, projection in self.projections.items():
            rows[int(at)] = projection(rows[int(at)])
        own = [self.bottom(dense)] if self.description.dense else []
        return self.output(self.top(self.interact(own, rows)))

    def interact(self, dense: List[Tensor], rows: List[Tensor]) -> Tensor:
        """The interaction of the vectors, `[batch, width]`; `dense` has none or one."""
        kind = self.description.interaction
        if kind in ("dot", "fm"):
            vectors = torch.stack(dense + rows, 1)
            return torch.cat([*dense, products(vectors) if kind == "dot" else machine(vectors)], 1)
        first = x = torch.cat(dense + rows, 1)
        for layer in self.cross:
            x = layer(first, x)
        return x


class Wide(nn.Module):
    """A linear model of all features: one weight for each row of each table, and a layer for dense features."""

    def __init__(self, of: Description, device: Any) -> None:
        super().__init__()
        self.tables = Tables(of, enumerate(of.tables), device, columns=1)
        self.dense = nn.Linear(of.dense, 1, device=device) if of.dense else None

    def forward(self, dense: Optional[Tensor], lookups: Sequence[Tensor]) -> Tensor:
        """Returns `[batch, 1]`."""
        total = torch.cat(self.tables(lookups), 1).sum(1, keepdim=True)
        return total if self.dense is None else total + self.dense(dense)


class WideAndDeep(Network):
    """Wide & Deep, and DeepFM, which has a factorization machine too. Returns `[batch, 1]`."""

    def __init__(self, of: Description, device: Any) -> None:
        super().__init__(of)
        self.wide = Wide(of, device)
        self.tables = Tables(of, enumerate(of.tables), device)
        self.deep = Mlp(of.dense + sum(table.columns for table in of.tables), of.top_mlp, False, device)

    def forward(self, dense: Optional[Tensor], lookups: Sequence[Tensor]) -> Tensor:
        """Returns the output of each sample."""
        rows = self.tables(lookups)
        own = [dense] if dense is not None and self.description.dense else []
        logit = self.deep(torch.cat(own + rows, 1)) + self.wide(dense, lookups)
        if self.description.model == "deepfm":
            logit = logit + machine(torch.stack(rows, 1)).sum(1, keepdim=True)
        return self.output(logit)


class Tower(nn.Module):
    """Tables and an MLP, whose vectors have length one."""

    def __init__(self, of: Description, name: str, device: Any) -> None:
        super().__init__()
        own = [(at, table) for at, table in enumerate(of.tables) if table.tower == name]
        self.tables = Tables(of, own, device)
        self.mlp = Mlp(sum(table.columns for _, table in own), of.top_mlp, False, device)

    def forward(self, lookups: Sequence[Tensor]) -> Tensor:
        """Returns `[batch, columns]`."""
        return functional.normalize(self.mlp(torch.cat(self.tables(lookups), 1)), dim=1)


class TwoTowers(Network):
    """Queries and items. Returns the logits `[batch, batch]` of each query with each item."""

    def __init__(self, of: Description, device: Any) -> None:
        super().__init__(of)
        self.query = Tower(of, "query", device)
        self.item = Tower(of, "item", device)

    def forward(self, dense: Optional[Tensor], lookups: Sequence[Tensor]) -> Tensor:
        """Returns the logits; there are no dense features."""
        logits: Tensor = self.query(lookups) @ self.item(lookups).t() / TEMPERATURE
        return logits

    def loss(self, output: Tensor, labels: Optional[Tensor] = None) -> Tensor:
        """The mean cross-entropy of each query's own item; there are no labels."""
        return functional.cross_entropy(output, torch.arange(len(output), device=output.device))
