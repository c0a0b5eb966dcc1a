"""Losses of small models in PyTorch, from weights and batches that the tests compute by the same formula.

    python losses.py > losses.json

Weights, batches and labels are hashes of a name and a position (SplitMix64), so that no data is stored but losses. PyTorch 2.11 on the CPU, one
thread.
"""
import json
import tomllib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

STEPS, EVERY, BATCHES = 200, 5, 8

TABLES = "tables = [{ rows = 50, columns = 8, lookups = 3, count = 2 }, { rows = 20, columns = %d, count = 2 }]"
MODELS = {
    "dlrm_sgd": ("model = 'dlrm'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]\nloss = 'mse'\n" + TABLES % 8, "SGD", {"lr": 1.0}),
    "dlrm_adagrad": ("model = 'dlrm'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]\npooling = 'mean'\n"
                     "optimizer = { name = 'adagrad' }\n" + TABLES % 6, "Adagrad", {"lr": 0.02}),
    "dlrm_adamw": ("model = 'dlrm'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]\ninteraction = 'cat'\n"
                   "optimizer = { name = 'adamw', form = 'fused' }\n" + TABLES % 8, "AdamW", {"lr": 0.002, "weight_decay": 0.1}),
    "dlrm_mean_sgd": ("model = 'dlrm'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ntop_mlp = [16, 1]\ninteraction = 'fm'\npooling = 'mean'\n"
                      "optimizer = { name = 'sgd', form = 'loop' }\n" + TABLES % 8, "SGD", {"lr": 0.5}),
    "dcn_v2": ("model = 'dcn_v2'\nbatch = 24\ndense = 5\nbottom_mlp = [16, 8]\ncross_layers = 2\ncross_rank = 4\ntop_mlp = [16, 1]\n"
               + TABLES % 6, "SGD", {"lr": 0.3}),
    "deepfm": ("model = 'deepfm'\nbatch = 24\ndense = 5\ntop_mlp = [16, 1]\noptimizer = { name = 'adagrad', form = 'fused' }\n"
               + TABLES % 8, "Adagrad", {"lr": 0.02}),
    "wide_and_deep": ("model = 'wide_and_deep'\nbatch = 24\ndense = 5\ntop_mlp = [16, 1]\noptimizer = { name = 'adam' }\n"
                      + TABLES % 6, "Adam", {"lr": 0.003}),
    "two_towers": ("model = 'two_towers'\nbatch = 24\ntop_mlp = [16, 8]\npooling = 'mean'\noptimizer = { name = 'adam', form = 'loop' }\n"
                   "tables = [{ rows = 50, columns = 8, lookups = 3, tower = 'query' }, { rows = 20, columns = 4, tower = 'query' },\n"
                   "    { rows = 40, columns = 8, tower = 'item' }]", "Adam", {"lr": 0.003}),
}


