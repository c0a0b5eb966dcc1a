"""The training loop: a step, its batches, and its time without a profiler.

What a recorder does around steps is a plan: a generator that yields where one step is to run. `Loop` runs the steps of a
plan by itself; `watch` lets somebody else's loop run them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, FrozenSet, Generator, Iterable, Iterator, List, Optional, TypeVar

from steptime.errors import UsageError

_NOTHING = object()
T = TypeVar("T")
# Yields where one step is to run, and returns what came of it.
Plan = Generator[None, None, T]


class Loop:
    """Runs `step` on one batch of `data` after the other, starting over at the end of `data`.

    Fetching the batch belongs to the step, as in a real loop. With `data=None` the step takes no arguments.
    """

    def __init__(self, step: Callable[..., Any], data: Optional[Iterable[Any]]) -> None:
        if not callable(step):
            raise UsageError(f"step must be callable with one batch, but is {type(step).__name__}")
        if data is not None and not isinstance(data, Iterable) and not hasattr(data, "__getitem__"):
            raise UsageError(f"data must be an iterable of batches or None, but is {type(data).__name__}")
        self._step = step
        self._data = data
        self._batches: Optional[Iterator[Any]] = None
        self.first_batch: Any = None
        self.done = 0

    def run(self) -> None:
        """One step."""
        if self._data is None:
            self._step()
        else:
            batch = self._next_batch()
            if self.done == 0:
                self.first_batch = batch
            self._step(batch)
        self.done += 1

    def follow(self, plan: Plan[T]) -> T:
        """Runs a step wherever the plan asks for one; what a step raises, the plan sees and lets through."""
        try:
            next(plan)
            while True:
                try:
                    self.run()
                except BaseException as error:
                    plan.throw(error)
                    raise
                next(plan)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _next_batch(self) -> Any:
        batch = next(self._batches, _NOTHING) if self._batches is not None else _NOTHING
        if batch is _NOTHING:
            self._batches = iter(self._data)  # type: ignore[arg-type]
            batch = next(self._batches, _NOTHING)
        if batch is _NOTHING:
            raise UsageError(self._out_of_batches())
        return batch

    def _out_of_batches(self) -> str:
        if self.done == 0:
            return "data holds no batch"
        return f"data ran out after {self.done} batches and cannot be started again: pass a list or a DataLoader, not an iterator"


@dataclass(frozen=True)
class Window:
    """Un-profiled steps, one after the other.

    steps_ms: host time between the starts of neighbouring steps, in ms; the last ends when its step returns.
    wall_ms: from the first step's start until the device has finished all of them.
    pulses_ms: of that, what the pulses between steps took.
    after_pulse: which steps came right after a pulse: the device had a moment to catch up.
    """

    steps_ms: List[float]
    wall_ms: float
    after_pulse: FrozenSet[int] = frozenset()
    pulses_ms: float = 0.0

    @property
    def undisturbed_ms(self) -> List[float]:
        """The steps that no pulse came before."""
        return [step for at, step in enumerate(self.steps_ms) if at not in self.after_pulse]

    @property
    def mean_ms(self) -> float:
        """Wall time for each step. Where the host waits for the device at the end, the device has worked through the pulses."""
        behind = max(0.0, self.drain_ms)
        return (self.wall_ms - max(0.0, self.pulses_ms - behind)) / len(self.steps_ms)

    @property
    def drain_ms(self) -> float:
        """How far the host was ahead of the device at the end."""
        return self.wall_ms - self.pulses_ms - sum(self.steps_ms)


def time_window(
    steps: int,
    synchronize: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
    pulse: Callable[[], None] = lambda: None,
    every: int = 0,
) -> Plan[Window]:
    """Times `steps` steps without perturbing them.

    Only the host's clock is read, at the boundaries of steps: no event is recorded and nothing is synchronised inside
    the window, only before it and after it. Where steps hand work to the device faster than it is done, the single
    times are therefore the host's, and only the wall time is the device's: see `compare.ran_ahead`.

    `pulse` is called between two steps after `every` of them (never where that is 0); what it takes is no step's time.
    """
    synchronize()
    times: List[float] = []
    after: List[int] = []
    first = begin = clock()
    away = 0.0
    for at in range(steps):
        if every and at and at % every == 0:
            pulse()
            after.append(at)
            now = clock()
            away += now - begin
            begin = now
        yield
        now = clock()
        times.append(1e3 * (now - begin))
        begin = now
    synchronize()
    return Window(times, 1e3 * (clock() - first), frozenset(after), 1e3 * away)
