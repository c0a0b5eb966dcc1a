"""A pulse: a fixed piece of host work, timed between steps, that measures the speed of the host at that moment.

A core has two speeds, up to a factor of 1.8 apart: alone, and while its sibling hardware thread is busy. Each core switches between
them within a tenth of a second, and step times follow. The same small work is therefore timed right after steps, on the thread that
runs the loop and on that of the backward pass, in un-profiled windows and between profiled steps. Only durations of that work are
kept; step times cannot be derived from them.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional

VERSION = 2
# Rounds of the loop: about 30 us of pure Python.
ROUNDS = 600
# Time between two pulses of an un-profiled window, in seconds, and minimum number of steps between them: a step right after a
# pulse does not count for the step time.
APART_SECONDS, APART_STEPS = 0.01, 2


def apart(step_seconds: float, steps: int) -> int:
    """Number of steps from one pulse to the next, in a window of `steps` steps of `step_seconds` each: every window has a pulse."""
    return max(APART_STEPS, min(round(APART_SECONDS / max(step_seconds, 1e-9)), steps // 2))


def work(rounds: int = ROUNDS) -> int:
    """The loop that a pulse times."""
    total = 0
    for each in range(rounds):
        total += each & 7
    return total


def timed(clock: Callable[[], float] = time.perf_counter) -> float:
    """Duration of one run of the loop, in us."""
    begin = clock()
    work()
    return 1e6 * (clock() - begin)


class Pulse:
    """Measures pulses on this thread and, with a GPU, on its autograd thread. Profilers do not record them."""

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
        """Duration of the loop on this thread, in us."""
        return timed()


def _on_autograd_thread(torch: Any) -> Callable[[], float]:
    """A function that times the loop on the thread of the GPU's backward pass, in the backward of an identity. Launches no kernel."""
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
    """Context in which ops are not recorded, on any thread; a PyTorch without this setting records them."""
    enable = getattr(getattr(torch._C, "_autograd", None), "_enable_record_function", lambda _: None)
    enable(False)
    try:
        yield
    finally:
        enable(True)


class NoPulse:
    """The pulse of a recording without pulses."""

    def take(self) -> Dict[str, float]:
        """Nothing."""
        return {}


class Pulses:
    """The pulses of a recording: before, between and after the profiled steps."""

    def __init__(self, pulse: Any) -> None:
        self.pulse = pulse
        self.before: List[Dict[str, float]] = []
        self.profiled: List[Dict[str, float]] = []
        self.after: List[Dict[str, float]] = []

    def as_dict(self) -> Optional[Dict[str, Any]]:
        """The value of `pulses` in meta.json; None without pulses."""
        if not any(self.before):
            return None
        columns = {
            f"{when}_{name}_us": [round(each[name], 2) for each in taken]
            for when, taken in (("before", self.before), ("profiled", self.profiled), ("after", self.after))
            if taken
            for name in taken[0]
        }
        return {"version": VERSION, "rounds": ROUNDS, **columns}
