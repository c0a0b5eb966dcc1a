"""Lookup counts of a step: for every lookup op, how often rows occur, without their indices.

A dispatch mode sees ops with their tensors. It is active for one step that is neither timed nor profiled, so that the counting ops
are in no trace.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from steptime.counts import Counts, count
from steptime.dispatch import Dispatch

VERSION = 1
# Steps with more lookup ops than this are recorded without lookup counts.
MOST = 20_000

# Lookup ops: position of the index argument, and of the argument with the padding row.
ROWS: Dict[str, Tuple[int, Optional[int]]] = {
    "aten::embedding": (1, 2), "aten::_embedding_bag": (1, 8), "aten::_embedding_bag_forward_only": (1, 8),
    "aten::embedding_dense_backward": (1, 3), "aten::_embedding_bag_dense_backward": (1, 9), "aten::index_select": (2, None),
    "aten::gather": (2, None), "aten::index": (1, None), "aten::index_put": (1, None), "aten::index_put_": (1, None),
    "aten::_index_put_impl_": (1, None), "aten::index_add": (2, None), "aten::index_add_": (2, None), "aten::scatter_add": (2, None),
    "aten::scatter_add_": (2, None), "aten::index_copy_": (2, None), "aten::_coalesce": (0, None), "aten::_unique2": (0, None),
    "aten::bincount": (0, None),
}  # fmt: skip


class Lookups:
    """Context that counts the lookups of a step; counts nothing in a process that has called torch.compile."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._noted: List[Tuple[str, str]] = []
        self._dispatch = Dispatch(self._note)

    def __enter__(self) -> "Lookups":
        self._noted = []
        self._dispatch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._dispatch.__exit__(*error)

    def as_dict(self) -> Dict[str, Any]:
        """The fields of meta.json on lookups: `[op, counts]` of each lookup op, in order; counts are empty where they are not known."""
        told = any(counts for _, counts in self._noted) and len(self._noted) <= MOST
        return {"lookups": {"version": VERSION, "ops": [list(each) for each in self._noted]}} if told else {}

    def _note(self, name: str, taken: Any) -> None:
        if name in ROWS and len(self._noted) <= MOST:
            at, padding = ROWS[name]
            with self._torch.no_grad():
                counts = self._counts(name, taken[0], at, padding)
            self._noted.append((name, str(counts) if counts is not None else ""))

    def _counts(self, name: str, arguments: Tuple[Any, ...], at: int, padding: Optional[int]) -> Optional[Counts]:
        try:
            index = _rows(self._torch, arguments[at]) if len(arguments) > at else None
            if index is None or not _has_values(self._torch, index):
                return None
            row = arguments[padding] if padding is not None and len(arguments) > padding else None
            return count(self._torch, index, row if isinstance(row, int) else None)
        except (RuntimeError, TypeError, NotImplementedError):  # the counts are unknown
            return None


def _rows(torch: Any, index: Any) -> Any:
    """The index tensor with one index per row; None where each element has an index, or several index tensors are combined."""
    if isinstance(index, (list, tuple)):
        given = [each for each in index if each is not None]
        index = given[0] if len(given) == 1 else None
    if index is None or not isinstance(index, torch.Tensor):
        return None
    if index.layout is torch.sparse_coo:
        parts, total = index._indices(), 0
        for part, size in zip(parts, index.shape):
            total = total * size + part
        return total
    if index.dtype not in (torch.int64, torch.int32) or index.layout is not torch.strided:
        return None
    # Dimensions that only expand an index over the elements of a row are dropped.
    while index.dim() > 1 and index.stride(-1) == 0:
        index = index.select(-1, 0)
    return index


def _has_values(torch: Any, index: Any) -> bool:
    if index.device.type == "meta" or type(index).__name__ == "FakeTensor":
        return False
    return index.device.type != "cuda" or not torch.cuda.is_current_stream_capturing()
