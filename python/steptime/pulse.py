"""A pulse: a fixed piece of host work, timed between steps, that tells how fast the host is at that moment.

A core has two speeds, up to 1.7 apart: its own, and that beside a busy sibling. Steps follow it. So the same small work is
timed before, between and after the steps of a window, on the thread that runs the loop and on that of the backward pass, in
un-profiled windows and around profiled steps alike. Its durations are kept, and nothing from which a step's time could be told.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional

from steptime.stats import median

VERSION = 1
# Rounds of the loop: some 30 us of pure Python.
ROUNDS = 600
# Tiny ops of a pulse.
OPS = 20
# Times each part is repeated in one pulse; its median counts.
REPEATS = 3
# Between two pulses of a window lie this many steps. A step right after a pulse does not count for the step's time.
EVERY = 10


def work(rounds: int = ROUNDS) -> int:
    """The loop."""
    total = 0
    for each in range(rounds):
        total += each & 7
    return total


def timed(piece: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long `piece` takes, in us: the median of a few times."""
    times = []
    for _ in range(REPEATS):
        begin = clock()
        piece()
        times.append(1e6 * (clock() - begin))
    return median(times)


class Pulse:
    """Takes pulses with PyTorch: on a GPU's autograd thread as well, where there is one."""

    def __init__(self, torch: Any, on_gpu: bool) -> None:
        self._torch = torch
        self._one = torch.ones(1)
        self._backward = _on_autograd_thread(torch) if on_gpu else None

    def take(self) -> Dict[str, float]:
        """One pulse, in us: `loop` and `ops` on this thread, `backward_loop` on that of the backward pass.

        `first_loop` is the loop as it is right after other work, as between profiled steps.
        """
        taken = {"first_loop": self.loop(), "loop": timed(work), "ops": timed(self._ops)}
        if self._backward is not None:
            taken["backward_loop"] = self._backward()
        return taken

    def loop(self) -> float:
        """The loop alone, once, in us: short enough to be taken between profiled steps, where an op would be recorded."""
        begin = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - begin)

    def _ops(self) -> None:
        one, add = self._one, self._torch.add
        for _ in range(OPS):
            add(one, one, out=one)


def _on_autograd_thread(torch: Any) -> Callable[[], float]:
    """Runs the loop on the thread of the GPU's backward pass: in the backward of an identity. Launches no kernel."""
    found: List[float] = []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, given: Any) -> Any:
            return given.view_as(given)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            found.append(timed(work))
            return gradient

    source = torch.ones(1, device="cuda", requires_grad=True)
    gradient = torch.ones(1, device="cuda")

    def run() -> float:
        torch.autograd.grad(Identity.apply(source), source, gradient)
        return found.pop()

    run()
    return run


class NoPulse:
    """For a recording without one."""

    def take(self) -> Dict[str, float]:
        """Nothing."""
        return {}

    def loop(self) -> Optional[float]:
        """Nothing."""
        return None


class Pulses:
    """The pulses of a recording, by what ran around them."""

    def __init__(self, pulse: Any) -> None:
        self.pulse = pulse
        self.before: List[Dict[str, float]] = []
        self.profiled: List[Dict[str, float]] = []
        self.profiled_loop: List[float] = []
        self.after: List[Dict[str, float]] = []

    def as_dict(self) -> Optional[Dict[str, Any]]:
        """For meta.json; None where there were none."""
        if not any(self.before):
            return None
        columns = {
            f"{when}_{name}_us": [round(each[name], 3) for each in taken]
            for when, taken in (("before", self.before), ("profiled", self.profiled), ("after", self.after))
            if taken
            for name in taken[0]
        }
        return {
            "version": VERSION,
            "rounds": ROUNDS,
            "ops": OPS,
            **columns,
            "between_profiled_loop_us": [round(each, 3) for each in self.profiled_loop],
        }
