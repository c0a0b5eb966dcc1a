"""Writes mlp.json: a small network's outputs, gradients and weights after three steps, by PyTorch."""

import json
import pathlib

import torch

torch.manual_seed(7)


def network():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 10), torch.nn.ReLU(), torch.nn.Linear(10, 9), torch.nn.ReLU(), torch.nn.Linear(9, 1)
    )


def layers(net, of):
    """Weights as [input, output], row by row."""
    return [
        {"weights": of(layer.weight).t().flatten().tolist(), "bias": of(layer.bias).flatten().tolist()}
        for layer in net
        if isinstance(layer, torch.nn.Linear)
    ]


start = network()
inputs = torch.randn(6, 4)
targets = torch.randn(6)
out = {
    "inputs": inputs.tolist(),
    "targets": targets.tolist(),
    "start": layers(start, lambda p: p.detach()),
    "outputs": start(inputs).flatten().tolist(),
}
loss = torch.nn.functional.mse_loss(start(inputs).flatten(), targets)
loss.backward()
out["loss"] = loss.item()
out["gradients"] = layers(start, lambda p: p.grad)
for name, make in {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}.items():
    net = network()
    net.load_state_dict(start.state_dict())
    optimizer = make(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(inputs).flatten(), targets).backward()
        optimizer.step()
    out[name] = layers(net, lambda p: p.detach())
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out) + "\n")
