"""Compares measured and predicted steps of third-party models: measured on this GPU, and predicted from Python without it.

    python benches/others.py [NAME...] --device h200 --out FILE.json        (needs a GPU, steptime, and the packages)

Each model runs in its own process. `steptime.watch` records its loop on the GPU: the step without the profiler is the reference.
Then the same step is predicted from that recording, and, as on a laptop, from one step on the CPU and one on the meta device, with
the host's probe of the recording. FILE.json has one row per model, with all answers, their intervals and doubts. Prints a table.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

MODELS = {}


def model(make):
    """Decorator that adds a model: a function that returns the model, a batch, and the loss of the model on a batch."""
    MODELS[make.__name__] = make
    return make


def images(network, batch, size=224, classes=1000):
    """An image classifier, its batch and its loss."""
    return network, (torch.randn(batch, 3, size, size), torch.randint(classes, (batch,))), classified


def classified(network, x, y):
    """The loss of a classifier."""
    return functional.cross_entropy(network(x), y)


@model
def convnext_tiny():
    import timm

    return images(timm.create_model("convnext_tiny"), 32)


@model
def swin_tiny():
    import timm

    return images(timm.create_model("swin_tiny_patch4_window7_224"), 32)


@model
def efficientnet_b0():
    import timm

    return images(timm.create_model("efficientnet_b0"), 64)


@model
def mixer_s32():
    import timm

    return images(timm.create_model("mixer_s32_224"), 64)


@model
def mobilenet_v3_large():
    import torchvision

    return images(torchvision.models.mobilenet_v3_large(), 64)


@model
def densenet121():
    import torchvision

    return images(torchvision.models.densenet121(), 32)


@model
def r3d_18():
    import torchvision

    network = torchvision.models.video.r3d_18()
    return network, (torch.randn(8, 3, 8, 112, 112), torch.randint(400, (8,))), classified


def tokens(network, batch, length, vocabulary):
    """A language model of transformers that computes its own loss."""
    return network, (torch.randint(vocabulary, (batch, length)),), lambda network, ids: network(input_ids=ids, labels=ids).loss


@model
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return tokens(GPT2LMHeadModel(GPT2Config(n_layer=6)), 8, 256, 50257)


@model
def bert():
    from transformers import BertConfig, BertForMaskedLM

    return tokens(BertForMaskedLM(BertConfig(num_hidden_layers=6)), 24, 128, 30522)


@model
def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    return tokens(T5ForConditionalGeneration(T5Config(decoder_start_token_id=0, num_layers=4)), 20, 96, 32128)


@model
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 12, "num_key_value_heads": 4}
    return tokens(LlamaForCausalLM(LlamaConfig(vocab_size=32000, **sizes)), 10, 320, 32000)


@model
def llama_bf16():
    network, batch, loss = llama()

    def mixed(network, ids):
        with torch.autocast(ids.device.type if ids.device.type != "meta" else "cuda", torch.bfloat16):
            return loss(network, ids)

    return network, batch, mixed


@model
def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    network = WhisperForConditionalGeneration(WhisperConfig(d_model=256, encoder_layers=4, decoder_layers=4, encoder_attention_heads=4, decoder_attention_heads=4))
    batch = torch.randn(6, 80, 3000), torch.randint(50000, (6, 40))
    return network, batch, lambda network, sound, words: network(input_features=sound, labels=words).loss


@model
def conformer():
    import torchaudio

    network = nn.ModuleDict({"body": torchaudio.models.Conformer(80, 4, 256, 4, 31), "head": nn.Linear(80, 64)})
    batch = torch.randn(12, 400, 80), torch.full((12,), 400), torch.randint(64, (12, 400))

    def loss(network, sound, lengths, labels):
        found, _ = network["body"](sound, lengths)
        return functional.cross_entropy(network["head"](found).flatten(0, 1), labels.flatten())

    return network, batch, loss


@model
def speech_lstm():
    network = nn.ModuleDict({"body": nn.LSTM(80, 512, 3, batch_first=True, bidirectional=True), "head": nn.Linear(1024, 48)})
    batch = torch.randn(24, 90, 80), torch.randint(48, (24, 90))
    return network, batch, lambda network, x, y: functional.cross_entropy(network["head"](network["body"](x)[0]).flatten(0, 1), y.flatten())


@model
def tagger_gru():
    network = nn.ModuleDict({"words": nn.Embedding(30_000, 200), "body": nn.GRU(200, 256, 2, bidirectional=True), "head": nn.Linear(512, 20)})
    batch = torch.randint(30_000, (60, 40)), torch.randint(20, (60, 40))

    def loss(network, words, tags):
        return functional.cross_entropy(network["head"](network["body"](network["words"](words))[0]).flatten(0, 1), tags.flatten())

    return network, batch, loss


@model
def forecast_lstm():
    network = nn.ModuleDict({"body": nn.LSTM(12, 128, 1, batch_first=True), "head": nn.Linear(128, 6)})
    batch = torch.randn(300, 48, 12), torch.randn(300, 6)
    return network, batch, lambda network, x, y: functional.mse_loss(network["head"](network["body"](x)[0][:, -1]), y)


@model
def graph_sage():
    from torch_geometric.nn import SAGEConv

    network = nn.ModuleList([SAGEConv(128, 256), SAGEConv(256, 256), SAGEConv(256, 40)])
    nodes, edges = 40_000, 400_000
    batch = torch.randn(nodes, 128), torch.randint(nodes, (2, edges)), torch.randint(40, (nodes,))

    def loss(network, x, edges, y):
        for layer in network[:-1]:
            x = layer(x, edges).relu()
        return functional.cross_entropy(network[-1](x, edges), y)

    return network, batch, loss


class Din(nn.Module):
    """Attention of a candidate over a user's history (Deep Interest Network)."""

    def __init__(self, items=500_000, width=48):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.weigh = nn.Sequential(nn.Linear(4 * width, 80), nn.PReLU(), nn.Linear(80, 1))
        self.top = nn.Sequential(nn.Linear(2 * width, 200), nn.PReLU(), nn.Linear(200, 1))

    def forward(self, history, candidate):
        past, item = self.items(history), self.items(candidate)
        wide = item.unsqueeze(1).expand_as(past)
        weights = self.weigh(torch.cat([past, wide, past - wide, past * wide], -1)).softmax(1)
        return self.top(torch.cat([(weights * past).sum(1), item], -1)).squeeze(-1)


