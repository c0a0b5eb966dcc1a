"""Handles of compiled kernels, known to ops by their numbers. Tensors are addresses here; the caller keeps them alive.

A plan is made for shapes, types and addresses of tables. The first time, this compiles kernels, which are cached on disk; later it
takes milliseconds. A plan lives as long as a reference to it.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from steptime.operators.library import GpuLookups, GpuSizes, GpuStates, GpuTables, Library, OperatorError

# In the order of the C ABI.
ELEMENTS = ("float32", "float16", "bfloat16", "int8", "int4")
BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "int8": 8, "int4": 4}
OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad", "adam", "partial_rowwise_adam")
COUNTING = ("adam", "partial_rowwise_adam")  # optimizers whose steps depend on the number of earlier steps
DECAYS = ("l2", "decoupled")
MODES = ("sum", "mean", "max")  # by PyTorch's numbers
SCALE_BYTES = 4  # an f16 scale and an f16 bias before the values of an int8 or int4 row


def pitch(element: str, dim: int) -> int:
    """Size in bytes of a row of `dim` columns."""
    bits = BITS[element]
    return dim * bits // 8 if bits >= 16 else SCALE_BYTES + (dim * bits + 7) // 8


def state_pitch(optimizer: str, dim: int) -> int:
    """Number of floats of an optimizer's state for a row of `dim` columns, padded as kernels require."""
    width = {"sgd": 0, "adagrad": dim, "rowwise_adagrad": 1, "adam": 2 * dim, "partial_rowwise_adam": dim + 1}[optimizer]
    if width < 2:
        return width
    if width <= 16:
        return max(4, 1 << (width - 1).bit_length())
    lines = -(-width // 16) * 16
    return lines if (lines - width) * 8 <= width else -(-width // 4) * 4


@dataclass(frozen=True)
class Bags:
    """Tables and the lookups of a batch, for which bags are compiled.

    rows, dims: E and D of each table. bags: B of each table. lookups: approximate N of all tables (an upper limit for a
    backward pass). mode: 0 sum, 1 mean, 2 max.
    """

    rows: Tuple[int, ...]
    dims: Tuple[int, ...]
    bags: int
    lookups: int
    element: str = "float32"
    index_bits: int = 64
    weighted: bool = False
    mode: int = 0

    @property
    def columns(self) -> int:
        return sum(self.dims)

    def tables(self, addresses: Sequence[int]) -> GpuTables:
        """The tables for the C ABI, with contiguous rows."""
        pitches = [pitch(self.element, dim) for dim in self.dims]
        return GpuTables.of(addresses, self.rows, self.dims, pitches, ELEMENTS.index(self.element))

    def sizes(self) -> GpuSizes:
        """The sizes for the C ABI, with contiguous rows of the output."""
        return GpuSizes(self.bags, self.lookups, self.columns, self.index_bits, self.weighted, self.mode)


PLANS: "weakref.WeakValueDictionary[int, Plan]" = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def settle(ordinal: int) -> None:
    """Waits for running kernels before a handle is freed; `ops` replaces this function."""


def _release(free: Callable[[int], None], handle: int, ordinal: int) -> None:
    settle(ordinal)
    free(handle)


class Plan:
    """A handle with the `number` by which ops refer to it."""

    kind = ""

    def __init__(self, library: Library, ordinal: int, handle: int) -> None:
        self.library, self.ordinal, self.handle = library, ordinal, handle
        self.number = next(_numbers)
        PLANS[self.number] = self
        free = getattr(library, f"{self.kind}_free")
        self.close = weakref.finalize(self, _release, free, handle, ordinal)
        self.close.atexit = False  # the driver may be unloaded by then, and frees the memory anyway


def find(number: int, kind: Any) -> Any:
    """The plan with this number. Raises OperatorError if there is none of this kind."""
    plan = PLANS.get(number)
    if type(plan) is not kind:
        what = "there is no plan" if plan is None else f"a plan for {plan.kind} has the number"
        raise OperatorError(f"{what} {number}, where one for {kind.kind} is needed: keep the plan as long as its ops are called")
    return plan


class BagPlan(Plan):
    """Plan of a forward pass over tables at these addresses."""

    kind = "bag"

    def __init__(self, library: Library, ordinal: int, of: Bags, addresses: Sequence[int]) -> None:
        tables, sizes = of.tables(addresses), of.sizes()
        handle = library.new("bag_new", library.gpu(ordinal), ctypes.addressof(tables), ctypes.addressof(sizes))
        super().__init__(library, ordinal, handle)
        self.of, self.columns, self.addresses = of, of.columns, list(addresses)
        self.forward = library.bag_forward

    def check(self, stream: int, lookups: GpuLookups) -> None:
        """Waits, and raises errors of the last forward pass, which must have had these lookups."""
        self.library.call("bag_check", self.handle, stream, ctypes.addressof(lookups))


class BackwardPlan(Plan):
    """Plan of a backward pass with the optimizer's step, over tables at these addresses.

    states: addresses of the states of the tables; None for states owned by the plan. The plan counts the steps.
    longest: largest number of lookups of one table; by default that of all tables. Tables of at most 8192 lookups are grouped by
        one launch.
    """

    kind = "backward"

    def __init__(
        self,
        library: Library,
        ordinal: int,
        of: Bags,
        addresses: Sequence[int],
        optimizer: str,
        lr: float,
        stream: int = 0,
        longest: Optional[int] = None,
        states: Optional[Sequence[int]] = None,
    ) -> None:
        tables, sizes = of.tables(addresses), of.sizes()
        rule, most = OPTIMIZERS.index(optimizer), of.lookups if longest is None else min(longest, of.lookups)
        places = ctypes.addressof(tables), ctypes.addressof(sizes)
        floats = [rows * state_pitch(optimizer, dim) for rows, dim in zip(of.rows, of.dims)]
        given = None if states is None else GpuStates.of(states, floats)
        state = None if given is None else ctypes.addressof(given)
        handle = library.new("backward_new", library.gpu(ordinal), stream, *places, most, rule, lr, state)
        super().__init__(library, ordinal, handle)
        self.of, self.columns, self.addresses, self.optimizer = of, of.columns, list(addresses), optimizer
        self.group, self.step = library.backward_group, library.backward_step

    def set_lr(self, stream: int, lr: float) -> None:
        """Sets the learning rate of the stream's later steps. Does not wait."""
        self.library.call("backward_set_learning_rate", self.handle, stream, lr)

    def set_decay(self, stream: int, decay: float, kind: str) -> None:
        """Sets weight decay, of a kind in `DECAYS`, of the stream's later steps. Does not wait."""
        self.library.call("backward_set_decay", self.handle, stream, decay, DECAYS.index(kind))

    def steps(self, stream: int) -> int:
        """Number of steps so far; 0 if the optimizer does not count them. Waits for the stream."""
        steps = ctypes.c_uint64()
        self.library.call("backward_steps", self.handle, stream, ctypes.addressof(steps))
        return steps.value

    def set_steps(self, stream: int, steps: int) -> None:
        """Sets the number of steps so far. Waits for the stream."""
        self.library.call("backward_set_steps", self.handle, stream, steps)

    def check(self, stream: int, lookups: GpuLookups) -> None:
        """Waits, and raises errors of the last step, which must have had these lookups."""
        self.library.call("backward_check", self.handle, stream, ctypes.addressof(lookups))


class GatherPlan(Plan):
    """Plan of a gather from the f32 table at this address, with 64-bit indices. slice: bytes of a row at a time, 0 for whole rows."""

    kind = "gather"

    def __init__(self, library: Library, ordinal: int, rows: int, dim: int, slice: int, address: int) -> None:
        tables = GpuTables.of([address], [rows], [dim], [4 * dim], 0)
        handle = library.new("gather_new", library.gpu(ordinal), ctypes.addressof(tables), slice)
        super().__init__(library, ordinal, handle)
        self.rows, self.dim, self.slice, self.address = rows, dim, slice, address
        self.run = library.gather

    def check(self, stream: int, lookups: int, indices: int) -> None:
        """Waits, and raises an error if an index of the last gather, which must have had these indices, is out of range."""
        self.library.call("gather_check", self.handle, stream, lookups, indices)


class InteractionPlan(Plan):
    """Plan of a dot interaction of `features` vectors of `dim` floats per sample."""

    kind = "interaction"

    def __init__(self, library: Library, ordinal: int, features: int, dim: int) -> None:
        super().__init__(library, ordinal, library.new("interaction_new", library.gpu(ordinal), features, dim))
        self.features, self.dim = features, dim
        self.columns = dim + features * (features - 1) // 2
        self.forward, self.backward = library.interaction_forward, library.interaction_backward


class Cache:
    """Least-recently-used cache of plans, by key."""

    def __init__(self, most: int = 64) -> None:
        self.most = most
        self.plans: Dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """The plan of this key; made if it is not cached."""
        plan = self.plans.pop(key, None)
        if plan is None:
            plan = make()
            while len(self.plans) >= self.most:
                self.plans.pop(next(iter(self.plans)))
        self.plans[key] = plan
        return plan
