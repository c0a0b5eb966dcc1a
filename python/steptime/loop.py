"""The training loop: a step, its batches, and its time without a profiler.

The work of a recorder around steps is a plan: a generator that yields whenever one step should run. `Loop` runs the steps of a
plan by itself; `watch` lets an existing training loop run them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, FrozenSet, Generator, Iterable, Iterator, List, Optional, TypeVar

from steptime.errors import UsageError

_NOTHING = object()
T = TypeVar("T")
# Yields whenever one step should run, and returns the result.
Plan = Generator[None, None, T]


class Loop:
    """Runs `step` on the batches of `data` in turn, and starts over at the end of `data`.

    Fetching the batch is part of the step, as in a real loop. With `data=None` the step takes no arguments.
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
        """Runs one step."""
        if self._data is None:
            self._step()
        else:
            batch = self._next_batch()
            if self.done == 0:
                self.first_batch = batch
            self._step(batch)
        self.done += 1

    def follow(self, plan: Plan[T]) -> T:
        """Runs a step whenever the plan yields; returns the plan's result. Exceptions of a step are thrown into the plan and raised."""
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
    """Un-profiled consecutive steps.

    steps_ms: host time between the starts of neighbouring steps, in ms; the last ends when its step returns.
    wall_ms: time from the first step's start until the device has finished all steps, in ms.
    pulses_ms: time of the pulses between steps, contained in wall_ms.
    after_pulse: indices of the steps right after a pulse, during which the device could catch up.
    """

    steps_ms: List[float]
    wall_ms: float
    after_pulse: FrozenSet[int] = frozenset()
    pulses_ms: float = 0.0

    @property
    def undisturbed_ms(self) -> List[float]:
        """Times of the steps that do not follow a pulse."""
        return [step for at, step in enumerate(self.steps_ms) if at not in self.after_pulse]

    @property
    def mean_ms(self) -> float:
        """Wall time per step. Where the host waits for the device at the end, the device has worked during the pulses."""
        behind = max(0.0, self.drain_ms)
        return (self.wall_ms - max(0.0, self.pulses_ms - behind)) / len(self.steps_ms)

    @property
    def drain_ms(self) -> float:
        """Time by which the host was ahead of the device at the end, in ms."""
        return self.wall_ms - self.pulses_ms - sum(self.steps_ms)


def time_window(
    steps: int,
    synchronize: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
    pulse: Callable[[], None] = lambda: None,
    every: int = 0,
) -> Plan[Window]:
    """Times `steps` steps without perturbing them.

    Only the host's clock is read, at step boundaries. Inside the window no event is recorded and nothing is synchronised, only
    before and after it. Where steps submit work faster than the device finishes it, the single times are therefore those of the
    host, and only the wall time is that of the device: see `checks.ran_ahead`.

    `pulse` is called after every `every` steps (never if `every` is 0); its time does not count for any step.
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
