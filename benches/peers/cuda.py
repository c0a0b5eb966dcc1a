"""Times GPU operators of PyTorch, Triton, FBGEMM and steptime on the same tensors in turn, and prints the ratios.

Build ours first, then run on a machine with a GPU and PyTorch (and, optionally, Triton and FBGEMM):

    cargo build --release -p steptime-cuda-capi
    python benches/peers/cuda.py gather bag backward small interaction

Libraries that cannot be imported are skipped with a message. FBGEMM runs in four ways: by default, with its experimental
kernels (TBE v2), and both without the kernel that checks indices. A table at the end compares ours with FBGEMM by default
and FBGEMM at its best. Within each round every peer runs once, between two CUDA events, on the next of several sets of
indices; medians are shown. "call" is a call from the host, including launch gaps; "queued" is the same call behind a kernel
that keeps the GPU busy until the host is done, so that gaps do not count.
Zipf indices are numpy's: the unbounded law modulo the number of rows.
"""

import argparse
import ctypes
import gc
import itertools
import logging
import os
import statistics
import sys
import warnings
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from steptime.operators.library import NAME, GpuLookups, GpuSizes, GpuTables, Library  # noqa: E402

SETS = 5
# GPU cycles that are longer than the host's time for the launches of the slowest peer.
SPIN = 4_000_000

# Rows of the tables of Criteo Kaggle. Five of the 26 have more than a million rows and are cut to that here; titles mention it.
KAGGLE = [
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652, 2173,
    4, 7046547, 18, 15, 286181, 105, 142572,
]  # fmt: skip
MLPERF = [min(rows, 1_000_000) for rows in KAGGLE]
MILLION = 1_000_000
# Name, rows of each table, D, L, B, exponents of Zipf's law (0: uniform).
SHAPES = [
    ("T16 E1M D128 L32 B8192", [MILLION] * 16, 128, 32, 8192, [0, 1.05, 1.2]),
    ("Criteo-Kaggle, tables cut to 1M rows, T26 D128 L1 B8192", MLPERF, 128, 1, 8192, [0]),
    ("T4 E1k D32 L5 B512", [1000] * 4, 32, 5, 512, [0]),
    ("T8 E1M D64 L10 B2048", [MILLION] * 8, 64, 10, 2048, [0]),
    ("T8 E80k D128 L20 B2048", [80_000] * 8, 128, 20, 2048, [0]),
    ("T4 E1M D512 L10 B8192", [MILLION] * 4, 512, 10, 8192, [0]),
]
RULES = {"SGD": 0, "row-wise Adagrad": 2, "Adam": 3}
# FBGEMM's ways, the default first: whether kernels are the experimental ones, whether another kernel checks indices.
FBGEMM = {
    "FBGEMM TBE": (False, True),
    "FBGEMM TBE, unchecked": (False, False),
    "FBGEMM TBE v2": (True, True),
    "FBGEMM TBE v2, unchecked": (True, False),
}
# Titles with the times shown by `summary`: GPU time of each peer.
SHOWN = []


class Ours(Library):
    """The shared library, on the current GPU and its current stream."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.here = self.gpu(torch.cuda.current_device())

    def function(self, name):
        """A library function on a handle and the current stream, which raises an error if a call fails."""
        function = getattr(self, name)

        def call(handle, *arguments):
            if function(handle, torch.cuda.current_stream().cuda_stream, *arguments):
                raise self.failure()

        return call

    def free(self, name, handle) -> None:
        """Frees a handle, once the GPU is done."""
        torch.cuda.synchronize()
        getattr(self, name)(handle)


def tables_of(weights):
    """f32 tables for the C ABI; their arrays live as long as the result."""
    columns = zip(*((w.data_ptr(), w.shape[0], w.shape[1], 4 * w.stride(0)) for w in weights))
    return GpuTables.of(*columns, 0)


def load_ours():
    """Our library, or None with a message."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = target / "release" / NAME
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
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode
    except (ImportError, OSError) as error:
        print(f"FBGEMM skipped: {error}", file=sys.stderr)
        return None
    return training, EmbOptimType, BoundsCheckMode


