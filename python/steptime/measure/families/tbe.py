"""FBGEMM's table-batched embeddings, where that library is installed: forward, and backward with the update."""

from __future__ import annotations

from steptime.measure.case import Case, Op
from steptime.measure.draw import Draw
from steptime.measure.families.embedding import spread


def draw(rng: Draw) -> Case:
    tables, batch, each = rng.size(1, 64), rng.batch(16, 16384), 1 if rng.chance(0.4) else rng.size(1, 64)
    rows, width, how = rng.log(10, 2_000_000), rng.pick(8, 16, 32, 64, 128, 256), spread(rng)
    name, back = rng.pick("EXACT_SGD", "EXACT_ROWWISE_ADAGRAD", "ADAM"), rng.chance(0.5)
    count = tables * batch * each

    def setup(make):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen

        layer = SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, width, EmbeddingLocation.DEVICE, ComputeDevice.CUDA)] * tables,
            optimizer=getattr(EmbOptimType, name),
            learning_rate=0.01,
        )
        index = make.indices((count,), rows, how)
        offsets = make.torch.arange(0, count + 1, each, device=make.device)
        if not back:
            return lambda: layer(index, offsets)
        grad, held = make.new((batch, tables * width)), {}

        def before():
            held["out"] = layer(index, offsets)

        return Op(lambda: held.pop("out").backward(grad), before)

    moved = 4.0 * width * (count * (2 if back else 1) + batch * tables) + 16.0 * count
    state = {"EXACT_SGD": 1, "EXACT_ROWWISE_ADAGRAD": 1.1, "ADAM": 3}[name]
    held = 4.0 * tables * rows * width * state + 2 * moved
    what = f"TBE {name}{' backward' if back else ''} {tables} tables {rows}x{width}, {batch}x{each}"
    # A layer also clears small tensors, which other families measure.
    return Case(what, setup, moved, memory=held, indices=how, ops="fbgemm::")
