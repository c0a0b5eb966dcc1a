"""Timing of the tables' steps: under GradScaler, over several passes and uses, against PyTorch's bags and optimizers on the CPU.

The kernels are replaced by PyTorch's operators: the tests check which lookups and gradients reach them, and when.
"""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from typing import Any, List

import pytest

from steptime.operators.library import OperatorError

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: there are no ops to test (pip install torch)")

from steptime.operators import EmbeddingBags, batches  # noqa: E402

F = torch.nn.functional
OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}
ROWS, DIMS, BAGS = [6, 4, 9], [4, 3, 2], 5


class OnCpu(EmbeddingBags):
    """Tables whose step is that of PyTorch's optimizer, in place of the kernel."""

    def _pool(self, indices: Any, offsets: Any, weights: Any) -> Any:
        return pooled(list(self.tables), indices, offsets, weights, self.mode)

    def _take_step(self, batch: Any) -> None:
        leaves = [table.detach().clone().requires_grad_() for table in self.tables]
        with torch.enable_grad():
            pooled(leaves, batch.indices, batch.offsets, batch.weights, self.mode).backward(batch.gradient)
        if not hasattr(self, "_own"):
            self._own = OPTIMIZERS[self.optimizer]([torch.zeros_like(leaf) for leaf in leaves], lr=self.lr)
        for table, leaf, param in zip(self.tables, leaves, self._own.param_groups[0]["params"]):
            param.data, param.grad = table.data, leaf.grad
        # Without the hooks for steps of other optimizers.
        type(self._own).step.__wrapped__(self._own)


def pooled(tables: Any, indices: Any, offsets: Any, weights: Any, mode: str) -> Any:
    bags, parts = (len(offsets) - 1) // len(tables), []
    for at, table in enumerate(tables):
        mine = offsets[at * bags : (at + 1) * bags + 1].long()
        start, end = int(mine[0]), int(mine[-1])
        scale = None if weights is None else weights[start:end]
        parts.append(F.embedding_bag(indices[start:end].long(), table, mine - start, mode=mode, per_sample_weights=scale, include_last_offset=True))
    return torch.cat(parts, 1)


def batch_of(seed: int, rows: Any = None, bags: int = BAGS) -> Any:
    torch.manual_seed(seed)
    rows = rows or ROWS
    lengths = torch.randint(0, 4, (len(rows), bags))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.flatten().cumsum(0)])
    indices = torch.cat([torch.randint(0, each, (int(count),)) for each, count in zip(rows, lengths.sum(1))])
    return indices, offsets


