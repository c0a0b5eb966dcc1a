"""Other fields: graphs, audio, time series, mixtures of experts."""
import torch
from torch import nn
from torch.nn import functional as F

from .task import Task, several, task


@task(batch=20_000)
def sage(batch):
    """Two layers of mean aggregation over a graph's edges."""
    edges, dim = 8 * batch, 64
    model = nn.ModuleList([nn.Linear(2 * dim, dim), nn.Linear(2 * dim, 16)])

    def loss(x, source, target, label):
        for at, layer in enumerate(model):
            total = torch.zeros_like(x).index_add_(0, target, x[source])
            count = torch.bincount(target, minlength=len(x)).clamp_(min=1).unsqueeze(1)
            x = layer(torch.cat([x, total / count], dim=1))
            x = x.relu() if at == 0 else x
        return F.cross_entropy(x, label)

    def make():
        nodes = torch.randint(0, batch, (2, edges))
        return torch.randn(batch, dim), nodes[0], nodes[1], torch.randint(0, 16, (batch,))

    return Task(model, loss, several(make, 2))


class Dilated(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.gate = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)

    @staticmethod
    def pointwise(left, right):
        return left.tanh() * right.sigmoid()

    def forward(self, x):
        return x + self.out(self.pointwise(*self.gate(x).chunk(2, dim=1)))


@task(batch=8)
def temporal(batch):
    """Dilated convolutions over audio."""
    model = nn.Sequential(nn.Conv1d(1, 48, 1), *(Dilated(48, 2 ** (at % 6)) for at in range(12)), nn.Conv1d(48, 64, 1))
    data = several(lambda: (torch.randn(batch, 1, 8000), torch.randint(0, 64, (batch, 8000))), 2)
    return Task(model, lambda x, y: F.cross_entropy(model(x), y), data)


@task(batch=256)
def experts(batch):
    """Each token goes to the two best of eight experts."""
    dim, count = 256, 8
    model = nn.ModuleDict({"choose": nn.Linear(dim, count), "experts": nn.ModuleList(nn.Sequential(nn.Linear(dim, 512), nn.GELU(), nn.Linear(512, dim)) for _ in range(count)), "head": nn.Linear(dim, 10)})

    def loss(x, y):
        weights, chosen = model["choose"](x).softmax(dim=1).topk(2, dim=1)
        mixed = torch.zeros_like(x)
        for at, expert in enumerate(model["experts"]):
            weight = (weights * (chosen == at)).sum(dim=1, keepdim=True)
            mixed = mixed + weight * expert(x)
        return F.cross_entropy(model["head"](mixed), y)

    data = several(lambda: (torch.randn(batch, dim), torch.randint(0, 10, (batch,))))
    return Task(model, loss, data, torch.optim.AdamW)


@task(batch=128)
def gru_forecast(batch):
    """A time series through a GRU; the loss is read on the host in each step."""
    model = nn.ModuleDict({"memory": nn.GRU(8, 128, 2, batch_first=True), "head": nn.Linear(128, 1)})

    def loss(x, y):
        hidden, _ = model["memory"](x)
        return F.huber_loss(model["head"](hidden[:, -1]).squeeze(1), y)

    data = several(lambda: (torch.randn(batch, 48, 8), torch.randn(batch)))
    return Task(model, loss, data, torch.optim.RMSprop)


@task(batch=10_000)
def attention_graph(batch):
    """Attention over the edges of a graph."""
    edges, heads, dim = 8 * batch, 4, 32
    model = nn.ModuleDict({"in": nn.Linear(64, heads * dim), "away": nn.Linear(dim, 1), "toward": nn.Linear(dim, 1), "out": nn.Linear(heads * dim, 16)})

    def loss(x, source, target, label):
        hidden = model["in"](x).view(-1, heads, dim)
        score = F.leaky_relu(model["away"](hidden)[source] + model["toward"](hidden)[target], 0.2).squeeze(2)
        weight = (score - score.max()).exp()
        total = torch.zeros(len(x), heads, device=x.device).scatter_add_(0, target.unsqueeze(1).expand(-1, heads), weight)
        weight = weight / (total[target] + 1e-9)
        mixed = torch.zeros_like(hidden).index_add_(0, target, hidden[source] * weight.unsqueeze(2))
        return F.cross_entropy(model["out"](F.elu(mixed).flatten(1)), label)

    def make():
        nodes = torch.randint(0, batch, (2, edges))
        return torch.randn(batch, 64), nodes[0], nodes[1], torch.randint(0, 16, (batch,))

    return Task(model, loss, several(make, 2))


@task(batch=16)
def speech(batch):
    """Convolutions over audio, a bidirectional GRU, and an alignment loss."""
    model = nn.ModuleDict({"sound": nn.Sequential(nn.Conv1d(80, 256, 5, stride=2, padding=2), nn.BatchNorm1d(256), nn.GELU(), nn.Conv1d(256, 256, 5, stride=2, padding=2), nn.BatchNorm1d(256), nn.GELU()), "memory": nn.GRU(256, 192, 2, batch_first=True, bidirectional=True), "head": nn.Linear(384, 32)})

    def loss(x, y):
        hidden, _ = model["memory"](model["sound"](x).transpose(1, 2))
        scores = model["head"](hidden).log_softmax(dim=2).transpose(0, 1)
        long = torch.full((batch,), len(scores), dtype=torch.long)
        return F.ctc_loss(scores, y, long, torch.full((batch,), y.shape[1], dtype=torch.long))

    data = several(lambda: (torch.randn(batch, 80, 400), torch.randint(1, 32, (batch, 24))), 2)
    return Task(model, loss, data)
