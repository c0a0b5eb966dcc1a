"""Networks for images, some from torchvision."""
import torch
from torch import nn
from torch.nn import functional as F

from .task import Task, several, task


def images(batch, side=224, classes=1000):
    return several(lambda: (torch.randn(batch, 3, side, side), torch.randint(0, classes, (batch,))), 2)


def published(name, batch, side=224):
    import torchvision

    model = torchvision.models.get_model(name, weights=None)
    return Task(model, lambda x, y: F.cross_entropy(model(x), y), images(batch, side), lambda p, **more: torch.optim.SGD(p, lr=0.01, momentum=0.9, **more))


@task(batch=32)
def mobilenet(batch):
    """Depthwise convolutions, hard swish, squeeze and excitation."""
    return published("mobilenet_v3_large", batch)


@task(batch=16)
def densenet(batch):
    """Concatenations of everything before."""
    return published("densenet121", batch)


@task(batch=32)
def swin(batch):
    """Windows of attention, rolled."""
    return published("swin_t", batch)


@task(batch=32)
def regnet(batch):
    """Grouped convolutions."""
    return published("regnet_y_800mf", batch)


@task(batch=64)
def vit(batch):
    """A vision transformer of small width."""
    return published("vit_b_16", batch) if batch < 0 else small_vit(batch)


def small_vit(batch):
    dim, patch = 384, 16
    layer = nn.TransformerEncoderLayer(dim, 6, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    model = nn.ModuleDict({"cut": nn.Conv2d(3, dim, patch, patch), "mix": nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), "head": nn.Linear(dim, 1000)})
    model.register_parameter("place", nn.Parameter(torch.zeros(1, 196, dim)))

    def loss(x, y):
        tokens = model["cut"](x).flatten(2).transpose(1, 2) + model.place
        return F.cross_entropy(model["head"](model["mix"](tokens).mean(dim=1)), y)

    return Task(model, loss, images(batch), torch.optim.AdamW)


class Residual(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.body = nn.Sequential(nn.GroupNorm(8, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU(), nn.Conv2d(after, after, 3, padding=1))
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x):
        return self.body(x) + self.skip(x)


@task(batch=16)
def diffusion(batch):
    """A denoiser: group norm, SiLU, resampling, skips."""
    model = nn.ModuleDict(
        {
            "first": nn.Conv2d(3, 64, 3, padding=1),
            "down": nn.ModuleList([Residual(64, 64), Residual(64, 128), Residual(128, 256)]),
            "up": nn.ModuleList([Residual(512, 128), Residual(256, 64), Residual(128, 64)]),
            "last": nn.Conv2d(64, 3, 3, padding=1),
        }
    )

    def loss(x, noise, level):
        noisy = x * level.sqrt().view(-1, 1, 1, 1) + noise * (1 - level).sqrt().view(-1, 1, 1, 1)
        hidden, kept = model["first"](noisy), []
        for block in model["down"]:
            hidden = block(hidden)
            kept.append(hidden)
            hidden = F.avg_pool2d(hidden, 2)
        for block in model["up"]:
            hidden = F.interpolate(hidden, scale_factor=2, mode="nearest")
            hidden = block(torch.cat([hidden, kept.pop()], dim=1))
        return F.mse_loss(model["last"](hidden), noise)

    data = several(lambda: (torch.randn(batch, 3, 64, 64), torch.randn(batch, 3, 64, 64), torch.rand(batch)))
    return Task(model, loss, data, torch.optim.AdamW)


@task(batch=32)
def efficientnet(batch):
    """Inverted bottlenecks."""
    return published("efficientnet_b0", batch)


@task(batch=128)
def autoencoder(batch):
    """Variational autoencoder of strided convolutions."""
    down = nn.Sequential(*(part for a, b in ((3, 32), (32, 64), (64, 128), (128, 256)) for part in (nn.Conv2d(a, b, 3, stride=2, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU())), nn.Flatten(), nn.Linear(256 * 16, 256))
    up = nn.Sequential(nn.Linear(128, 256 * 16), nn.Unflatten(1, (256, 4, 4)), *(part for a, b in ((256, 128), (128, 64), (64, 32)) for part in (nn.ConvTranspose2d(a, b, 4, stride=2, padding=1), nn.BatchNorm2d(b), nn.LeakyReLU())), nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1), nn.Sigmoid())
    model = nn.ModuleList([down, up])

    def loss(x):
        mean, spread = down(x).chunk(2, dim=1)
        back = up(mean + torch.exp(0.5 * spread) * torch.randn_like(spread))
        return F.mse_loss(back, x, reduction="sum") / batch - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(dim=1).mean()

    return Task(model, loss, several(lambda: (torch.rand(batch, 3, 64, 64),)))


@task(batch=32)
def points(batch):
    """An MLP on each point of a cloud, then a maximum over all points."""
    def each(*widths):
        return nn.Sequential(*(part for a, b in zip(widths, widths[1:]) for part in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())))

    model = nn.ModuleList([each(3, 64, 64), each(64, 64, 128, 1024), nn.Sequential(nn.Linear(1024, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.3), nn.Linear(512, 40))])
    data = several(lambda: (torch.randn(batch, 3, 1024), torch.randint(0, 40, (batch,))))
    return Task(model, lambda x, y: F.cross_entropy(model[2](model[1](model[0](x)).amax(dim=2)), y, label_smoothing=0.1), data)
