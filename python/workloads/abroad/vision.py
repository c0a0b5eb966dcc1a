"""Convolutional networks, diffusion, a GAN, volumes."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, cast, cycle, model, size


class WideUnit(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.n1, self.n2 = nn.BatchNorm2d(a), nn.BatchNorm2d(b)
        self.c1, self.c2 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(a, b, 1, stride, bias=False) if a != b or stride > 1 else None

    def forward(self, x):
        h = F.relu(self.n1(x), inplace=True)
        skip = x if self.short is None else self.short(h)
        return skip + self.c2(F.relu(self.n2(self.c1(h)), inplace=True))


def wide_resnet(width, each, classes):
    layers, a = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for stage, b in enumerate((16 * width, 32 * width, 64 * width)):
        for unit in range(each):
            layers.append(WideUnit(a, b, 2 if stage and not unit else 1))
            a = b
    return nn.Sequential(*layers, nn.BatchNorm2d(a), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(a, classes))


@model("vision", "amp", dtypes=("fp16",))
def wide_resnet_amp(device, dtype):
    batch = size(256, 4)
    net = wide_resnet(*size((4, 2), (1, 1)), 100).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda" and dtype == "fp16")
    following = cycle(lambda: (torch.randn(batch, 3, 32, 32), torch.randint(0, 100, (batch,))))

    def step():
        x, y = following()
        x, y = x.to(device, memory_format=torch.channels_last), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        with cast(device, dtype):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return Training(step, net, optimizer, batch)


class NextBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.depth = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm, self.wide, self.back = nn.LayerNorm(dim, 1e-6), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.scale = nn.Parameter(1e-6 * torch.ones(dim))

    def forward(self, x):
        h = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.back(F.gelu(self.wide(h)))).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self, dims, depths, classes):
        super().__init__()
        parts = [nn.Conv2d(3, dims[0], 4, 4)]
        for i, (dim, depth) in enumerate(zip(dims, depths)):
            if i:
                parts += [nn.GroupNorm(1, dims[i - 1]), nn.Conv2d(dims[i - 1], dim, 2, 2)]
            parts += [NextBlock(dim) for _ in range(depth)]
        self.body, self.head = nn.Sequential(*parts), nn.Linear(dims[-1], classes)

    def forward(self, x):
        return self.head(self.body(x).mean((-2, -1)))


@model("vision")
def convnext_ema(device, dtype):
    batch, side = size((24, 192), (2, 32))
    net = ConvNext(*size(([64, 128, 256, 384], [2, 2, 4, 2]), ([8, 16], [1, 1])), 50).to(device)
    average = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    following = cycle(lambda: (torch.randn(batch, 3, side, side), torch.randint(0, 50, (batch,))))

    def step():
        x, y = (t.to(device) for t in following())
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 1e-3)

    return Training(step, net, optimizer, batch, [average])


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(True), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(True))


class Segmenter(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        w = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([3, *w], w))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(w, w[1:]))
        self.join = nn.ModuleList(double(2 * a, a) for a in w[:-1])
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for i, part in enumerate(self.down):
            x = part(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, join, skip in zip(self.up[::-1], self.join[::-1], kept[-2::-1]):
            x = join(torch.cat((skip, up(x)), 1))
        return self.out(x)


@model("vision", "amp", dtypes=("fp16",))
def segmentation_amp(device, dtype):
    batch, side = size((12, 192), (2, 32))
    net = Segmenter(size(48, 4), 12).to(device)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda" and dtype == "fp16")
    following = cycle(lambda: (torch.randn(batch, 3, side, side), torch.randint(0, 12, (batch, side, side))))

    def step():
        image, mask = (t.to(device) for t in following())
        optimizer.zero_grad()
        with cast(device, dtype):
            each = F.cross_entropy(net(image), mask, reduction="none").flatten()
            loss = each.topk(each.numel() // 4).values.mean()  # the hardest quarter
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    return Training(step, net, optimizer, batch)


class TimedBlock(nn.Module):
    def __init__(self, a, b, dim, attend):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, a), nn.Conv2d(a, b, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, b), nn.Conv2d(b, b, 3, padding=1)
        self.time = nn.Linear(dim, 2 * b)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()
        self.attend = nn.MultiheadAttention(b, 4, batch_first=True) if attend else None

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x)))
        scale, shift = self.time(F.silu(t))[:, :, None, None].chunk(2, 1)
        h = self.skip(x) + self.c2(F.silu(self.n2(h) * (1 + scale) + shift))
        if self.attend is not None:
            flat = h.flatten(2).transpose(1, 2)
            h = h + self.attend(flat, flat, flat, need_weights=False)[0].transpose(1, 2).view_as(h)
        return h


class Denoiser(nn.Module):
    def __init__(self, width, dim):
        super().__init__()
        w = [width, 2 * width, 3 * width]
        self.register_buffer("rates", torch.exp(torch.linspace(0, -9.2, dim // 2)), persistent=False)
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(TimedBlock(a, b, dim, i == 2) for i, (a, b) in enumerate(zip([width, *w], w)))
        self.mid = TimedBlock(w[-1], w[-1], dim, True)
        self.up = nn.ModuleList(TimedBlock(a + b, b, dim, i == 0) for i, (a, b) in enumerate(zip([w[2], w[2], w[1]], w[::-1])))
        self.out = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, t):
        angle = t[:, None] * self.rates
        t = self.time(torch.cat((angle.sin(), angle.cos()), 1))
        x, kept = self.inp(x), []
        for i, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if i else x, t)
            kept.append(x)
        x = self.mid(x, t)
        for i, block in enumerate(self.up):
            x = block(torch.cat((F.interpolate(x, scale_factor=2.0, mode="nearest") if i else x, kept.pop()), 1), t)
        return self.out(x)


@model("vision", "diffusion")
def flow_unet(device, dtype):
    batch, side = size((32, 48), (2, 16))
    net = Denoiser(size(96, 16), size(256, 16)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-4)
    following = cycle(lambda: torch.rand(batch, 3, side, side) * 2 - 1)

    def step():
        clean = following().to(device)
        noise, t = torch.randn_like(clean), torch.rand(batch, device=device)
        mixed = torch.lerp(clean, noise, t[:, None, None, None])
        loss = F.mse_loss(net(mixed, t * 1000), noise - clean)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return Training(step, net, optimizer, batch)


@model("vision", "two optimizers")
def dcgan(device, dtype):
    batch, latent, w = size((96, 100, 64), (4, 8, 4))
    maker = nn.Sequential(
        nn.ConvTranspose2d(latent, 8 * w, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * w), nn.ReLU(),
        nn.ConvTranspose2d(8 * w, 4 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * w), nn.ReLU(),
        nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.ReLU(),
        nn.ConvTranspose2d(2 * w, w, 4, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(),
        nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh(),
    ).to(device)
    judge = nn.Sequential(
        nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * w, 4 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * w), nn.LeakyReLU(0.2),
        nn.Conv2d(4 * w, 8 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(8 * w), nn.LeakyReLU(0.2),
        nn.Conv2d(8 * w, 1, 4, 1, 0), nn.Flatten(),
    ).to(device)
    for each in (*maker.modules(), *judge.modules()):
        if isinstance(each, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(each.weight, 0.0, 0.02)
    first = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    following = cycle(lambda: torch.rand(batch, 3, 64, 64) * 2 - 1)
    real, fake = torch.ones(batch, 1, device=device), torch.zeros(batch, 1, device=device)

    def step():
        images = following().to(device)
        made = maker(torch.randn(batch, latent, 1, 1, device=device))
        first.zero_grad()
        (criterion(judge(images), real) + criterion(judge(made.detach()), fake)).backward()
        first.step()
        second.zero_grad()
        criterion(judge(made), real).backward()
        second.step()

    return Training(step, nn.ModuleList([maker, judge]), None, batch)


@model("vision", "amp", dtypes=("bf16",))
def video_bf16(device, dtype):
    batch, frames, side, w = size((8, 8, 80, 32), (1, 4, 16, 4))

    def unit(a, b, stride):
        return nn.Sequential(
            nn.Conv3d(a, b, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), nn.BatchNorm3d(b), nn.ReLU(),
            nn.Conv3d(b, b, (3, 1, 1), (1, 1, 1), (1, 0, 0), bias=False), nn.BatchNorm3d(b), nn.ReLU(),
            nn.Conv3d(b, b, 3, padding=1, bias=False), nn.BatchNorm3d(b), nn.ReLU(),
        )

    net = nn.Sequential(
        unit(3, w, 2), unit(w, 2 * w, 2), nn.MaxPool3d((2, 1, 1)), unit(2 * w, 4 * w, 2), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4 * w, 40)
    ).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    following = cycle(lambda: (torch.randn(batch, 3, frames, side, side), torch.randint(0, 40, (batch,))))

    def step():
        x, y = (t.to(device) for t in following())
        optimizer.zero_grad()
        with cast(device, dtype):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)
