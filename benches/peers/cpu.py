"""CPU operators of PyTorch, FBGEMM, NumPy and steptime on the same data in turn, with the ratios of their times.

Build ours first, then run with the peers of requirements.txt installed:

    cargo build --release -p steptime-ops-capi
    python benches/peers/cpu.py embedding_backward --threads 2

Every op is one function; what cannot be imported is skipped with a message. Peers are timed in turn within each round,
on indices that are drawn anew; the best and the median of all rounds are shown.
"""

import argparse
import ctypes
import logging
import mmap
import os
import statistics
import sys
import time
from pathlib import Path

import numpy
import torch

ROOT = Path(__file__).resolve().parents[2]
HUGE_PAGE = 2 << 20

# Rows of the tables of Criteo Kaggle, as MLPerf's DLRM has them, at most a million here.
KAGGLE = [
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652, 2173,
    4, 7046547, 18, 15, 286181, 105, 142572,
]  # fmt: skip
MLPERF = [min(rows, 1_000_000) for rows in KAGGLE]


class Ours:
    """The shared library, with errors as exceptions."""

    def __init__(self, path: Path, threads: int):
        self.lib = ctypes.CDLL(str(path))
        self.lib.steptime_error.restype = ctypes.c_char_p
        new = self.lib.steptime_cpu_new
        new.restype, new.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_char_p]
        self.cpu = self.made(new(threads, None))

    def made(self, handle):
        """A handle that is not null."""
        if not handle:
            raise RuntimeError(self.lib.steptime_error().decode())
        return ctypes.c_void_p(handle)

    def check(self, code: int) -> None:
        """Raises what a call failed with."""
        if code:
            raise RuntimeError(self.lib.steptime_error().decode())


def load_ours(threads: int):
    """Our library, or None with a message."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "release" / "libsteptime_ops_c.so"
    if not path.exists():
        print(f"ours skipped: {path} is not built", file=sys.stderr)
        return None
    return Ours(path, threads)


def load_fbgemm():
    """FBGEMM's table-batched embeddings, or None with a message."""
    try:
        logging.disable(logging.WARNING)
        import fbgemm_gpu.split_table_batched_embeddings_ops_training as training
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
    except (ImportError, OSError) as error:
        print(f"FBGEMM skipped: {error}", file=sys.stderr)
        return None
    return training, EmbOptimType


def huge(rows: int, dim: int) -> torch.Tensor:
    """Zeros in huge pages."""
    size = rows * dim * 4
    memory = mmap.mmap(-1, size + HUGE_PAGE)
    memory.madvise(mmap.MADV_HUGEPAGE)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % HUGE_PAGE
    return torch.from_numpy(numpy.frombuffer(memory, numpy.float32, rows * dim, start).reshape(rows, dim))


def measure(rounds: int, prepare, peers: dict) -> dict:
    """Times in milliseconds of each peer, in turn on the same fresh input."""
    times = {name: [] for name in peers}
    for _ in range(rounds):
        batch = prepare()
        for name, peer in peers.items():
            work = peer(batch)
            start = time.perf_counter()
            work()
            times[name].append((time.perf_counter() - start) * 1e3)
    return times


def report(title: str, times: dict) -> None:
    """One line for each peer: best, median, and how many times as long as ours."""
    print(title)
    ours = times.get("ours")
    for name, all_times in times.items():
        best, median = min(all_times), statistics.median(all_times)
        ratio = f"{best / min(ours):7.2f} x best {median / statistics.median(ours):7.2f} x median" if ours else ""
        print(f"  {name:28} {best:9.3f} ms {median:9.3f} ms {ratio}", flush=True)


