"""Writes crates/operators/ops/tests/golden/*.json: PyTorch's results on small inputs. Run with torch 2.11 from any folder."""

import json
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "ops" / "tests" / "golden"


def numbers(tensor: torch.Tensor) -> list:
    """A tensor as nested lists, with enough digits to restore the same floats."""
    if tensor.dim() > 1:
        return [numbers(row) for row in tensor]
    return [float(f"{value:.9g}") for value in tensor.tolist()]


def write(name: str, content: dict) -> None:
    """Stores one file, without spaces."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


def optimizers() -> None:
    """Four steps of each dense optimizer on 19 parameters."""
    generator = torch.Generator().manual_seed(4)
    start = torch.randn(19, generator=generator)
    gradients = torch.randn(4, 19, generator=generator)
    optim = torch.optim
    cases = {
        "sgd": lambda p: optim.SGD(p, lr=0.1),
        "sgd_decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05),
        "sgd_momentum": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.9),
        "sgd_dampening": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.9, dampening=0.3),
        "sgd_nesterov": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05, momentum=0.9, nesterov=True),
        "adagrad": lambda p: optim.Adagrad(p, lr=0.1),
        "adagrad_all": lambda p: optim.Adagrad(
            p, lr=0.1, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.2, eps=1e-6
        ),
        "adam": lambda p: optim.Adam(p, lr=0.01),
        "adam_decay": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.05, betas=(0.9, 0.98)),
        "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.05),
    }
    after = {}
    for name, make in cases.items():
        parameter = start.clone().requires_grad_()
        optimizer = make([parameter])
        after[name] = []
        for gradient in gradients:
            parameter.grad = gradient.clone()
            optimizer.step()
            after[name].append(numbers(parameter.detach()))
    write("optimizers", {"start": numbers(start), "gradients": numbers(gradients), "after": after})


def embedding_bags() -> None:
    """Bags of one table, some empty, and the gradient of per-sample weights; max takes no weights."""
    generator = torch.Generator().manual_seed(5)
    table = torch.randn(11, 19, generator=generator)
    indices = torch.tensor([3, 3, 10, 0, 7, 7, 7, 1, 5, 9, 2, 10])
    offsets = torch.tensor([0, 3, 3, 4, 9, 12])
    weights = torch.randn(12, generator=generator)
    upstream = torch.randn(5, 19, generator=generator)
    bag = torch.nn.functional.embedding_bag
    out = {mode: numbers(bag(indices, table, offsets, mode=mode, include_last_offset=True)) for mode in ("sum", "mean", "max")}
    leaf = weights.clone().requires_grad_()
    weighted = bag(indices, table, offsets, mode="sum", per_sample_weights=leaf, include_last_offset=True)
    weighted.backward(upstream)
    out["weighted"] = numbers(weighted.detach())
    out["none"] = numbers(torch.nn.functional.embedding(indices, table))
    write(
        "embedding",
        {
            "table": numbers(table),
            "indices": indices.tolist(),
            "offsets": offsets.tolist(),
            "weights": numbers(weights),
            "upstream": numbers(upstream),
            "out": out,
            "weight_gradient": numbers(leaf.grad),
        },
    )


if __name__ == "__main__":
    embedding_bags()
    optimizers()
