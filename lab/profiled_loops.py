"""Records common training loops under PyTorch's profiler, and times them without it: traces for `replayed.py`.

    torchrun --nproc_per_node 2 lab/profiled_loops.py OUT       data parallel (three models) and FSDP, a trace a rank
    python lab/profiled_loops.py OUT                            one process: DataParallel (two GPUs), a compiled model in CUDA
                                                                    graphs, GradScaler with accumulation, a loss that is read
    python lab/profiled_loops.py OUT --jax                      two models of JAX under `jax.profiler`

Each loop writes its trace and a line of OUT/times.RANK.jsonl: the step time without a profiler, in ms.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Tuple

RANK = int(os.environ.get("RANK", 0))
STEPS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jax", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.jax:
        with_jax(options.out)
    elif "RANK" in os.environ:
        several_ranks(options.out)
    else:
        one_process(options.out)


def write(out: Path, name: str, seconds: float) -> None:
    with open(out / f"times.{RANK}.jsonl", "a") as file:
        print(json.dumps({"name": name, "rank": RANK, "step_ms": 1e3 * seconds}), file=file)


def models() -> Tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    """A convolutional network, a recommender and a transformer."""
    import torch
    from torch import nn

    def convolution(channels: int, out: int, stride: int = 1) -> Any:
        layer = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        return nn.Sequential(layer, nn.BatchNorm2d(out), nn.ReLU())

    def images() -> Any:
        sizes = [(3, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 100)]
        return nn.Sequential(*(convolution(*size) for size in sizes), *head)

    class Recommender(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(200_000, 64, mode="sum") for _ in range(8))
            self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64))
            self.top = nn.Sequential(nn.Linear(64 * 9, 1024), nn.ReLU(), nn.Linear(1024, 100))

        def forward(self, inputs: Any) -> Any:
            dense, indices = inputs
            looked_up = [table(indices[:, at]) for at, table in enumerate(self.tables)]
            return self.top(torch.cat([self.bottom(dense), *looked_up], 1))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(8000, 512)
            layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.1, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
            self.head = nn.Linear(512, 100)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.layers(self.embedding(tokens)).mean(1))

    return images, Recommender, Transformer


def batch(kind: str, size: int) -> Any:
    import torch

    labels = torch.randint(0, 100, (size,))
    if kind == "images":
        return torch.randn(size, 3, 64, 64), labels
    if kind == "clicks":
        return (torch.randn(size, 13), torch.randint(0, 200_000, (size, 8, 4))), labels
    return torch.randint(0, 8000, (size, 128)), labels


def loop(out: Path, name: str, kind: str, size: int, step: Callable[[Any], None], with_stack: bool = False) -> None:
    """Warms up, times the loop without a profiler, and profiles six steps of it."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(moved(part) for part in value)
        return value.to("cuda", non_blocking=True)

    data = [batch(kind, size) for _ in range(4)]
    for at in range(25):
        step(moved(data[at % 4]))
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for at in range(STEPS):
        step(moved(data[at % 4]))
    torch.cuda.synchronize()
    write(out, name, (time.perf_counter() - begun) / STEPS)
    path = out / (f"{name}.rank{RANK}.json" if "RANK" in os.environ else f"{name}.json")
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    plan = schedule(wait=1, warmup=2, active=6, repeat=1)
    ready = lambda found: found.export_chrome_trace(str(path))  # noqa: E731
    with profile(activities=activities, schedule=plan, with_stack=with_stack, on_trace_ready=ready) as profiler:
        for at in range(9):
            step(moved(data[at % 4]))
            profiler.step()


def ordinary(model: Any, optimizer: Any, read: bool = False) -> Callable[[Any], None]:
    from torch import nn

    loss_of = nn.CrossEntropyLoss()

    def step(given: Any) -> None:
        optimizer.zero_grad()
        loss = loss_of(model(given[0]), given[1])
        loss.backward()
        optimizer.step()
        if read:
            loss.item()

    return step