def pointers(tensors) -> ctypes.Array:
    """The addresses of tensors."""
    return (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


def embedding_backward(threads: int, rounds: int, huge_pages: bool) -> None:
    """Backward of table-batched embedding bags with their optimizer: DLRM's shapes."""
    ours, fbgemm = load_ours(threads), load_fbgemm()
    shapes = [
        ("small, for comparison of results", [1000] * 3, 64, 200, 5),
        ("DLRM default, L = 10", [1_000_000] * 8, 64, 2048, 10),
        ("DLRM default, L = 30", [1_000_000] * 8, 64, 2048, 30),
        ("DLRM DDP, L = 20", [80_000] * 8, 128, 2048, 20),
        ("DLRM MLPerf, rows capped, L = 1", MLPERF, 128, 2048, 1),
    ]
    for title, rows, dim, bags, lookups in shapes:
        for rule in ("SGD", "row-wise Adagrad"):
            _backward(ours, fbgemm, f"{title}, {rule}", rule, rows, dim, bags, lookups, rounds, huge_pages)


def _backward(ours, fbgemm, title, rule, rows, dim, bags, lookups, rounds, huge_pages) -> None:
    generator = torch.Generator().manual_seed(1)
    tables, count = len(rows), bags * lookups
    weights = [huge(size, dim) if huge_pages else torch.zeros(size, dim) for size in rows]
    for weight in weights:
        weight.uniform_(-1, 1, generator=generator)
    offsets = torch.arange(0, tables * count + 1, lookups)

    def prepare():
        indices = torch.cat([torch.randint(size, (count,), generator=generator) for size in rows])
        return indices, torch.randn(bags, tables * dim, generator=generator)

    peers, results = {}, {}
    if ours:
        peers["ours"], results["ours"] = _our_backward(ours, rule, weights, bags, offsets)
    if fbgemm:
        peers["FBGEMM"], results["FBGEMM"] = _fbgemm_backward(fbgemm, rule, weights, offsets)
    peers["torch sparse + optimizer"], results["torch"] = _torch_backward(rule, weights, bags, lookups)
    if title.startswith("small"):
        _compare(title, rule, prepare(), peers, results)
    else:
        report(f"{title}: {tables} tables x {dim}, {bags} bags", measure(rounds, prepare, peers))


def _compare(title, rule, batch, peers, results) -> None:
    """The largest difference of weights after one step."""
    for peer in peers.values():
        peer(batch)()
    expected = torch.cat([weight.flatten() for weight in results["ours"]]) if "ours" in results else None
    for name, weights in results.items():
        if expected is not None and name != "ours" and not (name == "torch" and rule != "SGD"):
            found = torch.cat([weight.detach().flatten() for weight in weights])
            print(f"{title}: ours and {name} differ by at most {(found - expected).abs().max().item():.1e}")


def _our_backward(ours, rule, weights, bags, offsets):
    small = len(weights) == 3
    weights = [weight.clone() for weight in weights] if small else weights
    size = ctypes.c_size_t
    new, step = ours.lib.steptime_backward_new, ours.lib.steptime_backward_step
    new.restype = ctypes.c_void_p
    new.argtypes = [size, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_float]
    step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, size, size] + [ctypes.c_void_p] * 4 + [size]
    sizes = (size * len(weights))(*[weight.shape[0] for weight in weights])
    dims = (size * len(weights))(*[weight.shape[1] for weight in weights])
    handle = ours.made(new(len(weights), pointers(weights), sizes, dims, 0 if rule == "SGD" else 2, 0.01))

    def peer(batch):
        indices, gradient = batch
        arguments = (handle, ours.cpu, bags, len(indices), indices.data_ptr(), offsets.data_ptr(), None)
        return lambda: ours.check(step(*arguments, gradient.data_ptr(), gradient.shape[1]))

    return peer, weights


def _fbgemm_backward(fbgemm, rule, weights, offsets):
    training, optimizers = fbgemm
    place = (training.EmbeddingLocation.HOST, training.ComputeDevice.CPU)
    kind = optimizers.EXACT_SGD if rule == "SGD" else optimizers.EXACT_ROWWISE_ADAGRAD
    module = training.SplitTableBatchedEmbeddingBagsCodegen(
        [(*weight.shape, *place) for weight in weights], optimizer=kind, learning_rate=0.01, eps=1e-8
    )
    views = module.split_embedding_weights()
    for view, weight in zip(views, weights):
        view.detach().copy_(weight)

    def peer(batch):
        indices, gradient = batch
        output = module(indices, offsets)
        return lambda: output.backward(gradient)

    return peer, views


def _torch_backward(rule, weights, bags, lookups):
    small = len(weights) == 3
    modules = [
        torch.nn.EmbeddingBag.from_pretrained(weight.clone() if small else weight, freeze=False, mode="sum", sparse=True)
        for weight in weights
    ]
    parameters = [module.weight for module in modules]
    optimizer = torch.optim.SGD(parameters, lr=0.01) if rule == "SGD" else torch.optim.Adagrad(parameters, lr=0.01)
    offsets = torch.arange(0, bags * lookups, lookups)

    def peer(batch):
        indices, gradient = batch
        parts = zip(modules, indices.chunk(len(modules)))
        output = torch.cat([module(part, offsets) for module, part in parts], 1)

        def work():
            output.backward(gradient)
            optimizer.step()
            optimizer.zero_grad()

        return work

    return peer, parameters


OPS = {"embedding_backward": embedding_backward}


def main() -> None:
    """Runs the ops that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", default=list(OPS), help=f"of {', '.join(OPS)}")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--huge", action="store_true", help="our and torch's tables in huge pages")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for op in arguments.ops:
        if op not in OPS:
            parser.error(f"there is no op {op!r}: choose of {', '.join(OPS)}")
        OPS[op](arguments.threads, arguments.rounds, arguments.huge)


if __name__ == "__main__":
    main()
