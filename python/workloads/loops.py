"""One small network, trained by various common training loops. STEPTIME_LOOP chooses one of LOOPS:

    STEPTIME_LOOP=closure python -m steptime record workloads/loops.py --out recordings/loop_closure
    STEPTIME_LOOP=closure STEPTIME_DEVICE=cpu python -m steptime record workloads/loops.py --only et --out recordings/cpu_closure

`steptime predict recordings/cpu_closure --device h200` should predict the launches of the first recording.
"""
import copy
import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from common import BATCHES, DEVICE, arguments, batch_size, pick

WIDTH, CLASSES, ROWS = pick((512, 10, 4096), (16, 4, 64))
BATCH = batch_size(pick(256, 8))
LOOP = os.environ.get("STEPTIME_LOOP", "plain")


def network():
    return nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH), nn.BatchNorm1d(2 * WIDTH), nn.SiLU(), nn.Dropout(0.1), nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )


def samples(count):
    return torch.randn(count, WIDTH), torch.randint(0, CLASSES, (count,))


def optimizer_of(model, kind=torch.optim.AdamW, **options):
    return kind(model.parameters(), lr=1e-3, **options)


def plain(model, optimizer=None, move=lambda each: each.to(DEVICE), then=lambda loss: None):
    optimizer = optimizer or optimizer_of(model)

    def step(batch):
        x, y = (move(each) for each in batch)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        then(loss)

    return step, [samples(BATCH) for _ in range(BATCHES)]


def item(model):
    return plain(model, then=lambda loss: loss.item())


def set_to_zero(model):
    step, data = plain(model)
    optimizer = optimizer_of(model)

    def step(batch):
        x, y = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, data


def closure(model):
    optimizer = optimizer_of(model)

    def step(batch):
        x, y = (each.to(DEVICE) for each in batch)

        def run():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(run)

    return step, [samples(BATCH) for _ in range(BATCHES)]


def accumulate(model):
    optimizer, parts = optimizer_of(model), 4

    def step(batch):
        optimizer.zero_grad()
        for x, y in batch:
            (F.cross_entropy(model(x.to(DEVICE)), y.to(DEVICE)) / parts).backward()
        optimizer.step()

    return step, [[samples(BATCH) for _ in range(parts)] for _ in range(BATCHES)]


def clip(model):
    optimizer = optimizer_of(model)

    def step(batch):
        x, y = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step, [samples(BATCH) for _ in range(BATCHES)]


def clip_value(model):
    optimizer = optimizer_of(model)

    def step(batch):
        x, y = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()

    return step, [samples(BATCH) for _ in range(BATCHES)]


def groups(model):
    matrices = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() == 1]
    return plain(model, torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]))


def averaged(model):
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
    return plain(model, then=lambda loss: average.update_parameters(model))


def averaged_by_hand(model):
    slow = copy.deepcopy(model).requires_grad_(False)

    def update(_):
        with torch.no_grad():
            for mean, new in zip(slow.parameters(), model.parameters()):
                mean.mul_(0.999).add_(new, alpha=0.001)

    return plain(model, then=update)


def scheduled(model):
    optimizer = optimizer_of(model)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    return plain(model, optimizer, then=lambda loss: schedule.step())


def autocast(model, scaler=None):
    optimizer, dtype = optimizer_of(model), torch.float16 if scaler else torch.bfloat16
    scaler = scaler or torch.amp.GradScaler(DEVICE, enabled=False)

    def step(batch):
        x, y = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return step, [samples(BATCH) for _ in range(BATCHES)]


def scaled(model):
    return autocast(model, torch.amp.GradScaler(DEVICE))


def loaded(workers=0, pinned=False):
    def loop(model):
        loader = DataLoader(TensorDataset(*samples(ROWS)), BATCH, shuffle=True, num_workers=workers, pin_memory=pinned, drop_last=True)
        step, _ = plain(model, move=lambda each: each.to(DEVICE, non_blocking=pinned))
        return step, loader

    return loop


def by(kind, **options):
    return lambda model: plain(model, optimizer_of(model, kind, **options))


optim = torch.optim
LOOPS = {
    "plain": plain,
    "item": item,
    "set_to_zero": set_to_zero,
    "closure": closure,
    "accumulate": accumulate,
    "clip": clip,
    "clip_value": clip_value,
    "groups": groups,
    "averaged": averaged,
    "averaged_by_hand": averaged_by_hand,
    "scheduled": scheduled,
    "autocast": autocast,
    "scaled": scaled,
    "loader": loaded(),
    "loader_workers": loaded(2),
    "loader_pinned": loaded(2, pinned=True),
    "sgd": by(optim.SGD),
    "momentum": by(optim.SGD, momentum=0.9, nesterov=True, weight_decay=1e-4),
    "adam": by(optim.Adam),
    "amsgrad": by(optim.Adam, amsgrad=True),
    "adagrad": by(optim.Adagrad),
    "rmsprop": by(optim.RMSprop),
    "rmsprop_centered": by(optim.RMSprop, centered=True, momentum=0.9),
    "adadelta": by(optim.Adadelta),
    "adamax": by(optim.Adamax),
    "nadam": by(optim.NAdam),
    "radam": by(optim.RAdam),
    "rprop": by(optim.Rprop),
    "asgd": by(optim.ASGD),
    "adafactor": by(optim.Adafactor),
    "fused_adamw": by(optim.AdamW, fused=True),
    "fused_sgd": by(optim.SGD, fused=True, momentum=0.9),
    "foreach_adamw": by(optim.AdamW, foreach=True),
    "loop_adamw": by(optim.AdamW, foreach=False),
}


def steptime_setup():
    model = network().to(DEVICE)
    step, data = LOOPS[LOOP](model)
    return step, data, arguments(f"loop_{LOOP}", BATCH, model)
