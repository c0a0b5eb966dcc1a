"""The description of a checkpoint, `checkpoint.toml`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

from steptime.errors import InputError, NotFound
from steptime.models.description import toml
from steptime.models.digest import SHORTEST, digest

FILE = "checkpoint.toml"
# The latest version of the format that is read.
VERSION = 1
# Begin of the last line, before the hash of the lines above.
HASH = "# hash of the lines above: "
# Bytes of an element.
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1}
EARLIER = "the checkpoint is damaged, use an earlier one"


@dataclass(frozen=True)
class Shard:
    """A safetensors file: its name, length and hash."""

    file: str
    bytes: int
    hash: str


@dataclass(frozen=True)
class Entry:
    """A tensor: type, shape, and its pieces, each with the index of its shard and its number of rows."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    pieces: Tuple[Tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return math.prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True)
class Manifest:
    """All of the description: state of the run, the model's text, shards and tensors."""

    step: int
    epoch: int
    text: str
    shards: Tuple[Shard, ...]
    tensors: Tuple[Entry, ...]


def newest(folder: Path) -> Path:
    """The folder itself, or the last checkpoint of a run's folder. Raises NotFound where there is none."""
    if (folder / FILE).is_file():
        return folder
    if not folder.is_dir():
        raise NotFound(f"{folder} does not exist: give the folder of a checkpoint, or that of a run's -o")
    found = sorted(each for each in folder.iterdir() if re.fullmatch(r"step-\d+", each.name))
    if not found:
        raise NotFound(f"{folder} has no checkpoint: give the folder of one, or that of a run's -o")
    return found[-1]


def read(folder: Path) -> Manifest:
    """Reads and checks the description of a checkpoint. Raises NotFound without one, and InputError where it is damaged."""
    path = folder / FILE
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist: it is no checkpoint, or not a whole one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}: {EARLIER}") from None
    lines, found, last = text.rpartition(HASH)
    if not found or len(lines.encode()) < SHORTEST:
        raise InputError(f"{path}: the hash in its last line is missing: {EARLIER}")
    if digest(lines.encode()) != last.strip():
        raise InputError(f"{path}: its lines do not have the hash in the last one: {EARLIER}")
    values = toml(lines, str(path))
    version = values.get("version")
    if version != VERSION:
        raise InputError(f"{path} has version {version}, and {VERSION} is read: use a newer version of steptime")
    try:
        return _manifest(values)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: {error!r}: {EARLIER}") from None


def _manifest(values: Dict[str, Any]) -> Manifest:
    shards = [Shard(each["file"], each["bytes"], each["hash"]) for each in values.get("shards", [])]
    tensors: List[Entry] = []
    for each in values.get("tensors", []):
        pieces = tuple((piece["shard"], piece["rows"]) for piece in each["pieces"])
        tensors.append(Entry(each["name"], each["dtype"], tuple(each["shape"]), pieces))
    state = values["state"]
    return Manifest(state["step"], state["epoch"], values["model"]["text"], tuple(shards), tuple(tensors))
