"""One model of the zoo as a training step; `zoo/__init__.py` lists the environment variables."""
import functools
import os

import torch

from common import DEVICE
from zoo import MODELS
from zoo.fused import fuse_linear, fuse_pointwise
from zoo.tables import LIBRARIES
from zoo.variants import Prefetch, checkpointed, optimizer_of, words_of


def steptime_setup():
    name = os.environ["STEPTIME_MODEL"]
    words = words_of(os.environ.get("STEPTIME_VARIANT", ""))
    make = MODELS[name]
    batch = int(os.environ.get("STEPTIME_BATCH", make.batch))
    torch.manual_seed(0)
    library = next((LIBRARIES[word] for word in LIBRARIES if word in words), None)
    if library and library not in make.tables:
        having = sorted(each for each in MODELS if library in MODELS[each].tables)
        raise SystemExit(f"{name} has no tables by {library}; these have: {', '.join(having)}")
    task = make(batch, tables=library) if library else make(batch)
    model = task.model.to(DEVICE)
    if "chlast" in words:
        model = model.to(memory_format=torch.channels_last)
    if "checkpoint" in words:
        checkpointed(model)
    if "linear" in words:
        fuse_linear(model)
    if "pointwise" in words:
        fuse_pointwise(model)
    if "tf32" in words:
        torch.backends.cuda.matmul.allow_tf32 = True
    optimizer = optimizer_of(task, model, words)
    scaler = torch.amp.GradScaler(DEVICE, enabled="scaler" in words)
    cast = torch.autocast(DEVICE, torch.float16 if "scaler" in words else torch.bfloat16, enabled=bool(words & {"amp", "scaler"}))
    loss_of = torch.compile(task.loss) if "compile" in words else task.loss

    def train(*there):
        optimizer.zero_grad()
        for part in halves(there) if "accumulate" in words else [there]:
            with cast:
                loss = loss_of(*part)
            scaler.scale(loss).backward()
        if "clip" in words:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    if "graph" in words:
        step = captured(train, task, optimizer)
    elif "pin" in words:
        prefetch = Prefetch(task.batches, functools.partial(placed, words=words))

        def step(batch):
            loss = train(*prefetch.next())
            if "item" in words:
                loss.item()

    else:

        def step(batch):
            loss = train(*(placed(each, words) for each in batch))
            if "item" in words:
                loss.item()

    about = {"batch": batch, "model": "_".join([name, *sorted(words)]), "params": sum(p.numel() for p in model.parameters())}
    return step, task.batches, about


def placed(tensor, words, **how):
    there = tensor.to(DEVICE, **how)
    return there.to(memory_format=torch.channels_last) if "chlast" in words and there.dim() == 4 else there


def halves(there):
    """The two halves of a batch, cut along the first dimension of each tensor."""
    return list(zip(*(each.chunk(2) for each in there)))


def captured(train, task, optimizer):
    """The whole step as one CUDA graph: batches are copied into fixed tensors, then the graph is launched."""
    fixed = [each.to(DEVICE) for each in task.batches[0]]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train(*fixed)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train(*fixed)

    def step(batch):
        for there, here in zip(fixed, batch):
            there.copy_(here)
        graph.replay()

    step.keeps = (train, task, optimizer)  # memory that the graph reads and writes must stay allocated
    return step