class Model(torch.nn.Module):
    """Tables before a dense layer; the reference has `nn.EmbeddingBag`s with the same weights."""

    def __init__(self, optimizer: str, mode: str = "sum", ours: Any = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bags = OnCpu(ROWS, DIMS, mode, optimizer, lr=0.1) if ours is None else None
        if ours is not None:
            self.theirs = torch.nn.ModuleList(
                torch.nn.EmbeddingBag.from_pretrained(table.detach().clone(), freeze=False, mode=mode, include_last_offset=True) for table in ours.bags.tables
            )
        self.dense = torch.nn.Linear(sum(DIMS), 1) if ours is None else copy.deepcopy(ours.dense)

    def forward(self, indices: Any, offsets: Any) -> Any:
        if self.bags is not None:
            return self.dense(self.bags(indices, offsets)).square().mean()
        bags, parts = (len(offsets) - 1) // len(ROWS), []
        for at, bag in enumerate(self.theirs):
            mine = offsets[at * bags : (at + 1) * bags + 1]
            parts.append(bag(indices[mine[0] : mine[-1]], mine - mine[0]))
        return self.dense(torch.cat(parts, 1)).square().mean()


def pair(optimizer: str, mode: str = "sum") -> Any:
    ours = Model(optimizer, mode)
    theirs = Model(optimizer, mode, ours)
    of_ours = OPTIMIZERS[optimizer](ours.dense.parameters(), lr=0.1)
    of_theirs = OPTIMIZERS[optimizer](theirs.parameters(), lr=0.1)
    return ours, of_ours, theirs, of_theirs


def same(ours: Any, theirs: Any) -> None:
    for table, bag in zip(ours.bags.tables, theirs.theirs):
        torch.testing.assert_close(table.detach(), bag.weight.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ours.dense.weight, theirs.dense.weight, rtol=1e-5, atol=1e-6)


# Under GradScaler --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("own", [False, True])
def test_the_scale_is_taken_off_and_overflow_takes_no_step(optimizer: str, own: bool) -> None:
    ours, of_ours, theirs, of_theirs = pair(optimizer)
    scalers = [torch.amp.GradScaler("cpu", init_scale=2.0**15, growth_interval=2) for _ in range(2)]
    if own:
        ours.bags.scaler = scalers[0]
    scales = []
    for step in range(6):
        for model, optim, scaler in ((ours, of_ours, scalers[0]), (theirs, of_theirs, scalers[1])):
            before = [table.detach().clone() for table in ours.bags.tables]
            optim.zero_grad()
            loss = model(*batch_of(step))
            scaler.scale(loss * (float("inf") if step == 3 else 1)).backward()
            scaler.step(optim)
            scaler.update()
            if step == 3 and model is ours:
                assert all(torch.equal(one, other) for one, other in zip(before, ours.bags.tables)), "overflow took a step"
        scales.append([scaler.get_scale() for scaler in scalers])
        same(ours, theirs)
    assert all(one == other for one, other in scales) and scales[3][0] == scales[2][0] / 2, scales


def test_an_overflow_of_the_tables_alone_lowers_the_scale() -> None:
    bags = OnCpu(ROWS, DIMS, optimizer="sgd")
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    before = [table.detach().clone() for table in bags.tables]
    scaler.scale(bags(*batch_of(1)).sum() * float("nan")).backward()
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert all(torch.equal(one, other) for one, other in zip(before, bags.tables))


def test_of_several_scalers_one_is_named() -> None:
    bags = OnCpu(ROWS, DIMS, optimizer="sgd")
    scalers = [torch.amp.GradScaler("cpu") for _ in range(2)]
    loss = bags(*batch_of(1)).sum()
    scalers[0].scale(torch.ones(1))
    with pytest.raises(OperatorError, match=r"2 GradScalers are in use.*tables.scaler = scaler"):
        scalers[1].scale(loss).backward()
    for scaler in scalers:
        scaler._per_optimizer_states[0]["found_inf_per_device"]["cpu"] = torch.zeros(1)
        scaler.update()


def test_a_scaler_that_is_off_changes_nothing() -> None:
    ours, of_ours, theirs, of_theirs = pair("sgd")
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for model, optim in ((ours, of_ours), (theirs, of_theirs)):
        scaler.scale(model(*batch_of(1))).backward()
        scaler.step(optim)
        scaler.update()
    same(ours, theirs)


# Over several passes and uses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("scaled", [False, True])
def test_gradients_are_added_up_where_that_is_asked_for(optimizer: str, mode: str, scaled: bool) -> None:
    ours, of_ours, theirs, of_theirs = pair(optimizer, mode)
    scalers = [torch.amp.GradScaler("cpu", init_scale=64.0, enabled=scaled) for _ in range(2)]
    for window in range(3):
        for model, optim, scaler in ((ours, of_ours, scalers[0]), (theirs, of_theirs, scalers[1])):
            optim.zero_grad()
            for micro in range(3):
                loss = model(*batch_of(10 * window + micro, bags=BAGS + micro)) * (float("inf") if scaled and (window, micro) == (1, 0) else 1)
                if model is ours and micro < 2:
                    with ours.bags.accumulating():
                        scaler.scale(loss).backward()
                else:
                    scaler.scale(loss).backward()
            scaler.step(optim)
            scaler.update()
        same(ours, theirs)
    assert not scaled or scalers[0].get_scale() == 32.0


def test_a_second_pass_before_the_step_raises() -> None:
    ours, of_ours, _, _ = pair("adam")
    ours(*batch_of(1)).backward()
    of_ours.step()
    ours(*batch_of(2)).backward()
    with pytest.raises(OperatorError, match=r"tables\.accumulating\(\).*tables\.next_step\(\)"):
        ours(*batch_of(3)).backward()
    of_ours.step()
    ours(*batch_of(4)).backward()
    ours.bags.next_step()
    ours(*batch_of(5)).backward()


def test_passes_before_the_first_step_are_warned_of() -> None:
    ours, of_ours, _, _ = pair("adam")
    for seed in range(2):
        ours(*batch_of(seed)).backward()
    with pytest.warns(UserWarning, match=r"tables took 2 steps before the first step.*accumulating\(\)"):
        of_ours.step()


def test_gradients_that_are_left_over_raise() -> None:
    ours, of_ours, _, _ = pair("adam")
    with ours.bags.accumulating():
        ours(*batch_of(1)).backward()
    with pytest.raises(OperatorError, match="hold the gradients of 1 backward passes"):
        of_ours.step()


def test_tables_by_themselves_take_a_step_in_each_pass() -> None:
    gc.collect()
    bags = OnCpu(ROWS, DIMS, optimizer="sgd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(3):
            before = [table.detach().clone() for table in bags.tables]
            bags(*batch_of(seed)).sum().backward()
            assert not all(torch.equal(one, other) for one, other in zip(before, bags.tables))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_tables_that_are_used_twice_in_a_pass_take_one_step(optimizer: str) -> None:
    ours, of_ours, theirs, of_theirs = pair(optimizer)
    for step in range(3):
        for model, optim in ((ours, of_ours), (theirs, of_theirs)):
            optim.zero_grad()
            (model(*batch_of(step)) + 2 * model(*batch_of(step + 50, bags=3))).backward()
            optim.step()
        same(ours, theirs)


def test_a_forward_pass_that_is_never_taken_back_changes_nothing() -> None:
    ours, of_ours, theirs, of_theirs = pair("adam")
    kept = ours(*batch_of(99))
    for step in range(2):
        for model, optim in ((ours, of_ours), (theirs, of_theirs)):
            optim.zero_grad()
            model(*batch_of(step)).backward()
            optim.step()
        same(ours, theirs)
    assert kept.requires_grad


def test_batches_are_merged_table_by_table() -> None:
    rows = [7, 3]
    several = [batch_of(seed, rows, bags) for seed, bags in ((1, 4), (2, 1), (3, 6))]
    weights = [torch.rand(len(indices)) for indices, _ in several]
    gradients = [torch.rand(bags, 5) for bags in (4, 1, 6)]
    one = batches.merged([batches.Batch(grad, *batch, scale) for grad, batch, scale in zip(gradients, several, weights)], len(rows))
    leaves: List[Any] = [[torch.zeros(7, 2, requires_grad=True), torch.zeros(3, 3, requires_grad=True)] for _ in range(2)]
    pooled(leaves[0], one.indices, one.offsets, one.weights, "sum").backward(one.gradient)
    for grad, batch, scale in zip(gradients, several, weights):
        pooled(leaves[1], *batch, scale, "sum").backward(grad)
    for found, expected in zip(*leaves):
        torch.testing.assert_close(found.grad, expected.grad)


def test_copies_hold_no_gradients() -> None:
    bags = OnCpu(ROWS, DIMS, optimizer="sgd")
    bags.scaler = torch.amp.GradScaler("cpu")
    with bags.accumulating():
        bags.scaler.scale(bags(*batch_of(1)).sum()).backward()
    for other in (copy.deepcopy(bags), pickle.loads(pickle.dumps(bags))):
        assert other.scaler is None and other._training.held == [] and len(bags._training.held) == 1
    bags.next_step()
    bags.scaler.update()


# Lookups -----------------------------------------------------------------------------------------------------------


def test_offsets_are_taken_as_pytorchs_bags_take_them() -> None:
    for rows, dims in ((ROWS, DIMS), ([6], [4])):
        indices, offsets = batch_of(3, rows)
        with_last = OnCpu(rows, dims, optimizer=None)
        without = OnCpu(rows, dims, optimizer=None, include_last_offset=False)
        without.load_state_dict(with_last.state_dict())
        expected = with_last(indices, offsets)
        assert torch.equal(without(indices, offsets[:-1]), expected)
        assert expected.shape[0] == BAGS


def test_no_bag_is_lost() -> None:
    indices, offsets = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2])
    with pytest.raises(OperatorError, match="the last offset is 2 and there are 4 indices.*include_last_offset=False"):
        OnCpu([6], [4], optimizer=None)(indices, offsets)
    with pytest.raises(OperatorError, match=r"4 offsets for 2 tables: give B \* 2 \+ 1.*include_last_offset=False"):
        OnCpu([6, 6], [4, 4], optimizer=None)(indices, torch.tensor([0, 1, 2, 3]))
    with pytest.raises(OperatorError, match="5 offsets for 2 tables without the last"):
        OnCpu([6, 6], [4, 4], optimizer=None, include_last_offset=False)(indices, torch.tensor([0, 1, 2, 3, 4]))