def load_triton():
    """Our own gathers in Triton, or None with a message."""
    try:
        import cuda_triton
    except ImportError as error:
        print(f"Triton skipped: {error}", file=sys.stderr)
        return None
    return cuda_triton


def draw(count: int, rows: int, exponent: float) -> torch.Tensor:
    """Random rows: uniform, or by Zipf's law with Devroye's rejection (1986, X.6.1)."""
    if not exponent:
        return torch.randint(rows, (count,), device="cuda")
    done, power = [], exponent - 1
    missing = count
    while missing > 0:
        u, v = (torch.rand(2 * missing + 64, dtype=torch.float64, device="cuda") for _ in range(2))
        rank = (1 - u).pow(-1 / power).floor()
        t = (1 + 1 / rank).pow(power)
        good = (rank < 9e18) & (v * rank * (t - 1) / (2**power - 1) <= t / 2**power)
        done.append(rank[good].long() % rows)
        missing -= len(done[-1])
    return torch.cat(done)[:count]


def measure(rounds: int, peers: dict) -> dict:
    """Microseconds of each peer, in turn: (call, queued). A peer is called with the number of a set of indices and
    returns the function to time."""
    counter = 0
    for _ in range(2):
        for peer in peers.values():
            peer(counter % SETS)()
            counter += 1
    found = {name: [] for name in peers}
    for queued in (False, True):
        events = {name: [] for name in peers}
        for _ in range(rounds):
            for name, peer in peers.items():
                work = peer(counter % SETS)
                counter += 1
                torch.cuda.synchronize()
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                if queued:
                    torch.cuda._sleep(SPIN)
                pair[0].record()
                work()
                pair[1].record()
                events[name].append(pair)
        torch.cuda.synchronize()
        for name, pairs in events.items():
            found[name].append(statistics.median(start.elapsed_time(end) * 1e3 for start, end in pairs))
    return found


def report(title: str, times: dict, heads=("call", "queued")) -> None:
    """Prints a line for each peer: its times, and their ratios to ours."""
    print(title)
    if title.startswith(("forward", "backward")):
        at = heads.index("graph") if "graph" in heads else heads.index("queued")
        kind = ", as a graph" if "graph" in heads else ""
        SHOWN.append((title + kind, {name: of[at] for name, of in times.items() if of[at] is not None}))
    ours = times.get("ours")
    for name, of in times.items():
        text = "".join(f"{head:>12} {time:9.1f} us" for head, time in zip(heads, of) if time is not None)
        if ours and name != "ours":
            ratios = [f"{time / our:.2f}" for time, our in zip(of, ours) if time is not None and our is not None]
            text += f"   {' / '.join(ratios)} x ours"
        print(f"  {name:34}{text}", flush=True)


def same(title: str, results) -> None:
    """Prints the difference of results, each a name with tensors, to the first one, relative to its norm."""
    (first, expected), *others = results if isinstance(results, list) else results.items()
    for name, found in others:
        away = norm(one.double() - other.double() for one, other in zip(found, expected))
        error = away / norm(one.double() for one in expected)
        print(f"{title}: {name} differs from {first} by {error:.1e}", flush=True)
        assert error < 1e-5, f"{title}: {name} is wrong"


def norm(tensors) -> float:
    """Euclidean norm of all elements of all tensors."""
    return sum(tensor.norm().item() ** 2 for tensor in tensors) ** 0.5


def summary() -> None:
    """Prints GPU times in microseconds of ours, of FBGEMM by default, and of FBGEMM at its best."""
    rows = [(title, times) for title, times in SHOWN if "ours" in times and next(iter(FBGEMM)) in times]
    if not rows:
        return
    head = ("ours", "default", "best")
    print(f"\n{'FBGEMM, us on the GPU':90}" + "".join(f"{name:>9}" for name in head) + "   the best, x ours")
    for title, times in rows:
        best = min((name for name in FBGEMM if name in times), key=times.get)
        shown = (times["ours"], times[next(iter(FBGEMM))], times[best])
        print(f"{title:90}" + "".join(f"{time:9.1f}" for time in shown) + f"   {best}, {shown[2] / shown[0]:.2f}")


