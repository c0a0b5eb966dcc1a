"""Results of the forward pass that a script keeps alive: `logits = model(x)` stays in memory until the function returns.

An execution trace shows the last op that uses a tensor, but not when its memory is freed. A dispatch mode sees each op with its
results. It is active for one step that is neither timed nor profiled, and keeps no tensor alive: weak references show whether a
storage still exists.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from steptime.dispatch import Dispatch, tensors

VERSION = 1
# Size in bytes below which results are left out.
LEAST = 1 << 20
# Up to FEW candidate results are checked after each op of the backward pass; more of them only after every OPS ops.
FEW, OPS = 64, 64
# Exceptions of tensors that have no storage, or hide it.
WITHOUT_STORAGE = (NotImplementedError, RuntimeError, AttributeError, TypeError)
# Key of a result: the op's name and the shape of the result.
Result = Tuple[str, Tuple[int, ...]]


class Lifetimes:
    """Context that notes which results of the forward pass outlive the backward pass."""

    def __init__(self, torch: Any, least: int = LEAST) -> None:
        self._torch = torch
        self._least = least
        self._dispatch: Optional[Dispatch] = None
        self._seen = _Seen(torch, least)
        self._outlives: List[List[str]] = []

    def __enter__(self) -> "Lifetimes":
        self._outlives = []
        # PyTorch has this function since 2.0.
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
        """The fields of meta.json on lifetimes: `[op, shape, "number/count", until]` of each result.

        `number/count`: index of the op among all ops of this name and result shape, and their number. `until`: `step` for the end of the
        step; `next` where the result lives until the next step replaces it.
        """
        return {"outlives": {"version": VERSION, "results": self._outlives}} if self._outlives else {}


class _Storage:
    """A storage; one made in the forward pass has the result that it was made for."""

    def __init__(self, reference: Any, result: Optional[Result] = None, number: int = 0) -> None:
        self.reference, self.result, self.number = reference, result, number
        self.outlives = False  # whether it outlives a backward pass
        self.is_saved = False  # whether an op of the backward pass uses it


class _Seen:
    """Storages and results of the ops seen so far."""

    def __init__(self, torch: Any, least: int) -> None:
        self._torch = torch
        self._least = least
        self._counts: Dict[Result, int] = {}
        self._storages: Dict[int, _Storage] = {}
        # Results that no op of the backward pass used, and that existed at the last check.
        self._left: List[_Storage] = []
        self._ops = 0
        self._backward = self._was_backward = False

    def take(self, _name: str, taken: Any) -> None:
        """Notes the storages of an op's arguments, which are older than the op."""
        for _, storage in self._large(taken):
            self._note(storage, None)
            self._storages[storage._cdata].is_saved |= self._is_backward()

    def give(self, name: str, given: Any) -> None:
        """Notes the storages of an op's results, unless they are older than the op."""
        backward = self._is_backward()
        if self._was_backward and not backward:
            for each in self._storages.values():
                each.outlives |= not each.reference.expired()
        elif backward:  # no op may follow the backward pass
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
