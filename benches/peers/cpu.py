"""Times CPU operators of PyTorch, FBGEMM, NumPy and steptime on the same data in turn, and prints the ratios.

Build ours first, then run with the peers of requirements.txt installed:

    cargo build --release -p steptime-ops-capi
    python benches/peers/cpu.py embedding_backward gemm --threads 1,2,4 --beside

Every op is one function; libraries that cannot be imported are skipped with a message. Peers are timed in turn within each
round, on new random indices. For each op a table has the medians of all rounds, with a column for each number of threads.
With `--beside` each op of less than 30 ms is also timed right after a call of PyTorch, whose threads then still spin for work.
All tables are in huge pages, or with `--small-pages` none of them.

    cpu_threads.py  numbers of threads, and their owners
    cpu_table.py    a table of times
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

from cpu_table import AFTER, SHARED, Table
from cpu_threads import Ours, set_threads  # before NumPy, because OpenBLAS reads its settings when it is loaded

import numpy
import torch

ROOT = Path(__file__).resolve().parents[2]
HUGE_PAGE = 2 << 20
# Timed consecutive calls of one peer.
CALLS = 3
# Seconds of pause before a burst of calls, and of a burst.
REST, BURST = 0.02, 0.012

# Rows of the tables of Criteo Kaggle, from MLPerf's DLRM. Five of the 26 have more than a million rows and are cut to that
# here; titles mention it.
KAGGLE = [
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652, 2173,
    4, 7046547, 18, 15, 286181, 105, 142572,
]  # fmt: skip
MLPERF = [min(rows, 1_000_000) for rows in KAGGLE]


def load_ours():
    """Our library, or None with a message."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "release" / "libsteptime_ops_c.so"
    if not path.exists():
        print(f"ours skipped: {path} is not built", file=sys.stderr)
        return None
    return Ours(path)


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


def paged(rows: int, dim: int, huge_pages: bool) -> torch.Tensor:
    """Zeros, in huge pages or in the system's default pages."""
    if not huge_pages:
        return torch.zeros(rows, dim)
    size = rows * dim * 4
    memory = mmap.mmap(-1, size + HUGE_PAGE)
    memory.madvise(mmap.MADV_HUGEPAGE)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % HUGE_PAGE
    return torch.from_numpy(numpy.frombuffer(memory, numpy.float32, rows * dim, start).reshape(rows, dim))


class Run:
    """Settings of a measurement: our library, numbers of threads, durations; and the table of the current op."""

    def __init__(self, arguments) -> None:
        self.ours, self.threads, self.rounds = load_ours(), arguments.threads, arguments.rounds
        self.huge_pages, self.only, self.beside = not arguments.small_pages, arguments.only, arguments.beside
        self.square = torch.randn(256, 256)

    def wants(self, title: str) -> bool:
        """Whether the shape with this title is selected."""
        return not self.only or any(text in title for text in self.only)

    def measure(self, title: str, peers: dict, prepare=None, flops: int = 0) -> None:
        """Times peers in turn, with each number of threads. A peer is a function to call or, with `prepare`, one that makes
        such a function for each input of `prepare`."""
        times = {}
        for threads in self.threads:
            set_threads(self.ours, threads)
            some = dict(peers)
            if self.ours and self.ours.shared:
                shared = self.ours.on_shared
                some[SHARED] = (
                    (lambda batch: shared(peers["ours"](batch))) if prepare else shared(peers["ours"])
                )
            times[threads] = fresh(self.rounds, prepare, some) if prepare else bursts(self.rounds, some)
            if self.beside:
                some = {name: peer for name, peer in some.items() if "NumPy" not in name and quick(times[threads][name])}
                found = fresh(self.rounds, prepare, some, self.disturb) if prepare else bursts(self.rounds, some, self.disturb)
                times[threads].update({AFTER + name: each for name, each in found.items()})
        self.table.add(title, times, flops)

    def disturb(self) -> None:
        """Runs a product of PyTorch, whose threads then spin for more work."""
        torch.mm(self.square, self.square)


def quick(times: list) -> bool:
    """Whether calls are short enough for spinning threads to matter."""
    return statistics.median(times) < 30