def gather(tools, rounds: int) -> None:
    """Gathers of table rows, by tiling."""
    ours, _, triton = tools
    table = torch.randn(8192, 4096, device="cuda")
    sets = [draw(16384, 8192, 0) for _ in range(SETS)]
    out = torch.empty(16384, 4096, device="cuda")
    peers = {}
    if ours:
        run = ours.function("gather")
        sorted_sets = [torch.sort(indices, stable=True) for indices in sets]
        pairs = [(of.values << 32) | of.indices for of in sorted_sets]
        tables = tables_of([table])

        def add(name, cut, wanted):
            handle = ours.new("gather_new", ours.here, ctypes.addressof(tables), cut)
            arguments = [(handle, 16384, of.data_ptr(), out.data_ptr()) for of in wanted]
            peers[name] = lambda at: lambda: run(*arguments[at])

        add("ours", 512, sets)
        add("ours, columns of 1 KiB", 1024, sets)
        add("ours, columns of 2 KiB", 2048, sets)
        add("ours, row order", 0, sets)
        add("ours, sorted (sort not timed)", -1, pairs)
    peers["torch embedding"] = lambda at: lambda: torch.nn.functional.embedding(sets[at], table)
    peers["torch index_select, same output"] = lambda at: lambda: torch.index_select(table, 0, sets[at], out=out)
    try:
        compiled = torch.compile(lambda weight, indices: torch.nn.functional.embedding(indices, weight))
        compiled(table, sets[0])
        peers["torch.compile embedding"] = lambda at: lambda: compiled(table, sets[at])
    except Exception as error:  # What compilers raise is of many types.
        print(f"torch.compile skipped: {str(error)[:200]}", file=sys.stderr)
    if triton:
        for name, kernel in triton.gathers(table, out).items():
            peers[f"Triton {name}"] = lambda at, kernel=kernel: lambda: kernel(sets[at])
    for name, peer in peers.items():
        out.fill_(float("nan"))
        result = peer(0)()
        found = out if result is None else result
        assert torch.equal(found, table[sets[0]]), f"{name} is wrong"
    a, b = torch.empty(48 << 20, device="cuda"), torch.randn(48 << 20, device="cuda")
    peers["a copy of as many bytes (402 MB)"] = lambda at: lambda: a.copy_(b)
    report("gather 8192 x 4096 f32, 16,384 uniform lookups", measure(rounds, peers))


