"""Results of the forward pass that a script keeps: `logits = model(x)` is in memory until the function returns, though no op takes it again.

An execution trace shows the last op that takes a tensor, and not when its memory is freed. A mode of dispatch sees each op with its
results. It is entered for one step that is neither timed nor watched, and holds no tensor: a weak reference says whether a storage is there.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from steptime.dispatch import Dispatch, tensors

VERSION = 1
# Results of fewer bytes are left out.
LEAST = 1 << 20
# So few results that may be left are looked at after each op of the backward pass, more of them after some ops alone.
FEW, OPS = 64, 64
# What tensors raise that have no storage, or hide it.
WITHOUT_STORAGE = (NotImplementedError, RuntimeError, AttributeError, TypeError)
# A result: the op and the shape of what it gives.
Result = Tuple[str, Tuple[int, ...]]


class Lifetimes:
    """Notes, while it is entered, which results of the forward pass outlive the backward pass."""

    def __init__(self, torch: Any, least: int = LEAST) -> None:
        self._torch = torch
        self._least = least
        self._dispatch: Optional[Dispatch] = None
        self._seen = _Seen(torch, least)
        self._outlives: List[List[str]] = []

    def __enter__(self) -> "Lifetimes":
        self._outlives = []
        # What it asks of PyTorch came with 2.0.
        if hasattr(self._torch._C, "_current_graph_task_id"):
            self._seen = _Seen(self._torch, self._least)
            self._dispatch = Dispatch(self._seen.take, self._seen.give)
            self._dispatch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        dispatch, self._dispatch = self._dispatch, None
        if dispatch is not None:
            dispatch.__exit__(*error)
            self._outlives = self._seen.outlives()
            self._seen = _Seen(self._torch, self._least)

    def as_dict(self) -> Dict[str, Any]:
        """The part of meta.json that tells of lifetimes: `[op, shape, "number/count", until]` of each result.

        `number/count`: which of how many ops of this name that give this shape. `until`: `step`, its end; or `next`, until the next step has its own.
        """
        return {"outlives": {"version": VERSION, "results": self._outlives}} if self._outlives else {}


class _Storage:
    """A storage: one that the forward pass made has the result that it was made for."""

    def __init__(self, reference: Any, result: Optional[Result] = None, number: int = 0) -> None:
        self.reference, self.result, self.number = reference, result, number
        self.outlives = False  # a backward pass
        self.is_saved = False  # for the backward pass, which takes it


class _Seen:
    """What ops gave so far."""

    def __init__(self, torch: Any, least: int) -> None:
        self._torch = torch
        self._least = least
        self._counts: Dict[Result, int] = {}
        self._storages: Dict[int, _Storage] = {}
        # Results that no op of the backward pass took, and that were there when they were looked at last.
        self._left: List[_Storage] = []
        self._ops = 0
        self._backward = self._was_backward = False

    def take(self, _name: str, taken: Any) -> None:
        """Storages that an op takes are older than it."""
        for _, storage in self._large(taken):
            self._note(storage, None)
            self._storages[storage._cdata].is_saved |= self._is_backward()

    def give(self, name: str, given: Any) -> None:
        """Storages that an op gives, unless they are older."""
        backward = self._is_backward()
        if self._was_backward and not backward:
            for each in self._storages.values():
                each.outlives |= not each.reference.expired()
        elif backward:  # there may be no op after it
            self._ops += 1
            if len(self._left) <= FEW or self._ops % OPS == 0:
                self._left = [each for each in self._left if not each.is_saved and not each.reference.expired()]
        self._was_backward, self._backward = backward, self._backward or backward
        shapes = set()
        for shape, storage in self._large(given):
            result = (name, shape)
            if result not in shapes:
                shapes.add(result)
                self._counts[result] = self._counts.get(result, 0) + 1
            self._note(storage, None if self._backward else result)

    def outlives(self) -> List[List[str]]:
        found = []
        for each in self._left if self._was_backward else ():
            each.outlives = True
        for each in self._storages.values():
            if each.outlives and each.result is not None:
                name, shape = each.result
                until = "step" if each.reference.expired() else "next"
                found.append([name, "x".join(map(str, shape)), f"{each.number}/{self._counts[each.result]}", until])
        return found

    def _large(self, given: Any) -> Iterator[Tuple[Tuple[int, ...], Any]]:
        for tensor in tensors(self._torch, given):
            try:
                storage = tensor.untyped_storage()
                if storage.nbytes() < self._least:
                    continue
            except WITHOUT_STORAGE:
                continue
            yield tuple(tensor.shape), storage

    def _note(self, storage: Any, result: Optional[Result]) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        known = self._storages.get(storage._cdata)
        if known is None or known.reference.expired():
            reference = StorageWeakRef(storage)
            number = self._counts[result] - 1 if result is not None else 0
            made = self._storages[storage._cdata] = _Storage(reference, result, number)
            if result is not None:
                self._left.append(made)

    def _is_backward(self) -> bool:
        return bool(self._torch._C._current_graph_task_id() != -1)
