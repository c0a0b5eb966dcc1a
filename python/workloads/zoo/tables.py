"""Embedding tables looked up by one call, by operators other than PyTorch's: steptime's or FBGEMM's."""
import torch
from torch import nn

from common import DEVICE

OPTIMIZERS = {
    torch.optim.SGD: ("sgd", "EXACT_SGD"),
    torch.optim.Adagrad: ("adagrad", "EXACT_ADAGRAD"),
    torch.optim.Adam: ("adam", "ADAM"),
    torch.optim.SparseAdam: ("adam", "ADAM"),
}
LIBRARIES = {"ours": "steptime", "fbgemm": "fbgemm"}
"""Which word of a variant means which library."""


def bags(library, rows, dim, optimizer, lr, mode="sum", longest=None):
    """A module from indices, table after table, and offsets of bags to [bags, columns of all]. The backward pass includes the
    optimizer's step. longest: largest number of lookups of one table."""
    ours, theirs = OPTIMIZERS[optimizer]
    if library == "steptime":
        from steptime.operators import EmbeddingBags

        return EmbeddingBags(rows, dim, mode=mode, optimizer=ours, lr=lr, longest=longest, device=DEVICE)
    import fbgemm_gpu.split_table_batched_embeddings_ops_training as training
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    return training.SplitTableBatchedEmbeddingBagsCodegen(
        [(each, dim, training.EmbeddingLocation.DEVICE, training.ComputeDevice.CUDA) for each in rows],
        optimizer=getattr(EmbOptimType, theirs),
        learning_rate=lr,
        pooling_mode={"sum": training.PoolingMode.SUM, "mean": training.PoolingMode.MEAN}[mode],
        device=torch.device(DEVICE),
    )


class OneCall(nn.Module):
    """Tables of these rows and columns, with `count` lookups of each in bags of one row."""

    def __init__(self, library, rows, dim, count, optimizer, lr):
        super().__init__()
        self.bags = bags(library, rows, dim, optimizer, lr, longest=count)
        self.offsets = torch.arange(len(rows) * count + 1, device=DEVICE)

    def forward(self, indices):
        """indices: table after table. Returns [bags, columns of all]."""
        return self.bags(indices, self.offsets)