class Case:
    """Tables with sets of lookups and gradients, shared by all peers."""

    def __init__(self, tools, shape, exponent, rule):
        self.ours, self.fbgemm, _ = tools
        name, self.rows, self.dim, self.length, self.bags, _ = shape
        law = f"Zipf {exponent}" if exponent else "uniform"
        self.title = f"{name}, {law}"
        self.of_table = self.bags * self.length
        self.rule = rule
        self.weights = [torch.empty(rows, self.dim, device="cuda").uniform_(-1, 1) for rows in self.rows]
        self.module = self._module() if self.fbgemm else None
        self.sets = [torch.cat([draw(self.of_table, rows, exponent) for rows in self.rows]) for _ in range(SETS)]
        self.offsets = torch.arange(0, len(self.sets[0]) + 1, self.length, device="cuda")
        self.columns = self.dim * len(self.rows)
        self.handles = []
        if self.ours:
            start = self.offsets.data_ptr()
            self.lookups = [GpuLookups(len(indices), indices.data_ptr(), start, 0) for indices in self.sets]
            self.places = [ctypes.addressof(lookups) for lookups in self.lookups]
            self.tables = tables_of(self.weights)
            self.sizes = GpuSizes(self.bags, len(self.sets[0]), self.columns, 64, 0, 0)

    def _module(self):
        """FBGEMM's tables, with the weights of all peers."""
        training, kinds, _ = self.fbgemm
        optimizer = {"SGD": kinds.EXACT_SGD, "row-wise Adagrad": kinds.EXACT_ROWWISE_ADAGRAD, "Adam": kinds.ADAM}
        place = (training.EmbeddingLocation.DEVICE, training.ComputeDevice.CUDA)
        module = training.SplitTableBatchedEmbeddingBagsCodegen(
            [(rows, self.dim, *place) for rows in self.rows],
            optimizer=optimizer[self.rule],
            learning_rate=0.01,
            eps=1e-8,
            device=torch.device("cuda"),
        )
        for weight, first in zip(module.split_embedding_weights(), self.weights):
            weight.detach().copy_(first)
        return module

    def ways(self):
        """FBGEMM's ways that support these tables, as functions of a set; the others are skipped with a message."""
        for name, (experimental, checked) in FBGEMM.items() if self.module else ():
            run = self._way(experimental, checked)
            try:
                with torch.no_grad():
                    run(0)
                torch.cuda.synchronize()
            except RuntimeError as error:
                print(f"{name} skipped: {str(error).splitlines()[0][:150]}", file=sys.stderr)
                continue
            yield name, run

    def _way(self, experimental: bool, checked: bool):
        """The forward pass with `use_experimental_tbe` and `bounds_check_mode`. One module serves all ways, because memory
        does not fit four: the attributes that the constructor derives from these two are set before each call."""
        module, modes = self.module, self.fbgemm[2]
        mode = (modes.WARNING if checked else modes.NONE).value

        def run(at):
            module.is_experimental, module.bounds_check_mode_int = experimental, mode
            return module(self.sets[at], self.offsets)

        return run

    def restart(self):
        """Resets the step count of FBGEMM's optimizer: every forward pass counts as a step."""
        self.module.iter.zero_()
        self.module.iter_cpu.zero_()
        for state in itertools.chain(*self.module.split_optimizer_states()):
            state.detach().zero_()

    def ours_forward(self):
        """Our forward pass, into one output."""
        places = [ctypes.addressof(of) for of in (self.tables, self.sizes)]
        handle = self.ours.new("bag_new", self.ours.here, *places)
        self.handles.append(("bag_free", handle))
        run = self.ours.function("bag_forward")
        out = torch.empty(self.bags, self.columns, device="cuda")

        def work(at):
            run(handle, self.places[at], out.data_ptr())
            return out

        return work

    def ours_backward(self):
        """Our backward pass: grouping, then steps."""
        places = [ctypes.addressof(of) for of in (self.tables, self.sizes)]
        stream, rule = torch.cuda.current_stream().cuda_stream, RULES[self.rule]
        handle = self.ours.new("backward_new", self.ours.here, stream, *places, self.of_table, rule, 0.01, None)
        self.handles.append(("backward_free", handle))
        group, step = self.ours.function("backward_group"), self.ours.function("backward_step")

        def work(at, gradient):
            group(handle, self.places[at])
            step(handle, self.places[at], gradient.data_ptr())

        return work

    def torch_modules(self):
        """An EmbeddingBag for each table, on the same weights."""
        new = torch.nn.EmbeddingBag.from_pretrained
        modules = [new(weight, freeze=False, mode="sum", sparse=True) for weight in self.weights]
        offsets = torch.arange(0, self.of_table, self.length, device="cuda")

        def forward(at):
            parts = self.sets[at].chunk(len(modules))
            return torch.cat([module(part, offsets) for module, part in zip(modules, parts)], 1)

        return [module.weight for module in modules], forward

    def free(self):
        """Frees the memory."""
        for name, handle in self.handles:
            self.ours.free(name, handle)
        self.handles, self.module, self.weights = [], None, None
        gc.collect()
        torch.cuda.empty_cache()


def bag(tools, rounds: int) -> None:
    """Forward passes of bags over many tables, with sum pooling."""
    for shape in SHAPES:
        for exponent in shape[-1]:
            case = Case(tools, shape, exponent, "SGD")
            peers = {}
            if case.ours:
                ours = case.ours_forward()
                peers["ours"] = lambda at: lambda: ours(at)
            for name, way in case.ways():
                peers[name] = lambda at, way=way: lambda: way(at)
            _, forward = case.torch_modules()
            peers["torch EmbeddingBag"] = lambda at: lambda: forward(at)
            with torch.no_grad():
                same(f"forward {case.title}", {name: [peer(1)().clone()] for name, peer in peers.items()})
            report(f"forward {case.title}", measure(rounds, peers))
            peers.clear()
            forward = ours = way = None
            case.free()