@model
def din():
    batch = torch.randint(500_000, (1536, 50)), torch.randint(500_000, (1536,)), torch.rand(1536)
    return Din(), batch, lambda network, past, item, y: functional.binary_cross_entropy_with_logits(network(past, item), y)


class SasRec(nn.Module):
    """Next items by self-attention (SASRec)."""

    def __init__(self, items=60_000, width=128, length=100):
        super().__init__()
        self.items, self.places = nn.Embedding(items, width), nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, past):
        mask = nn.Transformer.generate_square_subsequent_mask(past.shape[1], device=past.device)
        return self.body(self.items(past) + self.places, mask=mask, is_causal=True)


@model
def sasrec():
    batch = tuple(torch.randint(60_000, (192, 100)) for _ in range(3))

    def loss(network, past, wanted, other):
        found = network(past)
        score = lambda items: (found * network.items(items)).sum(-1)  # noqa: E731
        return -(functional.logsigmoid(score(wanted)) + functional.logsigmoid(-score(other))).mean()

    return SasRec(), batch, loss


class CrossNet(nn.Module):
    """Deep and cross network with mixtures of low-rank experts (DCN-Mix)."""

    def __init__(self, fields=24, rows=200_000, width=16, experts=4, rank=32):
        super().__init__()
        wide = fields * width
        self.table = nn.Embedding(rows, width)
        self.left = nn.ParameterList([nn.Parameter(torch.randn(experts, wide, rank) * 0.01) for _ in range(3)])
        self.right = nn.ParameterList([nn.Parameter(torch.randn(experts, rank, wide) * 0.01) for _ in range(3)])
        self.gates = nn.ModuleList([nn.Linear(wide, experts) for _ in range(3)])
        self.deep = nn.Sequential(nn.Linear(wide, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 256), nn.ReLU())
        self.top = nn.Linear(wide + 256, 1)

    def forward(self, ids):
        first = x = self.table(ids).flatten(1)
        for left, right, gate in zip(self.left, self.right, self.gates):
            low = torch.einsum("bi,eir->ber", x, left).tanh()
            high = torch.einsum("ber,eri->bei", low, right) * first.unsqueeze(1)
            x = (gate(x).softmax(-1).unsqueeze(-1) * high).sum(1) + x
        return self.top(torch.cat([x, self.deep(first)], -1)).squeeze(-1)


@model
def dcn_mix():
    batch = torch.randint(200_000, (3000, 24)), torch.rand(3000)
    return CrossNet(), batch, lambda network, ids, y: functional.binary_cross_entropy_with_logits(network(ids), y)


