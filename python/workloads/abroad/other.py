"""Recurrent networks, audio, small networks bound by the host, accumulation."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

from .common import next_word
from .language import Gpt
from .registry import Training, cycle, model, size
from .skew import zipf


class Tagger(nn.Module):
    def __init__(self, words, dim, hidden, tags):
        super().__init__()
        self.words, self.drop = nn.Embedding(words, dim, padding_idx=0), nn.Dropout(0.3)
        self.lstm = nn.LSTM(dim, hidden, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, x):
        return self.head(self.drop(self.lstm(self.drop(self.words(x)))[0]))


@model("rnn")
def bilstm_tagger(device, dtype):
    batch, length, words = size((64, 48, 25_000), (2, 6, 50))
    net = Tagger(words, *size((200, 256), (8, 8)), 17).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    following = cycle(lambda: (zipf(words, (batch, length), 1.0, first=1), torch.randint(0, 17, (batch, length))))
    total = torch.zeros(())

    def step():
        x, y = (t.to(device) for t in following())
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x).view(-1, 17), y.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        if device.type != "meta":
            total.add_(loss.item())

    return Training(step, net, optimizer, batch)


class Separator(nn.Module):
    """Demucs: strided convolutions with GLUs, an LSTM between, transposed convolutions back."""

    def __init__(self, width, depth):
        super().__init__()
        w = [1] + [width * 2**i for i in range(depth)]
        self.down = nn.ModuleList(
            nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1)) for a, b in zip(w, w[1:])
        )
        self.lstm = nn.LSTM(w[-1], w[-1], 1, bidirectional=True)
        self.back = nn.Linear(2 * w[-1], w[-1])
        self.up = nn.ModuleList(
            nn.Sequential(nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2)) for a, b in zip(w[:0:-1][1:] + [1], w[:0:-1])
        )

    def forward(self, x):
        kept = []
        for part in self.down:
            x = part(x)
            kept.append(x)
        x = self.back(self.lstm(x.permute(2, 0, 1))[0]).permute(1, 2, 0)
        for i, part in enumerate(self.up):
            x = part(x + kept.pop())
            x = x if i + 1 == len(self.up) else F.relu(x)
        return x


@model("audio", "rnn")
def wave_separator(device, dtype):
    batch, samples = size((16, 16_384), (1, 1024))
    net = Separator(*size((48, 4), (4, 2))).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    following = cycle(lambda: (torch.randn(batch, 1, samples), torch.randn(batch, 1, samples)))

    def step():
        mix, voice = following()
        mix, voice = mix.to(device), voice.to(device)
        loss = F.l1_loss(net(mix), voice)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Tabular(nn.Module):
    def __init__(self, a, hidden, depth):
        super().__init__()
        parts = []
        for _ in range(depth):
            parts += [nn.Linear(a, hidden), nn.BatchNorm1d(hidden), nn.Mish(), nn.Dropout(0.1)]
            a = hidden
        self.net = nn.Sequential(*parts, nn.Linear(a, 1))

    def forward(self, x):
        return self.net(x)


@model("host")
def tabular_mlp(device, dtype):
    batch = size(512, 16)
    net = Tabular(54, 256, 4).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100_000)
    following = cycle(lambda: (torch.randn(batch, 54), torch.randn(batch, 1)))
    history = []

    def step():
        x, y = following()
        optimizer.zero_grad()
        loss = F.smooth_l1_loss(net(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        schedule.step()
        history[:] = [loss.item() if device.type != "meta" else 0.0]

    return Training(step, net, optimizer, batch)


def dense(*widths):
    parts = []
    for a, b in zip(widths, widths[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


@model("host", "two optimizers")
def soft_actor_critic(device, dtype):
    batch, seen, acts = size((256, 24, 6), (8, 4, 2))
    actor = dense(seen, 256, 256, 2 * acts).to(device)
    critics = nn.ModuleList(dense(seen + acts, 256, 256, 1) for _ in range(2)).to(device)
    target = copy.deepcopy(critics).requires_grad_(False)
    of_actor, of_critics = torch.optim.Adam(actor.parameters(), lr=3e-4), torch.optim.Adam(critics.parameters(), lr=3e-4)
    following = cycle(lambda: tuple(torch.randn(batch, n) for n in (seen, acts, 1, seen)))

    def act(state):
        mean, spread = actor(state).chunk(2, -1)
        normal = torch.distributions.Normal(mean, spread.clamp(-5, 2).exp(), validate_args=False)
        raw = normal.rsample()
        action = raw.tanh()
        return action, (normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)).sum(-1, keepdim=True)

    def step():
        state, action, reward, following_state = (t.to(device) for t in following())
        with torch.no_grad():
            future, chance = act(following_state)
            both = torch.cat((following_state, future), -1)
            wanted = reward + 0.99 * (torch.min(*(q(both) for q in target)) - 0.2 * chance)
        both = torch.cat((state, action), -1)
        loss = sum(F.mse_loss(q(both), wanted) for q in critics)
        of_critics.zero_grad()
        loss.backward()
        of_critics.step()
        chosen, chance = act(state)
        loss = (0.2 * chance - torch.min(*(q(torch.cat((state, chosen), -1)) for q in critics))).mean()
        of_actor.zero_grad()
        loss.backward()
        of_actor.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), critics.parameters()):
                old.mul_(0.995).add_(new, alpha=0.005)

    return Training(step, nn.ModuleList([actor, critics]), None, batch)


@model("accumulation", "attention")
def gpt_accumulate(device, dtype):
    batch, length, dim, words = size((6, 256, 384, 8_000), (2, 8, 32, 50))
    net = Gpt(words, dim, size(6, 4), size(6, 1), length, 0.0).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    following = cycle(lambda: torch.randint(0, words, (batch, length + 1)))

    def step():
        for _ in range(4):
            loss = next_word(net, following().to(device)) / 4
            loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return Training(step, net, optimizer, 4 * batch)


class Experts(nn.Module):
    """Feed-forward part whose tokens go to the two best of several experts."""

    def __init__(self, dim, hidden, count):
        super().__init__()
        self.gate = nn.Linear(dim, count, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(count))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weight, chosen = self.gate(flat).softmax(-1).topk(2, -1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out = out.index_add(0, token, expert(flat[token]) * weight[token, place, None])
        return out.view_as(x)


class Mixture(nn.Module):
    def __init__(self, inputs, dim, hidden, count, depth):
        super().__init__()
        self.project, self.head = nn.Linear(inputs, dim), nn.Linear(dim, inputs)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.layers = nn.ModuleList(Experts(dim, hidden, count) for _ in range(depth))

    def forward(self, x):
        h = self.project(x)
        for norm, layer in zip(self.norms, self.layers):
            h = h + layer(norm(h))
        return self.head(h)


@model("host", "values")
def mixture_of_experts(device, dtype):
    batch, length = size((16, 256), (2, 8))
    net = Mixture(64, *size((384, 1024, 8, 3), (16, 16, 2, 1))).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    following = cycle(lambda: torch.randn(batch, length, 64))

    def step():
        x = following().to(device)
        loss = F.mse_loss(net(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)


class Mixer(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.project = nn.Linear(108, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.across = nn.ModuleList(nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens)) for _ in range(depth))
        self.along = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth))
        self.head = nn.Linear(dim, 64)

    def forward(self, x):
        x = self.project(x)
        for i, (across, along) in enumerate(zip(self.across, self.along)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * i + 1](x))
        return F.normalize(self.head(x.mean(1)), dim=1)


@model("vision", "contrastive")
def mixer_contrastive(device, dtype):
    batch, tokens, dim = size((96, 196, 320), (4, 9, 16))
    net = Mixer(tokens, dim, size(5, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, foreach=True)
    following = cycle(lambda: (torch.randn(batch, tokens, 108), torch.randn(batch, tokens, 108)))

    def step():
        a, b = (t.to(device) for t in following())
        z = net(torch.cat((a, b)))
        logits = (z @ z.t() / 0.1).masked_fill(torch.eye(len(z), dtype=torch.bool, device=device), float("-inf"))
        other = torch.arange(len(z), device=device).roll(batch)
        optimizer.zero_grad()
        F.cross_entropy(logits, other).backward()
        optimizer.step()

    return Training(step, net, optimizer, batch)
