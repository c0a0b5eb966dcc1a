"""One model of the zoo as a training step: see `zoo/__init__.py` for what the environment chooses."""
import os

import torch

from common import DEVICE
from zoo import MODELS


def steptime_setup():
    name = os.environ["STEPTIME_MODEL"]
    words = set(filter(None, os.environ.get("STEPTIME_VARIANT", "").split("+")))
    make = MODELS[name]
    batch = int(os.environ.get("STEPTIME_BATCH", make.batch))
    torch.manual_seed(0)
    task = make(batch)
    model = task.model.to(DEVICE)
    if "chlast" in words:
        model = model.to(memory_format=torch.channels_last)
    optimizer = made_for_graphs(task, model) if "graph" in words else task.optimizer(model.parameters())
    scaler = torch.amp.GradScaler(DEVICE, enabled="scaler" in words)
    cast = torch.autocast(DEVICE, torch.float16 if "scaler" in words else torch.bfloat16, enabled=bool(words & {"amp", "scaler"}))
    loss_of = torch.compile(task.loss) if "compile" in words else task.loss

    def train(*there):
        optimizer.zero_grad()
        with cast:
            loss = loss_of(*there)
        scaler.scale(loss).backward()
        if "clip" in words:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    if "graph" in words:
        step = captured(train, task, optimizer)
    else:

        def step(batch):
            loss = train(*(placed(each, words) for each in batch))
            if "item" in words:
                loss.item()

    about = {"batch": batch, "model": "_".join([name, *sorted(words)]), "params": sum(p.numel() for p in model.parameters())}
    return step, task.batches, about


def placed(tensor, words):
    there = tensor.to(DEVICE)
    return there.to(memory_format=torch.channels_last) if "chlast" in words and there.dim() == 4 else there


def made_for_graphs(task, model):
    """The optimizer with its step count on the device, where it has one."""
    try:
        return task.optimizer(model.parameters(), capturable=True)
    except TypeError:
        return task.optimizer(model.parameters())


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

    step.keeps = (train, task, optimizer)  # what the graph reads and writes must stay where it is
    return step
