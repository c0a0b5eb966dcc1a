"""Learning rates of PyTorch's schedulers for base 2, one scheduler a line: schedules.py FOLDER."""

import torch
from torch.optim import lr_scheduler as schedulers

STEPS = 60


def rates(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    scheduler, values = make(optimizer), []
    for _ in range(STEPS):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    print(*map(repr, values))


rates(lambda o: schedulers.ConstantLR(o, factor=1.0))
rates(lambda o: schedulers.LinearLR(o, start_factor=0.25, end_factor=1.0, total_iters=40))
rates(lambda o: schedulers.PolynomialLR(o, total_iters=50, power=2.5))
rates(lambda o: schedulers.StepLR(o, step_size=7, gamma=0.3))
rates(lambda o: schedulers.CosineAnnealingLR(o, T_max=STEPS, eta_min=0.1))
warmup = lambda o: schedulers.LinearLR(o, start_factor=0.1, total_iters=20)
rates(lambda o: schedulers.SequentialLR(o, [warmup(o), schedulers.PolynomialLR(o, total_iters=30, power=2.0)], [20]))
