"""A small image network: plain 3x3 convolutions, then depthwise-separable blocks, batch norm throughout; SGD with momentum."""
import torch
from torch import nn
from torch.nn import functional as F

from common import BATCHES, DEVICE, arguments, batch_size, pick

SIZE, WIDTHS, CLASSES = pick((112, (64, 128, 256, 512), 1000), (16, (4, 8, 8, 8), 10))
BATCH = batch_size(64)


def plain(inputs, outputs, stride=1):
    return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def separable(inputs, outputs, stride=1):
    return [
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6(inplace=True),
        nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True),
    ]


def network():
    a, b, c, d = WIDTHS
    return nn.Sequential(
        *plain(3, a), *plain(a, a), nn.MaxPool2d(2), *plain(a, b), *plain(b, b), nn.MaxPool2d(2),
        *separable(b, c), *separable(c, c), *separable(c, d, stride=2), *separable(d, d), *separable(d, d),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(d, CLASSES),
    )


def steptime_setup():
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    data = [(torch.rand(BATCH, 3, SIZE, SIZE), torch.randint(0, CLASSES, (BATCH,))) for _ in range(BATCHES)]

    def step(batch):
        images, labels = (each.to(DEVICE) for each in batch)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step, data, arguments("convnet", BATCH, model)