def backward(tools, rounds: int) -> None:
    """Backward passes with the optimizer, index grouping included; the forward pass is not timed."""
    for shape in SHAPES:
        for exponent in shape[-1]:
            for rule in RULES:
                case = Case(tools, shape, exponent, rule)
                gradients = [torch.randn(case.bags, case.columns, device="cuda") for _ in range(2)]
                peers = {}
                if case.ours:
                    ours = case.ours_backward()
                    peers["ours"] = lambda at: lambda: ours(at, gradients[at % 2])
                for name, way in case.ways():
                    peers[name] = _fbgemm_backward(way, gradients)
                if rule == "SGD":
                    peers["torch EmbeddingBag + SGD"] = _torch_backward(case, gradients)
                _check_step(case, peers)
                report(f"backward + {rule} {case.title}", measure(rounds, peers))
                peers.clear()
                ours = way = None
                case.free()


def _check_step(case, peers) -> None:
    """Checks that all peers have the same weights after the first step of their optimizer."""
    start = [weight.clone() for weight in case.weights]
    expected = None
    for name, peer in peers.items():
        own = case.weights
        if name in FBGEMM:
            own = case.module.split_embedding_weights()
            case.restart()
        for weight, first in zip(own, start):
            weight.detach().copy_(first)
        peer(0)()
        if expected is None:
            first_name, expected = name, [weight.detach().clone() for weight in own]
        else:
            same(f"one step of {case.rule}, {case.title}", [(first_name, expected), (name, [w.detach() for w in own])])


def _fbgemm_backward(way, gradients):
    def peer(at):
        output = way(at)
        return lambda: output.backward(gradients[at % 2])

    return peer


def _torch_backward(case, gradients):
    parameters, forward = case.torch_modules()
    optimizer = torch.optim.SGD(parameters, lr=0.01)

    def peer(at):
        output = forward(at)

        def work():
            output.backward(gradients[at % 2])
            optimizer.step()
            optimizer.zero_grad()

        return work

    return peer


def small(tools, rounds: int) -> None:
    """The smallest shape, which is dominated by launches: as replays of CUDA graphs and as the sum of its kernels. Also
    checks that all peers get the same weights."""
    shape = next(shape for shape in SHAPES if shape[0].startswith("T4 E1k"))
    case = Case(tools, shape, 0, "SGD")
    gradient = torch.randn(case.bags, case.columns, device="cuda")
    start = [weight.clone() for weight in case.weights]
    forwards, backwards = {}, {}
    if case.ours:
        forwards["ours"] = case.ours_forward()
        ours = case.ours_backward()
        backwards["ours"] = lambda at: ours(at, gradient)
    own = {name: case.weights for name in ("ours", "torch EmbeddingBag")}
    for name, way in case.ways():
        own[name] = [weight.detach() for weight in case.module.split_embedding_weights()]
        forwards[name] = way
        backwards[name] = lambda at, name=name: forwards[name](at).backward(gradient)
    parameters, forwards["torch EmbeddingBag"] = case.torch_modules()
    optimizer = torch.optim.SGD(parameters, lr=0.01)

    def torch_both(at):
        forwards["torch EmbeddingBag"](at).backward(gradient)
        optimizer.step()
        optimizer.zero_grad()

    backwards["torch EmbeddingBag"] = torch_both
    results = {}
    for name, work in backwards.items():
        with torch.no_grad():
            for weight, first in zip(own[name], start):
                weight.copy_(first)
        work(0)
        results[name] = [weight.detach().clone() for weight in own[name]]
    same("one step of SGD", results)
    alone = {name: (_replayed(work, rounds), _kernels(work, rounds)) for name, work in forwards.items()}
    heads = ("graph", "kernels")
    report(f"forward {case.title}", alone, heads)
    # Autograd's backward passes include their forward pass, whose time is subtracted.
    rest = {}
    for name, work in backwards.items():
        both = (_replayed(work, rounds), _kernels(work, rounds))
        less = (0, 0) if name == "ours" else alone[name]
        rest[name] = tuple(a - b if a is not None and b is not None else None for a, b in zip(both, less))
    report(f"backward + SGD {case.title}", rest, heads)
    case.free()