class UNet(nn.Module):
    """A small denoiser: convolutions, group norms, skips, up-sampling."""

    def __init__(self, widths=(64, 128, 256)):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU())  # noqa: E731
        self.down = nn.ModuleList([block(a, b) for a, b in zip((3, *widths), widths)])
        self.up = nn.ModuleList([block(2 * b, a) for a, b in zip((64, *widths), widths)][::-1])
        self.middle, self.last = block(widths[-1], widths[-1]), nn.Conv2d(64, 3, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            kept.append(block(x))
            x = functional.avg_pool2d(kept[-1], 2)
        x = self.middle(x)
        for block, skip in zip(self.up, reversed(kept)):
            x = block(torch.cat([functional.interpolate(x, scale_factor=2, mode="nearest"), skip], 1))
        return self.last(x)


@model
def unet():
    batch = torch.randn(18, 3, 64, 64), torch.randn(18, 3, 64, 64)
    return UNet(), batch, lambda network, x, noise: functional.mse_loss(network(x + noise), noise)


def trainer(network, loss, optimizer, device):
    """A step of a plain training loop."""

    def train(batch):
        inputs = [each.to(device) for each in batch]
        optimizer.zero_grad()
        loss(network, *inputs).backward()
        optimizer.step()

    return train


def side(found):
    """Stored values of a prediction."""
    return {"step_ms": found.step_ms, "interval_ms": found.interval_ms, "active_ms": found.active_ms, "doubts": found.doubts}


def one(name, device, keep):
    """The row of a model; its recording is kept in a folder, if one is given."""
    import steptime

    torch.manual_seed(1)
    network, batch, loss = MODELS[name]()
    row = {"model": name, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        recording = (keep or Path(folder)) / name
        for where in ("cuda", "cpu", "meta"):
            try:
                network = network.to(where)
                train = trainer(network, loss, torch.optim.AdamW(network.parameters(), lr=1e-4, foreach=None), where)
                if where == "cuda":
                    with steptime.watch(network, out=recording, quiet=True) as watched:
                        while not watched.done:
                            train(batch)
                            watched.step()
                    meta = json.loads((recording / "meta.json").read_text())
                    row.update(measured_ms=meta["step_ms"], quantiles_ms=meta["quantiles_ms"], warnings=meta["record"]["warnings"])
                    row["own"] = side(steptime.predict(recording))
                    row["priced"] = side(steptime.predict(recording, device=device))
                    continue
                began = time.perf_counter()
                data = [each.to(where) for each in batch]
                row[where] = side(steptime.predict(train, data, device=device, host=str(recording)))
                row[where]["seconds"] = time.perf_counter() - began
                row[f"{where}_default_host"] = side(steptime.predict(train, data, device=device))
            except Exception as error:  # a failed prediction is a row, too
                row[where] = {"error": f"{type(error).__name__}: {error}"[:400]}
    return row


def told(rows):
    """Prints the table, and the mean absolute errors."""
    ways = ("own", "priced", "cpu", "meta", "cpu_default_host")
    print(f"{'model':20}{'measured':>10}" + "".join(f"{way[:14]:>16}{'active':>9}" for way in ways))
    errors = {way: [] for way in ways}
    for row in rows:
        line = f"{row['model']:20}{row.get('measured_ms', float('nan')):10.3f}"
        for way in ways:
            found = row.get(way) or {}
            if "step_ms" not in found or "own" not in row:
                line += f"{'-':>16}{'':>9}"
                continue
            step, active = found["step_ms"] / row["measured_ms"] - 1, found["active_ms"] / row["own"]["active_ms"] - 1
            holds = found["interval_ms"][0] <= row["measured_ms"] <= found["interval_ms"][1]
            errors[way].append((abs(step), abs(active), holds))
            line += f"{step:+14.1%}{' ' if holds else '!'}{'?' if found['doubts'] else ' '}{active:+9.1%}"
        print(line)
    for way, found in errors.items():
        if found:
            steps, actives, held = zip(*found)
            print(f"{way}: step {statistics.mean(steps):.1%}, active {statistics.mean(actives):.1%}, {sum(held)} of {len(held)} inside")


def main():
    """Runs each model in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--device", default="h200")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the recordings")
    parser.add_argument("--seconds", type=float, default=60, help="the most that a model may take")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.names[0], options.device, options.keep)))
        return
    rows = []
    for name in options.names or MODELS:
        command = [sys.executable, __file__, name, "--one", "--device", options.device]
        command += ["--keep", str(options.keep)] if options.keep else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            said = done.stderr[-300:] if not isinstance(error, subprocess.TimeoutExpired) else f"more than {options.seconds} s"
            rows.append({"model": name, "error": said})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
    told(rows)


if __name__ == "__main__":
    main()
