"""Tensors of a checkpoint of `steptime-train`."""

from __future__ import annotations

import json
import math
import mmap
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple, Union

import torch
from torch import Tensor

from steptime.errors import InputError
from steptime.models import manifest
from steptime.models.digest import SHORTEST, digest
from steptime.models.manifest import EARLIER, Entry, Shard

_DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8}


class Checkpoint:
    """A checkpoint, whose files are compared with their hashes when it is opened.

    `step` and `epoch` are those of the run, `text` is its `model.toml`, `tensors` has the tensors by name.
    """

    def __init__(self, folder: Union[str, Path]) -> None:
        """Opens a checkpoint, or the last one of a run. Raises NotFound without one, and InputError where one is damaged."""
        self.folder = manifest.newest(Path(folder))
        found = manifest.read(self.folder)
        self.step, self.epoch, self.text = found.step, found.epoch, found.text
        self.tensors: Dict[str, Entry] = {entry.name: entry for entry in found.tensors}
        self._shards = [_Opened(self.folder, shard) for shard in found.shards]

    @property
    def bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(entry.bytes for entry in self.tensors.values())

    def pieces(self, name: str) -> Iterator[Tuple[int, Tensor]]:
        """Parts of a tensor in order, each with its first row. Raises KeyError for an unknown name, InputError for a damaged shard."""
        entry = self.tensors[name]
        rows, first = (entry.shape or (1,))[0], 0
        for shard, count in entry.pieces:
            own = name if count == rows else f"{name}[{first}..{first + count}]"
            if not 0 <= shard < len(self._shards):
                raise InputError(f"{self.folder / manifest.FILE}: tensor {name}: its shard does not exist: {EARLIER}")
            yield first, self._shards[shard].tensor(own, entry, (count, *entry.shape[1:]) if entry.shape else ())
            first += count
        if first != rows:
            raise InputError(f"{self.folder / manifest.FILE}: tensor {name}: its pieces are not all of its rows: {EARLIER}")


class _Opened:
    """A mapped shard and its header."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        if Path(shard.file).name != shard.file:
            raise InputError(f"{folder / manifest.FILE}: the shard {shard.file!r} is not a file's name: {EARLIER}")
        self.path = folder / shard.file
        try:
            with self.path.open("rb") as file:
                length = file.seek(0, 2)
                if length != shard.bytes or length < SHORTEST:
                    raise self.damaged(f"it has {length} bytes, not {shard.bytes}")
                # Private pages, since PyTorch takes only memory that can be written.
                self.data = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
        except FileNotFoundError:
            raise self.damaged("it is missing") from None
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error}") from None
        if digest(self.data) != shard.hash:
            raise self.damaged("it does not have its hash")
        self.begin = 8 + int.from_bytes(self.data[:8], "little")
        try:
            self.header: Dict[str, Any] = json.loads(self.data[8 : self.begin])
        except ValueError as error:
            raise self.damaged(f"its header: {error}") from None

    def damaged(self, reason: str) -> InputError:
        return InputError(f"shard {self.path}: {reason}: {EARLIER}")

    def tensor(self, name: str, entry: Entry, shape: Tuple[int, ...]) -> Tensor:
        """A part of a tensor, over the mapped file."""
        found = self.header.get(name)
        if found is None:
            raise self.damaged(f"{name} is missing")
        stored: List[int] = found["shape"]
        if found["dtype"] != entry.dtype.upper() or tuple(stored) != shape:
            raise self.damaged(f"{name} has another type or shape")
        count, begin = math.prod(shape), self.begin + found["data_offsets"][0]
        if count == 0:
            return torch.empty(shape, dtype=_DTYPES[entry.dtype])
        if begin + count * manifest.BYTES[entry.dtype] > len(self.data):
            raise self.damaged(f"{name} is outside of the file")
        return torch.frombuffer(self.data, dtype=_DTYPES[entry.dtype], count=count, offset=begin).view(shape)