def _replayed(work, rounds: int):
    """Microseconds of a call within a graph of ten, or None with a message."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for at in range(SETS):
                work(at)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for at in range(10):
                work(at % SETS)
        times = measure(rounds, {"graph": lambda at: graph.replay})
        return times["graph"][1] / 10
    except RuntimeError as error:
        torch.cuda.synchronize()
        print(f"graph skipped: {str(error).splitlines()[0][:150]}", file=sys.stderr)
        return None


def _kernels(work, rounds: int) -> float:
    """Microseconds of all kernels of a call."""
    from torch.profiler import ProfilerActivity, profile

    work(0)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for at in range(rounds):
            work(at % SETS)
        torch.cuda.synchronize()
    device = torch.autograd.DeviceType.CUDA
    total = sum(event.self_device_time_total for event in recorded.key_averages() if event.device_type == device)
    return total / rounds


def interaction(tools, rounds: int) -> None:
    """Dot interaction of contiguous vectors: batched product, triangle, cat."""
    ours, _, _ = tools
    for title, shape in (("MLPerf", (2048, 27, 128)), ("default", (2048, 9, 64)), ("DDP", (2048, 9, 128))):
        samples, features, dim = shape
        rows, columns = torch.tril_indices(features, features, -1, device="cuda")
        sets = [torch.randn(shape, device="cuda") for _ in range(SETS)]
        leaves = [vectors.clone().requires_grad_() for vectors in sets]
        gradient = torch.randn(samples, dim + len(rows), device="cuda")

        def forward(vectors):
            products = torch.bmm(vectors, vectors.transpose(1, 2))
            return torch.cat([vectors[:, 0], products[:, rows, columns]], 1)

        def backward_of(run):
            def peer(at):
                output = run(leaves[at])
                return lambda: torch.autograd.grad(output, leaves[at], gradient)[0]

            return peer

        forwards, backwards = {}, {}
        if ours:
            handle = ours.new("interaction_new", ours.here, features, dim)
            out, to = torch.empty_like(gradient), torch.empty_like(sets[0])
            our_forward, our_backward = ours.function("interaction_forward"), ours.function("interaction_backward")

            def run_forward(at):
                our_forward(handle, samples, sets[at].data_ptr(), out.data_ptr())
                return out

            def run_backward(at):
                our_backward(handle, samples, sets[at].data_ptr(), gradient.data_ptr(), to.data_ptr())
                return to

            forwards["ours"] = lambda at: lambda: run_forward(at)
            backwards["ours"] = lambda at: lambda: run_backward(at)
        forwards["torch"] = lambda at: lambda: forward(sets[at])
        backwards["torch"] = backward_of(forward)
        try:
            compiled = torch.compile(forward, dynamic=False)
            compiled(sets[0]), compiled(leaves[0]).sum().backward()
            forwards["torch.compile"] = lambda at: lambda: compiled(sets[at])
            backwards["torch.compile"] = backward_of(compiled)
        except Exception as error:  # What compilers raise is of many types.
            print(f"torch.compile skipped: {str(error)[:200]}", file=sys.stderr)
        for what, peers in (("forward", forwards), ("backward", backwards)):
            name = f"interaction {title} {samples} x {features} x {dim}, {what}"
            same(name, {name: [peer(1)().clone()] for name, peer in peers.items()})
            report(name, measure(rounds, peers))


OPS = {"gather": gather, "bag": bag, "backward": backward, "small": small, "interaction": interaction}


def main() -> None:
    """Runs the given ops, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", default=list(OPS), help=f"of {', '.join(OPS)}")
    parser.add_argument("--rounds", type=int, default=25)
    arguments = parser.parse_args()
    for op in arguments.ops:
        if op not in OPS:
            parser.error(f"there is no op {op!r}: choose one of {', '.join(OPS)}")
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    tools = load_ours(), load_fbgemm(), load_triton()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    for op in arguments.ops:
        OPS[op](tools, arguments.rounds)
    summary()


if __name__ == "__main__":
    main()