def several_ranks(out: Path) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    images, recommender, transformer = models()
    for name, kind, size, make in [
        ("ddp_images", "images", 64, images),
        ("ddp_clicks", "clicks", 4096, recommender),
        ("ddp_transformer", "tokens", 32, transformer),
    ]:
        model = DistributedDataParallel(make().cuda())
        optimizer = torch.optim.SGD(model.parameters(), 0.01) if kind == "clicks" else torch.optim.AdamW(model.parameters(), 1e-4)
        loop(out, name, kind, size, ordinary(model, optimizer))
    model = transformer().cuda()
    for layer in model.layers.layers:
        fully_shard(layer)
    fully_shard(model)
    loop(out, "fsdp_transformer", "tokens", 32, ordinary(model, torch.optim.AdamW(model.parameters(), 1e-4)))
    dist.barrier()
    dist.destroy_process_group()


def one_process(out: Path) -> None:
    import torch
    from torch import nn

    images, recommender, transformer = models()
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(images().cuda())
        loop(out, "data_parallel", "images", 128, ordinary(model, torch.optim.SGD(model.parameters(), 0.01)))
    model = transformer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    loop(out, "cuda_graphs", "tokens", 32, ordinary(torch.compile(model, mode="reduce-overhead"), optimizer))
    model = images().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler, loss_of = torch.amp.GradScaler("cuda"), nn.CrossEntropyLoss()

    def scaled(given: Any) -> None:
        optimizer.zero_grad()
        for part in range(4):
            with torch.autocast("cuda", torch.float16):
                loss = loss_of(model(given[0][part::4]), given[1][part::4]) / 4
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    loop(out, "scaled_accumulated", "images", 128, scaled, with_stack=True)
    clicks = recommender().cuda()
    loop(out, "loss_is_read", "clicks", 2048, ordinary(clicks, torch.optim.Adagrad(clicks.parameters(), 0.01), read=True))


def with_jax(out: Path) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    key = jax.random.PRNGKey(0)
    sizes = [512, 2048, 2048, 2048, 10]
    layers = [(jax.random.normal(key, (a, b)) * a**-0.5, jnp.zeros(b)) for a, b in zip(sizes, sizes[1:])]
    kernels = [jax.random.normal(key, (3, 3, a, b)) * 0.05 for a, b in [(3, 64), (64, 128), (128, 128)]]
    head = jax.random.normal(key, (128, 10)) * 0.1

    def dense(layers: Any, x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return x @ layers[-1][0] + layers[-1][1]

    def convolutions(parameters: Any, x: Any) -> Any:
        for kernel in parameters[:-1]:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return x.mean((1, 2)) @ parameters[-1]

    for name, parameters, model, shape in [
        ("jax_dense", layers, dense, (4096, 512)),
        ("jax_convolutions", [*kernels, head], convolutions, (64, 32, 32, 3)),
    ]:
        x = np.asarray(jax.random.normal(key, shape))
        y = np.asarray(jax.random.randint(key, shape[:1], 0, 10))

        def loss(parameters: Any, x: Any, y: Any, model: Any = model) -> Any:
            return -jnp.take_along_axis(jax.nn.log_softmax(model(parameters, x)), y[:, None], 1).mean()

        def update(parameters: Any, x: Any, y: Any, loss: Any = loss) -> Any:
            value, gradients = jax.value_and_grad(loss)(parameters, x, y)
            return jax.tree.map(lambda one, gradient: one - 0.01 * gradient, parameters, gradients), value

        step = jax.jit(update)
        for _ in range(10):
            parameters, value = step(parameters, jax.device_put(x), y)
            float(value)
        begun = time.perf_counter()
        for _ in range(STEPS):
            parameters, value = step(parameters, jax.device_put(x), y)
            float(value)
        write(out, name, (time.perf_counter() - begun) / STEPS)
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                for at in range(8):
                    with jax.profiler.StepTraceAnnotation("train", step_num=at):
                        parameters, value = step(parameters, jax.device_put(x), y)
                        float(value)
            for found in glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True):
                shutil.copy(found, out / f"{name}.trace.json.gz")


if __name__ == "__main__":
    main()
