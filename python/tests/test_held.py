"""Memory that a training loop holds between steps, in meta.json. Runs on CPU PyTorch."""

import json

import pytest

import steptime

torch = pytest.importorskip("torch")


def held(tmp_path, optimizer_of, sparse=False):
    table, linear = torch.nn.EmbeddingBag(50, 8, sparse=sparse), torch.nn.Linear(8, 4)
    norm = torch.nn.BatchNorm1d(4)
    model = torch.nn.Sequential(table, linear, norm)
    frozen = linear.bias.requires_grad_(False)
    optimizer = optimizer_of([each for each in model.parameters() if each is not frozen])

    def step(batch):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

    batches = [torch.zeros(6, 3, dtype=torch.int64)]
    out = steptime.record(step, batches, out=tmp_path / "one", only="et")
    memory = json.loads((out / "meta.json").read_text())["memory"]
    assert memory.pop("version") == 1
    return {kind: sum(of["bytes"] for of in types.values()) for kind, types in memory.items()}, memory


def test_parameters_gradients_and_states_are_summed(tmp_path):
    found, memory = held(tmp_path, torch.optim.AdamW)
    trained = 4 * (50 * 8 + 8 * 4 + 4 + 4)
    assert found["parameters"] == trained + 4 * 4
    assert (found["gradients"], found["states"]) == (trained, 2 * trained)
    assert memory["buffers"] == {
        "float32": {"tensors": 2, "bytes": 32, "allocated": 1024},
        "int64": {"tensors": 1, "bytes": 8, "allocated": 512},
    }
    assert memory["gradients"]["float32"]["allocated"] == 2048 + 3 * 512


def test_momentum_is_one_state_and_plain_descent_has_none(tmp_path):
    found, _ = held(tmp_path, lambda those: torch.optim.SGD(those, lr=0.1, momentum=0.9))
    assert found["states"] == found["gradients"]


def test_sparse_gradients_are_left_out(tmp_path):
    found, _ = held(tmp_path, lambda those: torch.optim.SGD(those, lr=0.1), sparse=True)
    assert (found["gradients"], found["states"]) == (4 * (8 * 4 + 4 + 4), 0)


def test_of_sharded_parameters_the_part_of_this_rank_is_held(tmp_path):
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    torch.distributed.init_process_group("fake", rank=0, world_size=8, store=fake.FakeStore())
    try:
        model = torch.nn.Linear(16, 64)
        fsdp.fully_shard(model, mesh=torch.distributed.device_mesh.init_device_mesh("cpu", (8,)))
        optimizer = torch.optim.Adam(model.parameters())

        def step(batch):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()

        out = steptime.record(step, [torch.zeros(4, 16)], out=tmp_path / "one", batch=4, only="et")
    finally:
        torch.distributed.destroy_process_group()
    memory = json.loads((out / "meta.json").read_text())["memory"]
    sizes = [memory[kind]["float32"]["bytes"] for kind in ("parameters", "gradients", "states")]
    assert sizes == [4 * (8 * 16 + 8), 4 * (8 * 16 + 8), 2 * 4 * (8 * 16 + 8)]
