"""Host probe: times of the pieces of host work that training steps consist of, and the profiler's cost of each.

A recording stores it as `host_probe`; `steptime.probe` measures it alone. It takes a few seconds.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from steptime.pulse import Pulse
from steptime.stats import median

VERSION = 1
# Number of rounds; each round times every piece, with pulses between them.
ROUNDS = 7
# Calls of a piece per round.
CALLS = 40
# Calls per round of pieces that take long, or wait.
FEW_CALLS = 8
# Sizes of copies, in bytes.
COPIES = tuple(4 ** power for power in range(4, 13))  # 256 B to 16 MB
# Parts of the profiler's names of runtime calls that submit work to the GPU or wait for it.
HEAVY = ("Launch", "Memcpy", "Memset", "Synchronize", "EventRecord", "StreamWait")


class Pieces:
    """The timed pieces of host work; each is called several times in a row, and its mean time counts."""

    def __init__(self, torch: Any, on_gpu: bool) -> None:
        self.torch = torch
        self.on_gpu = on_gpu
        self.pulse = Pulse(torch, on_gpu)
        with torch.random.fork_rng():
            self.steps = {"step_cpu": _small_step(torch, "cpu")}
            if on_gpu:
                self.steps["step_gpu"] = _small_step(torch, "cuda")
        self._pieces = self._simple()

    def _simple(self) -> Dict[str, Callable[[], Any]]:
        torch = self.torch
        one, out = torch.ones(1), torch.ones(1)
        leaf = torch.ones(1, requires_grad=True)
        pieces: Dict[str, Callable[[], Any]] = {
            "op": lambda: torch.add(one, one, out=out),
            "op_autograd": lambda: leaf * one,
            "view": lambda: one.view(1),
        }
        if self.on_gpu:
            there, stream, event = torch.ones(1, device="cuda"), torch.cuda.current_stream(), torch.cuda.Event()
            pieces.update(
                {
                    "launch": lambda: there.add_(1.0),
                    "launch_allocating": lambda: there + there,
                    "fill": lambda: there.zero_(),
                    "event": lambda: event.record(stream),
                    "synchronise": stream.synchronize,
                    **self._libraries(),
                }
            )
        return pieces

    def _libraries(self) -> Dict[str, Callable[[], Any]]:
        """Pieces whose libraries make calls that the profiler slows down but does not record."""
        torch = self.torch
        functions = torch.nn.functional
        rows, weight, bias = (torch.ones(shape, device="cuda") for shape in ((8, 8), (8, 8), (8,)))
        trained = weight.clone().requires_grad_()
        picture, filters = torch.ones(2, 4, 8, 8, device="cuda"), torch.ones(4, 4, 3, 3, device="cuda", requires_grad=True)
        given, mean, variance = picture.clone().requires_grad_(), torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
        scale = torch.ones(4, device="cuda", requires_grad=True)
        one = torch.ones(1, device="cuda")
        host = torch.ones(1 << 18)
        there = host.cuda()

        def backward(result: Any, *wanted: Any) -> None:
            torch.autograd.grad(result, wanted, torch.ones_like(result))

        return {
            "product": lambda: functions.linear(rows, weight, bias),
            "product_step": lambda: backward(functions.linear(rows, trained, bias), trained),
            "batched_product": lambda: torch.bmm(picture[0], picture[1]),
            "convolution": lambda: functions.conv2d(picture, filters.detach(), padding=1),
            "convolution_step": lambda: backward(functions.conv2d(given, filters, padding=1), given, filters),
            "batch_norm_step": lambda: backward(functions.batch_norm(given, mean, variance, scale, scale, True), given, scale),
            "layer_norm": lambda: functions.layer_norm(rows, (8,)),
            "item": one.item,
            "copy": lambda: there.copy_(host),
        }

    def composite(self) -> Dict[str, Callable[[], Any]]:
        """The pieces that are more than one event of the profiler."""
        return {**{name: piece for name, piece in self._pieces.items() if name != "op"}, **self.steps}

    def phase(self) -> Dict[str, Any]:
        """Times every piece, in us, scaled to the median speed of the pulses taken between them."""
        seen: Dict[str, List[float]] = {}
        loops: List[float] = []
        others: Dict[str, List[float]] = {}
        for _ in range(ROUNDS):
            for name, piece, calls, drain in self._plan():
                before = self.pulse.loop()
                self._wait()
                begin = time.perf_counter()
                for _ in range(calls):
                    piece()
                if drain:
                    self._wait()
                took = 1e6 * (time.perf_counter() - begin) / calls
                loop = min(before, self.pulse.loop())
                loops.append(loop)
                seen.setdefault(name, []).append(took / loop)
            if self.on_gpu:
                loop = self.pulse.loop()
                loops.append(loop)
                for name, took in self._hand_off().items():
                    seen.setdefault(name, []).append(took / loop)
            for name, took in self.pulse.take().items():
                others.setdefault(name, []).append(took)
        loop = median(loops)
        found: Dict[str, Any] = {"loop_us": loop}
        found.update({f"pulse_{name}_us": median(times) for name, times in others.items()})
        found.update({f"{name}_us": median(times) * loop for name, times in seen.items()})
        return {name: round(value, 4) for name, value in found.items()}

    def _plan(self) -> Iterator[Tuple[str, Callable[[], Any], int, bool]]:
        for name, piece in self._pieces.items():
            yield name, piece, FEW_CALLS if name.endswith("_step") or name in ("item", "copy") else CALLS, False
        for name, step in self.steps.items():
            yield name, step, 2, True

    def _hand_off(self) -> Dict[str, float]:
        """Time from `backward()` to the first node on the GPU's autograd thread, and from its last node back, in us."""
        torch = self.torch
        times: List[float] = []

        class Note(torch.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(context: Any, given: Any) -> Any:
                return given.view_as(given)

            @staticmethod
            def backward(context: Any, gradient: Any) -> Any:
                times.append(time.perf_counter())
                return gradient

        source = torch.ones(1, device="cuda", requires_grad=True)
        noted, gradient = Note.apply(source), torch.ones(1, device="cuda")
        self._wait()
        begin = time.perf_counter()
        torch.autograd.grad(noted, source, gradient)
        end = time.perf_counter()
        return {"hand_off": 1e6 * (times[0] - begin), "hand_back": 1e6 * (end - times[0])}

    def copies(self) -> Dict[str, List[float]]:
        """Host time of copies to the GPU and back by size, in us: until the call returns, and until the copy is done."""
        if not self.on_gpu:
            return {}
        torch = self.torch
        table: Dict[str, List[float]] = {"bytes": []}
        for size in COPIES:
            table["bytes"].append(size)
            there = torch.empty(size, dtype=torch.uint8, device="cuda")
            hosts = {"pageable": torch.ones(size, dtype=torch.uint8), "pinned": torch.ones(size, dtype=torch.uint8).pin_memory()}
            for name, here in hosts.items():
                self._copy(table, f"{name}_to_gpu", partial(there.copy_, here, non_blocking=True))
                self._copy(table, f"{name}_from_gpu", partial(here.copy_, there, non_blocking=False))
        return table

    def _copy(self, table: Dict[str, List[float]], name: str, copy: Callable[[], Any]) -> None:
        returned, done = [], []
        for _ in range(5):
            self._wait()
            begin = time.perf_counter()
            copy()
            returned.append(1e6 * (time.perf_counter() - begin))
            self._wait()
            done.append(1e6 * (time.perf_counter() - begin))
        table.setdefault(f"{name}_us", []).append(round(median(returned), 3))
        table.setdefault(f"{name}_done_us", []).append(round(median(done), 3))

    def _wait(self) -> None:
        if self.on_gpu:
            self.torch.cuda.synchronize()


def _small_step(torch: Any, device: str) -> Callable[[], None]:
    """A training step on tiny tensors: nearly all host work, with as many kinds of it as a real step."""
    nn = torch.nn
    layers: List[Any] = []
    for _ in range(2):
        layers += [nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Dropout(0.1)]
    table = nn.Embedding(16, 8).to(device)
    model = nn.Sequential(*layers, nn.Linear(8, 4)).to(device)
    optimizer = torch.optim.Adam([*table.parameters(), *model.parameters()], foreach=False)
    index = torch.arange(4, device=device)
    target = torch.zeros(4, dtype=torch.long, device=device)

    def step() -> None:
        optimizer.zero_grad()
        hidden = table(index)
        hidden = torch.cat([hidden, hidden * 2.0], dim=0)[:4] + hidden.flip(0)
        scores = model(hidden.view(2, 2, 8).transpose(0, 1).reshape(4, 8))
        loss = nn.functional.cross_entropy(scores, target) + hidden.pow(2).mean()
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    return step


class HostProbe:
    """The probe of one process: before any profiler, under one, after it."""

    def __init__(self, torch: Any, on_gpu: bool, profile: Callable[[], Any]) -> None:
        self._pieces = Pieces(torch, on_gpu)
        self._profile = profile
        self._found: Dict[str, Any] = {"version": VERSION}

    @property
    def pulse(self) -> Pulse:
        """The pulse that a recording shares with the probe."""
        return self._pieces.pulse

    def before(self) -> None:
        """Times the pieces before the recording's profiler has run, and copies, which a profiler does not slow down."""
        with self._fixed():
            self._found["before"] = self._pieces.phase()
            self._found["copies"] = self._pieces.copies()

    def under(self) -> None:
        """Times the pieces under the profiler, and counts the events of the composite pieces."""
        with self._fixed():
            with self._profile():
                self._found["under"] = self._pieces.phase()
            self._found["events"] = {name: self._events(piece) for name, piece in self._pieces.composite().items()}

    def after(self) -> None:
        """Times the pieces after the profiler has run."""
        with self._fixed():
            self._found["after"] = self._pieces.phase()

    def as_dict(self) -> Dict[str, Any]:
        """The value of `host_probe` in meta.json."""
        return self._found

    def _events(self, step: Callable[[], None]) -> Dict[str, int]:
        """Numbers of ops, annotations, heavy calls (launches, copies, events, waits) and other runtime calls of one small step."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            with self._profile() as running:
                step()
                self._pieces._wait()
            running.export_chrome_trace(str(path))
            events = json.loads(path.read_text(encoding="utf-8", errors="replace")).get("traceEvents", [])
        kinds = [(each.get("cat"), each.get("name", "")) for each in events if each.get("ph") == "X"]
        calls = [name for kind, name in kinds if kind in ("cuda_runtime", "cuda_driver")]
        heavy = sum(any(word in name for word in HEAVY) for name in calls)
        return {
            "ops": sum(kind == "cpu_op" for kind, _ in kinds),
            "annotations": sum(kind == "user_annotation" for kind, _ in kinds),
            "heavy_calls": heavy,
            "other_calls": len(calls) - heavy,
        }

    @contextmanager
    def _fixed(self) -> Iterator[None]:
        """Context with one thread that restores the random state and the thread count of the training script."""
        torch = self._pieces.torch
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng():
                yield
        finally:
            torch.set_num_threads(threads)


class NoProbe:
    """The probe of a recording without a probe."""

    def before(self) -> None:
        """Nothing."""

    def under(self) -> None:
        """Nothing."""

    def after(self) -> None:
        """Nothing."""

    def as_dict(self) -> Optional[Dict[str, Any]]:
        """Nothing."""
        return None
