"""Compares measured and predicted steps of partly frozen models: measured on this GPU, and predicted from a recording on the CPU.

    python lab/frozen.py --device h200 --out FILE.json        (needs a GPU, steptime, transformers and torchvision)

A step only reads frozen weights and buffers, like its batch, and a step on the CPU copies neither: the recorder notes which tensors
belong to the model. Writes one row per model, with the share of device time that has a module in the GPU's own recording.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional


def bert(frozen):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=30_000)
    network = BertForSequenceClassification(config).train()
    if frozen:
        network.bert.embeddings.requires_grad_(False)
        network.bert.encoder.layer[:5].requires_grad_(False)
    batch = torch.randint(30_000, (32, 128)), torch.randint(2, (32,))
    return network, batch, lambda network, ids, labels: network(input_ids=ids, labels=labels).loss


class Lora(nn.Module):
    """A frozen layer, and a trained low-rank layer in parallel."""

    def __init__(self, layer, rank=8):
        super().__init__()
        self.layer = layer
        self.down, self.up = nn.Parameter(torch.randn(layer.in_features, rank) / 100), nn.Parameter(torch.zeros(rank, layer.out_features))

    def forward(self, x):
        return self.layer(x) + (x @ self.down) @ self.up


class Norm(nn.Module):
    """Root-mean-square norm, whose weight is an operand of a product."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Block(nn.Module):
    """Attention with rotary positions and a gated layer, as in Llama; queries and values are trained at low rank."""

    def __init__(self, width, heads):
        super().__init__()
        layer = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)  # noqa: E731
        self.heads, self.first, self.second = heads, Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = Lora(layer(width, width)), layer(width, width), Lora(layer(width, width)), layer(width, width)
        self.up, self.gate, self.down = layer(width, 4 * width), layer(width, 4 * width), layer(4 * width, width)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        parted = lambda t: t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)  # noqa: E731
        half = lambda t: torch.cat((-t[..., t.shape[-1] // 2 :], t[..., : t.shape[-1] // 2]), -1)  # noqa: E731
        rotated = lambda t: t * cos + half(t) * sin  # noqa: E731
        y = self.first(x)
        q, k, v = rotated(parted(self.q(y))), rotated(parted(self.k(y))), parted(self.v(y))
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(found.transpose(1, 2).reshape(batch, length, width))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Six blocks, with tables of rotations as buffers."""

    def __init__(self, width=768, heads=12, words=32_000, length=256):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.ModuleList([Block(width, heads) for _ in range(6)])
        self.norm, self.head = Norm(width), nn.Linear(width, words, bias=False)
        side = width // heads
        angles = torch.outer(torch.arange(length).float(), 10_000.0 ** -(torch.arange(0, side, 2).float() / side))
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        x = self.words(x)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def lora():
    network = Llama()
    for name, parameter in network.named_parameters():
        parameter.requires_grad = not name.endswith("weight")
    batch = (torch.randint(32_000, (4, 256)),)
    return network, batch, lambda network, ids: functional.cross_entropy(network(ids).flatten(0, 1), ids.flatten())


def resnet():
    import torchvision

    network = torchvision.models.resnet18().requires_grad_(False)
    network.fc = nn.Linear(512, 10)
    batch = torch.randn(64, 3, 224, 224), torch.randint(10, (64,))
    return network.train(), batch, lambda network, images, labels: functional.cross_entropy(network(images), labels)


MODELS = {"bert": lambda: bert(False), "bert_frozen": lambda: bert(True), "llama_lora": lora, "resnet_frozen": resnet}


def row(name, device, folder):
    """Measurements and predictions of a model."""
    import steptime

    torch.manual_seed(0)
    network, batch, loss = MODELS[name]()
    trained = [each for each in network.parameters() if each.requires_grad]

    def step(data):
        inputs = [each.cuda() for each in data] if trained[0].is_cuda else data
        optimizer.zero_grad()
        loss(network, *inputs).backward()
        optimizer.step()

    optimizer = torch.optim.AdamW(trained)
    cpu = steptime.record(step, [batch], out=folder / f"{name}_cpu", only="et")
    network.cuda()
    optimizer = torch.optim.AdamW(trained)
    own = steptime.record(step, [batch], out=folder / name, windows=4, steps=20, profiled=10, warmup=10)
    p, found = steptime.predict(own), steptime.predict(cpu, device=device, host=str(own))
    parts = {each["name"]: each["device_ms"] for each in p.phases}
    outermost = [each for each in p.modules if "." not in each["name"]]
    return {
        "model": name,
        "gpu": torch.cuda.get_device_name(),
        "measured_ms": json.loads((own / "meta.json").read_text())["step_ms"],
        "own": {"step_ms": p.step_ms, "interval_ms": p.interval_ms, "active_ms": p.active_ms},
        "cpu": {"step_ms": found.step_ms, "interval_ms": found.interval_ms, "active_ms": found.active_ms, "copies": found.warnings[0]},
        "modules": len(p.modules),
        "by_module": {
            "forward": sum(each["forward_ms"] for each in outermost) / parts["forward"],
            "backward": sum(each["backward_ms"] for each in outermost) / parts["backward"],
        },
    }


def main():
    """Runs all models in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            rows.append(row(name, options.device, Path(folder)))
            print(json.dumps(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
