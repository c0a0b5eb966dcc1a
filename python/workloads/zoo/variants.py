"""Single changes of a zoo model, each a word of STEPTIME_VARIANT."""
import functools

import torch
from torch.utils.checkpoint import checkpoint

WORDS = {
    "accumulate": "two halves of the batch, one update",
    "amp": "autocast to bf16",
    "checkpoint": "activations of each child of the model computed again in the backward pass",
    "chlast": "channels-last weights and images",
    "clip": "gradients clipped",
    "compile": "the loss by torch.compile",
    "fbgemm": "embedding tables by FBGEMM's table-batched operators (wants fbgemm_gpu)",
    "foreach0": "the optimizer as a loop over parameters",
    "fused": "the optimizer as one fused op",
    "graph": "the whole step captured as a CUDA graph",
    "item": "the loss read on the host each step",
    "linear": "linear layers with the ReLU that follows as one op",
    "ours": "embedding tables by steptime's operators (wants STEPTIME_CUDA_LIBRARY)",
    "pin": "batches in pinned memory, the next one copied on a second stream",
    "pointwise": "activations of several ops compiled, each by itself",
    "scaler": "autocast to f16 with a GradScaler",
    "tf32": "matrix products in TF32",
}


def words_of(text):
    """The words of a variant; ends the program for an unknown one."""
    words = set(filter(None, text.split("+")))
    unknown = words - set(WORDS)
    if unknown:
        raise SystemExit(f"unknown variant {sorted(unknown)[0]!r}; known are {', '.join(sorted(WORDS))}")
    return words


def optimizer_of(task, model, words):
    """The optimizer with the options that the words select; options that it does not have are left out."""
    options = {"capturable": True} if "graph" in words else {"fused": True} if "fused" in words else {"foreach": False} if "foreach0" in words else {}
    trained = [each for each in model.parameters() if each.requires_grad]
    try:
        return task.optimizer(trained, **options)
    except TypeError:
        return task.optimizer(trained)


def checkpointed(model):
    """Checkpoints every module that the model calls, except containers."""
    for child in model.children():
        if isinstance(child, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            checkpointed(child)
        elif any(p.requires_grad for p in child.parameters()):
            child.forward = functools.partial(checkpoint, child.forward, use_reentrant=False)


class Prefetch:
    """Copies the next batch of `batches` to the device on a separate stream while the current one is trained on."""

    def __init__(self, batches, placed):
        self.batches = [tuple(each.pin_memory() for each in batch) for batch in batches]
        self.placed, self.at, self.stream = placed, 0, torch.cuda.Stream()
        self.ready = self._copied()

    def _copied(self):
        with torch.cuda.stream(self.stream):
            batch = self.batches[self.at % len(self.batches)]
            self.at += 1
            return tuple(self.placed(each, non_blocking=True) for each in batch)

    def next(self):
        """The next batch, on the device."""
        stream = torch.cuda.current_stream()
        stream.wait_stream(self.stream)
        batch = self.ready
        for each in batch:
            each.record_stream(stream)
        self.ready = self._copied()
        return batch
