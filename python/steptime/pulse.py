"""A pulse: a fixed piece of host work, timed between steps, that tells how fast the host is at that moment.

A core has two speeds, up to 1.8 apart: its own, and that beside a busy sibling. It changes between them within a tenth of a
second, each core by itself, and steps follow. So the same small work is timed right after steps, on the thread that runs the
loop and on that of the backward pass, in un-profiled windows and between profiled steps alike. Durations of that work are kept,
and nothing from which a step's time could be told.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional

VERSION = 2
# Rounds of the loop: some 30 us of pure Python.
ROUNDS = 600
# Between two pulses of an un-profiled window lies about this much time, in seconds, and at least this many steps: a step
# right after a pulse does not count for the step's time.
APART_SECONDS, APART_STEPS = 0.01, 2


def apart(step_seconds: float, steps: int) -> int:
    """Steps from one pulse to the next, given how long a step takes, in a window of so many: one lies within each."""
    return max(APART_STEPS, min(round(APART_SECONDS / max(step_seconds, 1e-9)), steps // 2))


def work(rounds: int = ROUNDS) -> int:
    """The loop."""
    total = 0
    for each in range(rounds):
        total += each & 7
    return total


def timed(clock: Callable[[], float] = time.perf_counter) -> float:
    """How long the loop takes, once, in us."""
    begin = clock()
    work()
    return 1e6 * (clock() - begin)


class Pulse:
    """Takes pulses with PyTorch: on a GPU's autograd thread as well, where there is one. A profiler sees nothing of them."""

    def __init__(self, torch: Any, on_gpu: bool) -> None:
        self._backward = _on_autograd_thread(torch) if on_gpu else None

    def take(self) -> Dict[str, float]:
        """One pulse, in us: `loop` on this thread, `backward_loop` on that of the backward pass, `whole` until both are done."""
        begin = time.perf_counter()
        taken = {"loop": self.loop()}
        if self._backward is not None:
            taken["backward_loop"] = self._backward()
        taken["whole"] = 1e6 * (time.perf_counter() - begin)
        return taken

    def loop(self) -> float:
        """The loop on this thread alone, in us."""
        return timed()


def _on_autograd_thread(torch: Any) -> Callable[[], float]:
    """Runs the loop on the thread of the GPU's backward pass: in the backward of an identity. Launches no kernel."""
    found: List[float] = []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, given: Any) -> Any:
            return given.view_as(given)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            found.append(timed())
            return gradient

    source = torch.ones(1, device="cuda", requires_grad=True)
    gradient = torch.ones(1, device="cuda")
    with torch.enable_grad():
        through = Identity.apply(source)

    def run() -> float:
        with _unrecorded(torch):
            torch.autograd.grad(through, source, gradient, retain_graph=True)
        return found.pop()

    run()
    return run


@contextmanager
def _unrecorded(torch: Any) -> Iterator[None]:
    """No op that begins inside is recorded, on whatever thread it runs; a PyTorch that cannot say so records it."""
    enable = getattr(getattr(torch._C, "_autograd", None), "_enable_record_function", lambda _: None)
    enable(False)
    try:
        yield
    finally:
        enable(True)


class NoPulse:
    """For a recording without one."""

    def take(self) -> Dict[str, float]:
        """Nothing."""
        return {}


class Pulses:
    """The pulses of a recording, by what ran around them."""

    def __init__(self, pulse: Any) -> None:
        self.pulse = pulse
        self.before: List[Dict[str, float]] = []
        self.profiled: List[Dict[str, float]] = []
        self.after: List[Dict[str, float]] = []

    def as_dict(self) -> Optional[Dict[str, Any]]:
        """For meta.json; None where there were none."""
        if not any(self.before):
            return None
        columns = {
            f"{when}_{name}_us": [round(each[name], 2) for each in taken]
            for when, taken in (("before", self.before), ("profiled", self.profiled), ("after", self.after))
            if taken
            for name in taken[0]
        }
        return {"version": VERSION, "rounds": ROUNDS, **columns}