def test_offsets_are_checked_on_the_first_batch_of_a_shape_and_each_when_debugging() -> None:
    good, back = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 3, 2, 3, 4])
    indices = torch.tensor([5, 1, 2, 3])
    with pytest.raises(OperatorError, match="go back"):
        OnCpu([6, 6], [4, 4], optimizer=None)(indices, back)
    bags, debugging = (OnCpu([6, 6], [4, 4], optimizer=None, debug=debug) for debug in (False, True))
    for each in (bags, debugging):
        each(indices, good)
    with pytest.raises(OperatorError, match="go back"):
        debugging(indices, back)
    with pytest.raises(OperatorError, match="the last offset is 3 and there are 4 indices"):
        debugging(indices, torch.tensor([0, 1, 2, 3, 3]))
    with pytest.raises(OperatorError, match="index 9 at 2 is out of range of table 1, which has 6 rows"):
        debugging(torch.tensor([5, 1, 9, 3]), good)


def test_indices_of_another_type_are_refused_with_the_conversion() -> None:
    indices, offsets = batch_of(4)
    bags = OnCpu(ROWS, DIMS, optimizer=None)
    with pytest.raises(OperatorError, match=r"indices are torch.int32.*indices\.to\(torch\.int64\)"):
        bags(indices.int(), offsets)
    with pytest.raises(OperatorError, match=r"offsets are torch.int32.*offsets\.to\(torch\.int64\)"):
        bags(indices, offsets.int())
    with pytest.raises(OperatorError, match=r"indices\.to\(torch\.int64\).*index_dtype=torch\.int32"):
        bags(indices.int(), offsets.int())
