"""Components of models: MLPs, embedding tables, interactions."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from steptime.models.description import Description, Table


class Mlp(nn.ModuleList):
    """Linear layers with ReLUs between them; `rectified` adds one after the last layer. `width` is the width of the result."""

    def __init__(self, width: int, widths: Sequence[int], rectified: bool, device: Any) -> None:
        super().__init__(nn.Linear(a, b, device=device) for a, b in zip([width, *widths], widths))
        self.rectified = rectified
        self.width = widths[-1] if widths else width

    def forward(self, x: Tensor) -> Tensor:
        """Returns `[batch, width]`."""
        for at, layer in enumerate(self):
            x = layer(x)
            if self.rectified or at + 1 < len(self):
                x = functional.relu(x)
        return x


class Tables(nn.ModuleDict):
    """Embedding bags by the numbers of their tables in the description."""

    def __init__(self, of: Description, tables: Iterable[Tuple[int, Table]], device: Any, columns: Optional[int] = None) -> None:
        tables = list(tables)
        bag = {"mode": of.pooling, "sparse": of.sparse, "device": device}
        super().__init__({str(at): nn.EmbeddingBag(table.rows, columns or table.columns, **bag) for at, table in tables})
        if of.table_init == "uniform":
            for bags in self.values():
                bound = bags.num_embeddings**-0.5
                nn.init.uniform_(bags.weight, -bound, bound)

    def forward(self, lookups: Sequence[Tensor]) -> List[Tensor]:
        """Pooled rows `[batch, columns]` of each table. `lookups` has the indices `[batch, lookups]` of all tables of the description."""
        return [bags(lookups[int(at)]) for at, bags in self.items()]


class Cross(nn.Module):
    """A cross layer, `x0 * (W x + b) + x`, of full weights or of two narrow ones."""

    def __init__(self, width: int, rank: int, device: Any) -> None:
        super().__init__()
        self.narrow = nn.Linear(width, rank, bias=False, device=device) if rank else nn.Identity()
        self.wide = nn.Linear(rank or width, width, device=device)

    def forward(self, first: Tensor, x: Tensor) -> Tensor:
        """Returns `[batch, width]`; `first` is the input of the network."""
        crossed: Tensor = first * self.wide(self.narrow(x)) + x
        return crossed


def products(vectors: Tensor) -> Tensor:
    """Products of all pairs of the vectors `[batch, features, columns]`: `[batch, pairs]`."""
    features = vectors.size(1)
    row, column = torch.tril_indices(features, features, -1, device=vectors.device)
    return torch.bmm(vectors, vectors.transpose(1, 2))[:, row, column]


def machine(vectors: Tensor) -> Tensor:
    """The factorization machine's sum of products of all pairs of the vectors `[batch, features, columns]`: `[batch, columns]`."""
    total = vectors.sum(1)
    return 0.5 * (total * total - (vectors * vectors).sum(1))
