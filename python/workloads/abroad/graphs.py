"""Graph networks whose edges are concentrated on few nodes."""
import torch
import torch.nn.functional as F
from torch import nn

from .registry import Training, model, size
from .skew import zipf


class Sage(nn.Module):
    """Mean of neighbours by `index_add`; messages by indexing."""

    def __init__(self, *widths):
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.near = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))

    def forward(self, x, source, target, degree):
        for i, (own, near) in enumerate(zip(self.own, self.near)):
            gathered = torch.zeros_like(x).index_add(0, target, x[source]) / degree
            x = own(x) + near(gathered)
            if i + 1 < len(self.own):
                x = F.dropout(F.relu(x), 0.3, training=True)
        return x


@model("skew", "graph")
def sage_hubs(device, dtype):
    nodes, edges = size((100_000, 1_200_000), (200, 900))
    net = Sage(64, 96, 96, 40).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    x, y = torch.randn(nodes, 64).to(device), torch.randint(0, 40, (nodes,)).to(device)
    source, target = zipf(nodes, (edges,), 1.15).to(device), zipf(nodes, (edges,), 1.05).to(device)
    degree = torch.bincount(target.cpu() if device.type != "meta" else torch.zeros(1, dtype=torch.long), minlength=nodes)
    degree = degree.clamp(min=1).unsqueeze(1).float().to(device)
    known = torch.randperm(nodes)[: nodes // 2].to(device)

    def step():
        optimizer.zero_grad()
        out = net(x, source, target, degree)
        loss = F.cross_entropy(out[known], y[known])
        loss.backward()
        optimizer.step()

    return Training(step, net, optimizer, nodes)


class GraphAttention(nn.Module):
    def __init__(self, a, b, heads):
        super().__init__()
        self.heads, self.width = heads, b
        self.project = nn.Linear(a, heads * b, bias=False)
        self.left, self.right = nn.Parameter(torch.randn(heads, b) * 0.1), nn.Parameter(torch.randn(heads, b) * 0.1)

    def forward(self, x, edge):
        h = self.project(x).view(-1, self.heads, self.width)
        source, target = edge[0], edge[1]
        e = F.leaky_relu((h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2)
        e = (e - e.max()).exp()
        total = torch.zeros(len(x), self.heads, device=x.device).scatter_add_(0, target[:, None].expand_as(e), e)
        a = F.dropout(e / (total[target] + 1e-16), 0.6, self.training)
        out = torch.zeros_like(h).index_add_(0, target, h[source] * a.unsqueeze(-1))
        return out.flatten(1)


class Gat(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first, self.second = GraphAttention(features, 8, 8), GraphAttention(64, classes, 1)

    def forward(self, x, edge):
        x = F.elu(self.first(F.dropout(x, 0.6, self.training), edge))
        return self.second(F.dropout(x, 0.6, self.training), edge)


@model("graph", "host")
def gat_citations(device, dtype):
    nodes, edges, features = size((2708, 10_556, 1433), (60, 200, 20))
    net = Gat(features, 7).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)
    x, y = torch.rand(nodes, features).to(device), torch.randint(0, 7, (nodes,)).to(device)
    edge = torch.stack((zipf(nodes, (edges,), 0.6), torch.randint(0, nodes, (edges,)))).to(device)
    train = torch.zeros(nodes, dtype=torch.bool)
    train[: nodes // 10] = True
    train = train.to(device)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(net(x, edge)[train], y[train]).backward()
        optimizer.step()

    return Training(step, net, optimizer, nodes)