def timed(work, before) -> float:
    """Milliseconds of a call, right after a call of `before`."""
    if before:
        before()
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def fresh(rounds: int, prepare, peers: dict, before=None) -> dict:
    """Times in milliseconds of each peer, in turn on the same new input; a few calls at a time, like consecutive steps.
    The first call of a turn is not counted: it wakes the threads, and those of the previous peer go to sleep."""
    times = {name: [] for name in peers}
    for _ in range(rounds):
        batches = [prepare() for _ in range(CALLS + 1)]
        for name, peer in peers.items():
            first, *calls = [peer(batch) for batch in batches]
            time.sleep(0.03)
            first()
            times[name] += [timed(work, before) for work in calls]
    return times


def bursts(rounds: int, peers: dict, before=None) -> dict:
    """Times in milliseconds of each peer in turn, in bursts: threads of the previous peer are asleep, and caches
    contain data of this peer."""
    times = {name: [] for name in peers}
    for _ in range(rounds):
        for name, work in peers.items():
            time.sleep(REST)
            work()
            until, count = time.perf_counter() + BURST, 0
            while count < 1 or time.perf_counter() < until:
                times[name].append(timed(work, before))
                count += 1
    return times


def pointers(tensors) -> ctypes.Array:
    """The addresses of tensors."""
    return (ctypes.c_void_p * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


def embedding_bag(run: Run) -> None:
    """Forward pass of table-batched embedding bags: rows from memory, from the caches, and of integers."""
    os.environ.setdefault("FBGEMM_TBE_MAX_NUM_THREADS", str(max(run.threads)))
    fbgemm = load_fbgemm()
    _forward(run, fbgemm, "small, for comparison of results", "f32", [1000] * 3, 64, 200, 5)
    for dim in (16, 32, 64, 128, 256):
        rows = [min(1_000_000, 64_000_000 // dim)] * 8
        for lookups in (10, 20, 30):
            title = f"f32 tables in memory, L = {lookups}"
            _forward(run, fbgemm, title, "f32", rows, dim, 2048, lookups)
    for dim in (16, 64, 128):
        title = "small f32 tables, L = 20"
        _forward(run, fbgemm, title, "f32", [1000] * 8, dim, 2048, 20)
    for kind in ("int8", "int4"):
        for dim in (32, 64, 128, 256):
            title = f"{kind} tables in memory, L = 20"
            _forward(run, fbgemm, title, kind, [1_000_000] * 8, dim, 2048, 20)
            title = f"small {kind} tables, L = 20"
            _forward(run, fbgemm, title, kind, [1000] * 8, dim, 2048, 20)


def _forward(run: Run, fbgemm, title, kind, rows, dim, bags, lookups) -> None:
    title, ours, huge_pages = f"{title}: {len(rows)} tables x {dim}, {bags} bags", run.ours, run.huge_pages
    if not run.wants(title):
        return
    generator = torch.Generator().manual_seed(1)
    tables, count = len(rows), bags * lookups
    offsets = torch.arange(0, tables * count + 1, lookups)
    # Rows as bytes, without padding; rows of integers begin with scale and bias.
    if kind == "f32":
        weights = [torch.empty(size, dim).uniform_(-1, 1, generator=generator).view(torch.uint8) for size in rows]
    else:
        width = dim if kind == "int8" else dim // 2
        head = torch.tensor([0.01, -1.0], dtype=torch.float16).view(torch.uint8)
        weights = [torch.randint(256, (size, 4 + width), dtype=torch.uint8, generator=generator) for size in rows]
        for weight in weights:
            weight[:, :4] = head

    def prepare():
        indices = torch.cat([torch.randint(size, (count,), generator=generator) for size in rows])
        return indices, indices.int()

    peers = {}
    if ours:
        peers["ours"] = _our_forward(ours, kind, weights, dim, bags, offsets, huge_pages)
    if fbgemm:
        peers["FBGEMM"] = _fbgemm_forward(kind, weights, dim, offsets, huge_pages)
    if kind == "f32":
        peers["torch"] = _torch_forward(weights, bags, lookups, huge_pages)
    if title.startswith("small, "):
        batch = prepare()
        results = {name: peer(batch)() for name, peer in peers.items()}
        for name, result in results.items():
            if "ours" in results and name != "ours":
                print(f"{title}: ours and {name} differ by {(result - results['ours']).abs().max().item():.1e}")
    else:
        run.measure(title, peers, prepare)


def _our_forward(ours, kind, weights, dim, bags, offsets, huge_pages):
    size, element = ctypes.c_size_t, {"f32": 0, "int8": 3, "int4": 4}[kind]
    pitch_of, new, forward = (getattr(ours.lib, f"steptime_bag_{name}") for name in ("pitch", "new", "forward"))
    pitch_of.restype, pitch_of.argtypes = size, [ctypes.c_int, size]
    new.restype = ctypes.c_void_p
    new.argtypes = [size] + [ctypes.c_void_p] * 4 + [ctypes.c_int]
    forward.argtypes = [ctypes.c_void_p] * 2 + [size] * 2 + [ctypes.c_void_p] * 2
    forward.argtypes += [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, size]
    pitch = pitch_of(element, dim)
    own = []
    for weight in weights:
        rows = paged(len(weight), pitch // 4, huge_pages).view(torch.uint8)
        rows[:, : weight.shape[1]] = weight
        own.append(rows)
    column = lambda value: (size * len(own))(*[value(rows) for rows in own])
    sizes, dims, pitches = column(len), column(lambda _: dim), column(lambda _: pitch)
    handle = ours.made(new(len(own), pointers(own), sizes, dims, pitches, element))
    output = torch.zeros(bags, len(own) * dim)

    def peer(batch, keep=(own, offsets)):
        indices = batch[0]
        arguments = (bags, len(indices), indices.data_ptr(), keep[1].data_ptr(), 64, None)

        def work():
            ours.check(forward(handle, ours.cpu, *arguments, output.data_ptr(), output.shape[1]))
            return output

        return work

    return peer


def _fbgemm_forward(kind, weights, dim, offsets, huge_pages):
    """FBGEMM's module for training, or for inference with rows of integers."""
    import fbgemm_gpu.split_table_batched_embeddings_ops_inference as inference
    import fbgemm_gpu.split_table_batched_embeddings_ops_training as training
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode, EmbeddingLocation

    if kind == "f32":
        place = (EmbeddingLocation.HOST, training.ComputeDevice.CPU)
        specs = [(len(weight), dim, *place) for weight in weights]
        module = training.SplitTableBatchedEmbeddingBagsCodegen(specs, bounds_check_mode=BoundsCheckMode.FATAL)
        views = [view.detach() for view in module.split_embedding_weights()]
        weights = [weight.view(torch.float32) for weight in weights]
    else:
        number = SparseType.INT8 if kind == "int8" else SparseType.INT4
        specs = [("", len(weight), dim, number, EmbeddingLocation.HOST) for weight in weights]
        module = inference.IntNBitTableBatchedEmbeddingBagsCodegen(
            specs, device="cpu", output_dtype=SparseType.FP32, bounds_check_mode=BoundsCheckMode.FATAL
        )
        module.initialize_weights()
        views = [view for view, _ in module.split_embedding_weights(split_scale_shifts=False)]
    for view, weight in zip(views, weights):
        view.copy_(weight)
        if huge_pages:
            collapse(view)
    short = offsets.int()

    def peer(batch):
        indices, short_indices = batch

        def work():
            with torch.no_grad():
                return module(indices, offsets) if kind == "f32" else module(short_indices, short)

        return work

    return peer


def _torch_forward(weights, bags, lookups, huge_pages):
    modules = []
    for weight in weights:
        weight = weight.view(torch.float32)
        rows = paged(*weight.shape, huge_pages).copy_(weight)
        modules.append(torch.nn.EmbeddingBag.from_pretrained(rows, mode="sum", include_last_offset=True))
    offsets = torch.arange(0, bags * lookups + 1, lookups)

    def peer(batch):
        parts = batch[0].chunk(len(modules))
        return lambda: torch.cat([module(part, offsets) for module, part in zip(modules, parts)], 1)

    return peer


def collapse(tensor: torch.Tensor) -> None:
    """Makes the system move the memory of a tensor into huge pages."""
    libc, advice = ctypes.CDLL(None, use_errno=True), 25
    start = -(-tensor.data_ptr() // HUGE_PAGE) * HUGE_PAGE
    size = (tensor.data_ptr() + tensor.nbytes - start) // HUGE_PAGE * HUGE_PAGE
    if size > 0 and libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), advice):
        print(f"no huge pages for FBGEMM: {os.strerror(ctypes.get_errno())}", file=sys.stderr)


def embedding_backward(run: Run) -> None:
    """Backward pass of table-batched embedding bags with their optimizer: DLRM's shapes."""
    fbgemm = load_fbgemm()
    shapes = [
        ("small, for comparison of results", [1000] * 3, 64, 200, 5),
        ("DLRM default, L = 10", [1_000_000] * 8, 64, 2048, 10),
        ("DLRM default, L = 30", [1_000_000] * 8, 64, 2048, 30),
        ("DLRM DDP, L = 20", [80_000] * 8, 128, 2048, 20),
        ("DLRM MLPerf, tables cut to 1M rows, L = 1", MLPERF, 128, 2048, 1),
    ]
    for title, rows, dim, bags, lookups in shapes:
        for rule in ("SGD", "row-wise Adagrad"):
            _backward(run, fbgemm, f"{title}, {rule}", rule, rows, dim, bags, lookups)


def _backward(run: Run, fbgemm, title, rule, rows, dim, bags, lookups) -> None:
    title, ours, huge_pages = f"{title}: {len(rows)} tables x {dim}, {bags} bags", run.ours, run.huge_pages
    if not run.wants(title):
        return
    generator = torch.Generator().manual_seed(1)
    tables, count = len(rows), bags * lookups
    weights = [paged(size, dim, huge_pages) for size in rows]
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
        peers["FBGEMM"], results["FBGEMM"] = _fbgemm_backward(fbgemm, rule, weights, offsets, huge_pages)
    peers["torch sparse + optimizer"], results["torch"] = _torch_backward(rule, weights, bags, lookups)
    if title.startswith("small"):
        _compare(title, rule, prepare(), peers, results)
    else:
        run.measure(title, peers, prepare)


def _compare(title, rule, batch, peers, results) -> None:
    """Prints the largest difference of weights after one step."""
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
        arguments = (bags, len(indices), indices.data_ptr(), offsets.data_ptr(), None)
        return lambda: ours.check(step(handle, ours.cpu, *arguments, gradient.data_ptr(), gradient.shape[1]))

    return peer, weights


def _fbgemm_backward(fbgemm, rule, weights, offsets, huge_pages):
    training, optimizers = fbgemm
    place = (training.EmbeddingLocation.HOST, training.ComputeDevice.CPU)
    kind = optimizers.EXACT_SGD if rule == "SGD" else optimizers.EXACT_ROWWISE_ADAGRAD
    module = training.SplitTableBatchedEmbeddingBagsCodegen(
        [(*weight.shape, *place) for weight in weights], optimizer=kind, learning_rate=0.01, eps=1e-8
    )
    views = module.split_embedding_weights()
    for view, weight in zip(views, weights):
        view.detach().copy_(weight)
        if huge_pages:
            collapse(view.detach())

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


# Products of DLRM's layers, rows of a batch by outputs by inputs.
DLRM = [(2048, 512, 13), (2048, 64, 512), (2048, 1024, 100), (2048, 128, 128), (2048, 512, 479), (2048, 256, 512)]

# The MLPs of the three DLRMs: (inputs, outputs) of each layer, with ReLU after all but the last one, which has a sigmoid.
MLPS = {
    "default": [(512, 512), (512, 64), (100, 1024), (1024, 1024), (1024, 1024), (1024, 1)],
    "MLPerf": [(13, 512), (512, 256), (256, 128), (479, 1024), (1024, 1024), (1024, 512), (512, 256), (256, 1)],
    "DDP": [(128, 128), (128, 128), (128, 128), (164, 512), (512, 512), (512, 512), (512, 256), (256, 1)],
}


def load_rust_peers():
    """Products of other Rust crates (benches/peers/rust), or None with a message."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "benches" / "peers" / "rust" / "target"))
    path = target / "release" / "libsteptime_peers.so"
    if not path.exists():
        print(f"faer and gemm skipped: {path} is not built", file=sys.stderr)
        return None
    lib = ctypes.CDLL(str(path))
    for function in (lib.peer_faer, lib.peer_gemm):
        function.restype, function.argtypes = None, [ctypes.c_size_t] * 4 + [ctypes.c_void_p] * 3
    return lib


def gemm(run: Run) -> None:
    """Square products, and those of DLRM's layers: steptime, MKL (PyTorch), OpenBLAS (NumPy), the crates faer and gemm."""
    ours, rust = run.ours, load_rust_peers()
    size = ctypes.c_size_t
    if ours:
        product = ours.lib.steptime_gemm
        matrix = [ctypes.c_void_p, size, size]
        product.argtypes = [ctypes.c_void_p] + [size] * 3 + [ctypes.c_float] + 2 * matrix + [ctypes.c_float, ctypes.c_void_p]
    shapes = [(s, s, s) for s in (64, 128, 256, 512, 768, 1024, 1536, 2048, 4096)]
    shapes += [(16, 1024, 1024), (1024, 1024, 16), (2048, 1, 256), *DLRM]
    for m, n, k in shapes:
        title = f"gemm {m} x {n} x {k}"
        if not run.wants(title):
            continue
        a, b, c = torch.randn(m, k), torch.randn(k, n), torch.zeros(m, n)
        pointers_of = (a.data_ptr(), b.data_ptr(), c.data_ptr())
        a_np, b_np, c_np = a.numpy(), b.numpy(), c.numpy()
        peers = {}
        if ours:
            arguments = (m, n, k, 1.0, pointers_of[0], k, 1, pointers_of[1], n, 1, 0.0, pointers_of[2])
            peers["ours"] = lambda: ours.check(product(ours.cpu, *arguments))
        peers["MKL (PyTorch)"] = lambda: torch.mm(a, b, out=c)
        peers["OpenBLAS (NumPy)"] = lambda: numpy.matmul(a_np, b_np, out=c_np)
        if rust:
            peers["faer"] = lambda: rust.peer_faer(torch.get_num_threads(), m, n, k, *pointers_of)
            peers["gemm"] = lambda: rust.peer_gemm(torch.get_num_threads(), m, n, k, *pointers_of)
        expected = a.double() @ b.double()
        for name, work in peers.items():
            c.zero_()
            work()
            assert (c - expected).abs().max() < 1e-4 * k, f"{name} is wrong at {m} x {n} x {k}"
        run.measure(title, peers, flops=2 * m * n * k)


def linear(run: Run) -> None:
    """Linear layers with their activation, forward and all gradients, of the MLPs of the three DLRMs."""
    ours = run.ours
    if ours:
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        ours.lib.steptime_linear.argtypes = [pointer] + [size] * 3 + [pointer] * 3 + [ctypes.c_int, pointer]
        ours.lib.steptime_linear_backward.argtypes = (
            [pointer] + [size] * 3 + [pointer] * 4 + [ctypes.c_int] + [pointer] * 3
        )
    for name, layers in MLPS.items():
        for at, (inputs, outputs) in enumerate(layers):
            for batch in (512, 2048, 4096):
                if run.wants(f"linear {name} {at}"):
                    _linear(run, f"{name} {at}", batch, inputs, outputs, 2 if outputs == 1 else 1)


def _linear(run: Run, title, batch, inputs, outputs, activation) -> None:
    ours = run.ours
    x, weight = torch.randn(batch, inputs), torch.randn(outputs, inputs) * inputs**-0.5
    bias, dy = torch.randn(outputs), torch.randn(batch, outputs)
    layer = torch.nn.Linear(inputs, outputs)
    layer.weight.data, layer.bias.data = weight, bias
    function = torch.nn.functional.relu if activation == 1 else torch.sigmoid
    x_leaf = x.clone().requires_grad_()
    leaves = [x_leaf, layer.weight, layer.bias]
    y_torch = function(layer(x_leaf))

    @torch.no_grad()
    def torch_forward():
        return function(layer(x_leaf))

    def torch_backward():
        return torch.autograd.grad(y_torch, leaves, dy, retain_graph=True)

    forward, backward = {}, {}
    if ours:
        y = torch.zeros(batch, outputs)
        gradients = [torch.zeros_like(leaf) for leaf in leaves]
        p = [t.data_ptr() for t in (x, weight, bias, y, dy)]
        out = [gradient.data_ptr() for gradient in gradients]
        shape = (batch, inputs, outputs)
        forward["ours"] = lambda: ours.check(
            ours.lib.steptime_linear(ours.cpu, *shape, p[0], p[1], p[2], activation, p[3])
        )
        backward["ours"] = lambda: ours.check(
            ours.lib.steptime_linear_backward(ours.cpu, *shape, p[4], p[3], p[0], p[1], activation, *out)
        )
        forward["ours"]()
        assert (y - torch_forward()).abs().max() < 1e-4
        # Rounding may make a ReLU's input zero in only one of the two.
        y.copy_(torch_forward())
        backward["ours"]()
        for mine, theirs in zip(gradients, torch_backward()):
            assert (mine - theirs).abs().max() < 1e-3 * theirs.abs().max().clamp(min=1)
    forward["PyTorch"], backward["PyTorch"] = torch_forward, torch_backward
    for what, peers, flops in (("forward", forward, 2), ("gradients", backward, 4)):
        run.measure(f"linear {title} {what} {batch} x {inputs} -> {outputs}", peers, flops=flops * batch * inputs * outputs)


def interaction(run: Run) -> None:
    """Dot interaction, forward and backward, of contiguous vectors: batched product, triangle, cat."""
    ours = run.ours
    if ours:
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        ours.lib.steptime_interaction_forward.argtypes = [pointer] + [size] * 3 + [pointer] * 2
        ours.lib.steptime_interaction_backward.argtypes = [pointer] + [size] * 3 + [pointer] * 3
    for title, shape in (
        ("DLRM MLPerf", (2048, 27, 128)),
        ("DLRM default", (2048, 9, 64)),
        ("DLRM DDP", (2048, 9, 128)),
        ("MLPerf, batch 512", (512, 27, 128)),
    ):
        if run.wants(f"interaction {title}"):
            _interaction(run, title, shape)


def _interaction(run: Run, title, shape) -> None:
    ours = run.ours
    samples, features, dim = shape
    vectors = torch.randn(shape)
    rows, columns = torch.tril_indices(features, features, -1)
    gradient = torch.randn(samples, dim + len(rows))
    leaf = vectors.clone().requires_grad_()

    def torch_forward():
        products = torch.bmm(leaf, leaf.transpose(1, 2))
        return torch.cat([leaf[:, 0], products[:, rows, columns]], 1)

    def torch_both():
        return torch.autograd.grad(torch_forward(), leaf, gradient)[0]

    peers = {}
    if ours:
        out, gradients = torch.zeros_like(gradient), torch.zeros_like(vectors)
        forward, backward = ours.lib.steptime_interaction_forward, ours.lib.steptime_interaction_backward
        p = [tensor.data_ptr() for tensor in (vectors, out, gradient, gradients)]

        def our_both():
            ours.check(forward(ours.cpu, *shape, p[0], p[1]))
            ours.check(backward(ours.cpu, *shape, p[0], p[2], p[3]))

        peers["ours"] = our_both
        our_both()
        assert (out - torch_forward()).abs().max() < 1e-4 * dim
        assert (gradients - torch_both()).abs().max() < 1e-4 * features
    peers["PyTorch"] = torch_both
    run.measure(f"interaction {title}, forward and backward: {samples} x {features} x {dim}", peers)


# Layers of ResNet-50 and ResNeXt-50, and a depthwise one of MobileNet: inputs, outputs, image, kernel, stride, groups.
CONVOLUTIONS = {
    "7x7 / 2, 3 -> 64": (3, 64, 224, 7, 2, 1),
    "1x1, 64 -> 256, 56x56": (64, 256, 56, 1, 1, 1),
    "3x3, 64 -> 64, 56x56": (64, 64, 56, 3, 1, 1),
    "3x3 / 2, 128 -> 128, 56x56": (128, 128, 56, 3, 2, 1),
    "3x3, 512 -> 512, 7x7": (512, 512, 7, 3, 1, 1),
    "3x3, 128 -> 128, 56x56, 32 groups": (128, 128, 56, 3, 1, 32),
    "3x3 depthwise, 144, 56x56": (144, 144, 56, 3, 1, 144),
}


def keep_memory() -> None:
    """Makes the C library keep freed memory, so that a peer that returns new tensors does not wait for pages."""
    mmap_max, trim_threshold = -4, -1
    if ctypes.CDLL(None).mallopt(mmap_max, 0) != 1 or ctypes.CDLL(None).mallopt(trim_threshold, 2**31 - 1) != 1:
        print("memory is not kept: peers that return new results wait for pages", file=sys.stderr)


def convolution(run: Run) -> None:
    """Convolutions, forward and both gradients, with channels first and last, compared with oneDNN."""
    keep_memory()
    if run.ours:
        pointer = ctypes.c_void_p
        run.ours.lib.steptime_convolution.argtypes = [pointer] * 6
        run.ours.lib.steptime_convolution_backward.argtypes = [pointer] * 8
    for title, layer in CONVOLUTIONS.items():
        for last in (False, True):
            _convolution(run, title, 16, layer, last)


def _convolution(run: Run, title, samples, layer, last) -> None:
    title = f"convolution {title}, {'channels last' if last else 'channels first'}, {samples} images"
    if not run.wants(title):
        return
    ours, (inputs, outputs, image, kernel, stride, groups) = run.ours, layer
    ordered = lambda tensor: tensor.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    padding, terms = kernel // 2, inputs // groups * kernel**2
    x = ordered(torch.randn(samples, inputs, image, image))
    weight = ordered(torch.randn(outputs, inputs // groups, kernel, kernel) * terms**-0.5)
    bias = torch.randn(outputs)
    geometry = ([stride] * 2, [padding] * 2, [1, 1])

    def forward():
        return torch.convolution(x, weight, bias, *geometry, False, [0, 0], groups)

    y = ordered(forward())
    dy = ordered(torch.randn_like(y))

    def backward(*mask):
        return torch.ops.aten.convolution_backward(dy, x, weight, [outputs], *geometry, False, [0, 0], groups, mask)

    passes = {
        "forward": {"oneDNN (PyTorch)": forward},
        "gradient of the input": {"oneDNN (PyTorch)": lambda: backward(True, False, False)},
        "gradients of weights and bias": {"oneDNN (PyTorch)": lambda: backward(False, True, True)},
    }
    if ours:
        pair, size = lambda value: [value, value], ctypes.c_size_t
        numbers = [samples, inputs, outputs, *pair(image), *pair(kernel), *pair(stride), *pair(padding), 1, 1, groups, int(last)]
        sizes = (size * len(numbers))(*numbers)
        found, dx, dweight, dbias = [torch.full_like(tensor, torch.nan) for tensor in (y, x, weight, bias)]
        p = lambda tensor: tensor.data_ptr()

        def our_backward(dx, dweight, dbias):
            arguments = p(dy), p(x), p(weight), dx, dweight, dbias
            ours.check(ours.lib.steptime_convolution_backward(ours.cpu, sizes, *arguments))

        work = (
            lambda: ours.check(ours.lib.steptime_convolution(ours.cpu, sizes, p(x), p(weight), p(bias), p(found))),
            lambda: our_backward(p(dx), None, None),
            lambda: our_backward(None, p(dweight), p(dbias)),
        )
        for peers, each in zip(passes.values(), work):
            peers["ours"] = each
            each()
        theirs = (y, *backward(True, True, True))
        for name, mine, other in zip(("output", "input", "weights", "bias"), (found, dx, dweight, dbias), theirs):
            off = ((mine - other).abs().max() / other.abs().max()).item()
            assert off < 1e-4, f"{title}: {name} off by {off:.1e}"
    for name, peers in passes.items():
        run.measure(f"{title}, {name}", peers, flops=2 * terms * y.numel())


OPS = {"embedding_bag": embedding_bag, "embedding_backward": embedding_backward, "gemm": gemm, "linear": linear, "interaction": interaction, "convolution": convolution}


def main() -> None:
    """Runs the given ops, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", default=list(OPS), help=f"of {', '.join(OPS)}")
    parser.add_argument("--only", action="append", help="only what has this text in its title; repeated, one of these")
    numbers = lambda text: [int(each) for each in text.split(",")]
    parser.add_argument("--threads", type=numbers, default=[2], help="such as 1,2,4,8,16")
    parser.add_argument("--beside", action="store_true", help="each also right after a call of PyTorch's")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small-pages", action="store_true", help="nobody's tables in huge pages, which all have otherwise")
    arguments = parser.parse_args()
    for op in arguments.ops:
        if op not in OPS:
            parser.error(f"there is no op {op!r}: choose one of {', '.join(OPS)}")
    print(f"PyTorch {torch.__version__}, NumPy {numpy.__version__}; OPENBLAS_THREAD_TIMEOUT={os.environ['OPENBLAS_THREAD_TIMEOUT']}")
    run = Run(arguments)
    set_threads(run.ours, max(run.threads))
    for op in arguments.ops:
        run.table = Table(op, run.threads)
        set_threads(run.ours, max(run.threads))
        OPS[op](run)
        run.table.close()


if __name__ == "__main__":
    main()