def bits(name: str, count: int) -> np.ndarray:
    """Hashes of a name and the positions 0 to count - 1."""
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = ((start ^ byte) * 0x100000001B3) % 2**64
    with np.errstate(over="ignore"):
        x = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def floats(name: str, count: int, scale: float) -> np.ndarray:
    """Numbers between -scale and scale."""
    unit = (bits(name, count) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return ((2.0 * unit - 1.0) * scale).astype(np.float32)


def initialize(module: nn.Module) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            scale = 0.5 if "tables" in name else float(parameter.shape[-1]) ** -0.5
            parameter.copy_(torch.from_numpy(floats(name, parameter.numel(), scale)).view(parameter.shape))


def mlp(width: int, widths: list[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(a, b) for a, b in zip([width, *widths], widths))


def run(layers: nn.ModuleList, x: torch.Tensor, rectified: bool) -> torch.Tensor:
    for at, layer in enumerate(layers):
        x = layer(x)
        if rectified or at + 1 < len(layers):
            x = torch.relu(x)
    return x


class Model(nn.Module):
    def __init__(self, of: dict):
        super().__init__()
        self.of, self.kind = of, of["model"]
        self.all = [table for table in of["tables"] for _ in range(table.get("count", 1))]
        mode = of.get("pooling", "sum")
        bags = lambda tables, columns=None: nn.ModuleDict({  # noqa: E731
            str(at): nn.EmbeddingBag(t["rows"], columns or t["columns"], mode=mode) for at, t in tables})
        numbered = list(enumerate(self.all))
        if self.kind == "two_towers":
            for tower in ["query", "item"]:
                own = [(at, table) for at, table in numbered if table["tower"] == tower]
                # Tables are numbered by the description.
                side = nn.Module()
                side.tables, side.mlp = bags(own), mlp(sum(t["columns"] for _, t in own), of["top_mlp"])
                setattr(self, tower, side)
            return
        self.tables = bags(numbered)
        columns = [table["columns"] for table in self.all]
        if self.kind in ("deepfm", "wide_and_deep"):
            self.wide = nn.Module()
            self.wide.tables, self.wide.dense = bags(numbered, 1), nn.Linear(of["dense"], 1)
            self.deep = mlp(of["dense"] + sum(columns), of["top_mlp"])
            return
        self.bottom = mlp(of["dense"], of["bottom_mlp"])
        width, interaction = of["bottom_mlp"][-1], of.get("interaction", "dot")
        self.meets = "cross" if self.kind == "dcn_v2" else interaction
        same = self.meets in ("dot", "fm")
        self.projections = nn.ModuleDict(
            {str(at): nn.Linear(c, width, bias=False) for at, c in enumerate(columns) if same and c != width})
        columns = [width if same else c for c in columns]
        total, count = width + sum(columns), len(columns) + 1
        if self.meets == "cross":
            self.cross = nn.ModuleList()
            for _ in range(of["cross_layers"]):
                layer = nn.Module()
                layer.narrow = nn.Linear(total, of["cross_rank"], bias=False)
                layer.wide = nn.Linear(of["cross_rank"], total)
                self.cross.append(layer)
        met = {"cross": total, "cat": total, "fm": 2 * width, "dot": width + count * (count - 1) // 2}[self.meets]
        self.top = mlp(met, of["top_mlp"])

    def pool(self, tables: nn.ModuleDict, batch: dict) -> list[torch.Tensor]:
        return [bag(*batch["lookups"][int(at)]) for at, bag in tables.items()]

    def logit(self, batch: dict) -> torch.Tensor:
        rows, dense = self.pool(self.tables, batch), batch["dense"]
        if self.kind in ("deepfm", "wide_and_deep"):
            logit = run(self.deep, torch.cat([dense, *rows], 1), False)
            logit = logit + (torch.cat(self.pool(self.wide.tables, batch), 1).sum(1, True) + self.wide.dense(dense))
            return logit + machine(torch.stack(rows, 1)).sum(1, True) if self.kind == "deepfm" else logit
        first = run(self.bottom, dense, True)
        rows = [self.projections[str(at)](row) if str(at) in self.projections else row for at, row in enumerate(rows)]
        x = torch.cat([first, *rows], 1)
        if self.meets == "cross":
            start = x
            for layer in self.cross:
                x = start * layer.wide(layer.narrow(x)) + x
        elif self.meets == "fm":
            x = torch.cat([first, machine(torch.stack([first, *rows], 1))], 1)
        elif self.meets == "dot":
            vectors = torch.stack([first, *rows], 1)
            below = torch.tril_indices(vectors.shape[1], vectors.shape[1], -1)
            x = torch.cat([first, (vectors @ vectors.transpose(1, 2))[:, below[0], below[1]]], 1)
        return run(self.top, x, False)

    def loss(self, batch: dict) -> torch.Tensor:
        if self.kind == "two_towers":
            sides = [F.normalize(run(side.mlp, torch.cat(self.pool(side.tables, batch), 1), False)) for side in (self.query, self.item)]
            return F.cross_entropy(sides[0] @ sides[1].T / 0.1, torch.arange(self.of["batch"]))
        logit = self.logit(batch)
        if self.of.get("loss") == "mse":
            return F.mse_loss(torch.sigmoid(logit), batch["labels"])
        return F.binary_cross_entropy_with_logits(logit, batch["labels"])


def machine(vectors: torch.Tensor) -> torch.Tensor:
    return (vectors.sum(1) ** 2 - (vectors * vectors).sum(1)) * 0.5


def batch_of(model: Model, number: int) -> dict:
    size = model.of["batch"]
    lookups = []
    for at, table in enumerate(model.all):
        each = table.get("lookups", 1)
        indices = (bits(f"tables.{at}.indices.{number}", size * each) % np.uint64(table["rows"])).astype(np.int64)
        # Bags of different sizes.
        offsets = np.array([bag * each + (bag % 2 if each > 1 else 0) for bag in range(size)])
        lookups.append((torch.from_numpy(indices), torch.from_numpy(offsets)))
    batch = {"lookups": lookups}
    if "dense" in model.of:
        batch["dense"] = torch.from_numpy(floats(f"dense.{number}", size * model.of["dense"], 1.0)).view(size, -1)
        batch["labels"] = torch.from_numpy((floats(f"labels.{number}", size, 1.0) > 0).astype(np.float32)).view(size, 1)
    return batch


def main() -> None:
    torch.set_num_threads(1)
    results = []
    for name, (text, optimizer, settings) in MODELS.items():
        model = Model(tomllib.loads(text))
        initialize(model)
        own = getattr(torch.optim, optimizer)(model.parameters(), **settings)
        batches = [batch_of(model, number) for number in range(BATCHES)]
        losses = []
        for step in range(STEPS):
            own.zero_grad()
            loss = model.loss(batches[step % BATCHES])
            loss.backward()
            own.step()
            losses.append(loss.item())
        results.append({"name": name, "model": text, "rate": settings["lr"], "decay": settings.get("weight_decay", 0.0),
                        "steps": STEPS, "every": EVERY, "losses": [float(f"{x:.8g}") for x in losses[EVERY - 1::EVERY]]})
    print("[\n" + ",\n".join(json.dumps(result) for result in results) + "\n]")


if __name__ == "__main__":
    main()
