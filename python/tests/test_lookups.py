"""Lookup counts of a recorded step, without indices."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: nothing can be recorded (pip install torch)")


def noted(step, tmp_path: Path) -> dict:
    from steptime import record

    out = record(step, out=tmp_path / "recorded", batch=4, only="et")
    return json.loads((out / "meta.json").read_text()).get("lookups", {})


def test_counts_are_those_of_the_indices() -> None:
    import torch

    from steptime.counts import count

    index = torch.tensor([[7, 0, 0, 0], [7, 7, 3, 0]])
    counted = count(torch, index, 0)
    assert (counted.groups, counted.padding, counted.ordered) == (((1, 1), (1, 3), (1, 4)), 4, False)
    assert (counted.lookups, counted.distinct) == (8, 3)
    assert str(counted) == "counts:1/1,1/3,1/4 padding:4"
    assert str(count(torch, torch.arange(5))) == "counts:5/5 sorted"
    assert str(count(torch, torch.tensor([], dtype=torch.int64))) == "counts:"


def test_a_padded_embedding_tells_its_padding_forward_and_backward(tmp_path: Path) -> None:
    import torch

    table, bags = torch.nn.Embedding(50, 8, padding_idx=0), torch.nn.EmbeddingBag(20, 8)
    history, one = torch.tensor([[1, 2, 0, 0]] * 6), torch.arange(6).reshape(6, 1)

    def step() -> None:
        (table(history).sum() + bags(one).sum()).backward()

    found = noted(step, tmp_path)
    assert found["version"] == 1
    ops = {op: counts for op, counts in found["ops"]}
    padded = "counts:0/0,0/0,2/12,1/12 padding:12"
    assert ops["aten::embedding"] == padded and ops["aten::embedding_dense_backward"] == padded
    assert ops["aten::_embedding_bag"] == "counts:6/6 sorted"


def test_edges_that_crowd_on_few_nodes_are_seen_and_no_index_is_kept(tmp_path: Path) -> None:
    import torch

    nodes = torch.randn(100, 4, requires_grad=True)
    edges = torch.tensor([[91] * 60 + list(range(40)), list(range(100))])

    def step() -> None:
        messages = nodes[edges[0]]
        torch.zeros(100, 4).index_add(0, edges[1], messages).sum().backward()

    found = noted(step, tmp_path)
    crowded, even = "counts:40/40,0/0,0/0,0/0,0/0,1/60", "counts:100/100 sorted"
    assert ["aten::index", crowded] in found["ops"] and ["aten::index_add", even] in found["ops"]
    assert any(op.startswith("aten::index_put") or op == "aten::_index_put_impl_" for op, counts in found["ops"] if counts == crowded)
    assert "91" not in json.dumps(found)


def test_a_step_without_lookups_says_nothing_and_what_fails_does_not_fail_here(tmp_path: Path) -> None:
    import torch

    layer = torch.nn.Linear(4, 4)
    assert noted(lambda: layer(torch.ones(2, 4)).sum().backward(), tmp_path) == {}
    with torch.device("meta"):
        table, index = torch.nn.Embedding(9, 4), torch.zeros(3, dtype=torch.int64)
    assert noted(lambda: table(index).sum().backward(), tmp_path / "meta") == {}
