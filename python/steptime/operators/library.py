"""The shared library of the operators: its path, functions and structures. Addresses are plain integers here."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

from steptime.errors import Error

NAME = "libsteptime_cuda_c.so"
VARIABLE = "STEPTIME_CUDA_LIBRARY"
REMEDY = f"build it with `cargo build --release -p steptime-cuda-capi`, and say where it is: {VARIABLE}=target/release/{NAME}"

HANDLE, SIZE, ADDRESS, INT, FLOAT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int, ctypes.c_float


class OperatorError(Error, RuntimeError):
    """An operator cannot run with these arguments; the message has the remedy."""


class GpuTables(ctypes.Structure):
    """Tables of one element type, as a structure of the C ABI."""

    _fields_ = [("count", SIZE), ("data", HANDLE), ("rows", HANDLE), ("dims", HANDLE), ("pitches", HANDLE), ("element", INT)]

    @classmethod
    def of(cls, addresses: Sequence[int], rows: Sequence[int], dims: Sequence[int], pitches: Sequence[int], element: int) -> GpuTables:
        """The arrays live as long as the result."""
        arrays = [(SIZE * len(addresses))(*column) for column in (addresses, rows, dims, pitches)]
        tables = cls(len(addresses), *(ctypes.addressof(array) for array in arrays), element)
        tables.arrays = arrays
        return tables


class GpuSizes(ctypes.Structure):
    """Sizes for which bags are compiled, as a structure of the C ABI. `bits` is the width of an index."""

    _fields_ = [("bags", SIZE), ("lookups", SIZE), ("stride", SIZE), ("bits", INT), ("weighted", INT), ("mode", INT)]


class GpuStates(ctypes.Structure):
    """Optimizer state of each table, as a structure of the C ABI."""

    _fields_ = [("data", HANDLE), ("floats", HANDLE)]

    @classmethod
    def of(cls, addresses: Sequence[int], floats: Sequence[int]) -> GpuStates:
        """The arrays live as long as the result."""
        arrays = [(SIZE * len(addresses))(*column) for column in (addresses, floats)]
        states = cls(*(ctypes.addressof(array) for array in arrays))
        states.arrays = arrays
        return states


class GpuLookups(ctypes.Structure):
    """Addresses of lookups, as a structure of the C ABI."""

    _fields_ = [("lookups", SIZE), ("indices", ADDRESS), ("offsets", ADDRESS), ("weights", ADDRESS)]


# Argument types of functions: MAKERS return a handle, CALLS return 0 for success.
MAKERS: Dict[str, List[Any]] = {
    "steptime_gpu_open": [SIZE],
    "steptime_gpu_bag_new": [HANDLE, HANDLE, HANDLE],
    "steptime_gpu_backward_new": [HANDLE, ADDRESS, HANDLE, HANDLE, SIZE, INT, FLOAT, HANDLE],
    "steptime_gpu_gather_new": [HANDLE, HANDLE, ctypes.c_int64],
    "steptime_gpu_interaction_new": [HANDLE, SIZE, SIZE],
}
CALLS: Dict[str, List[Any]] = {
    "steptime_gpu_bag_forward": [HANDLE, ADDRESS, HANDLE, ADDRESS],
    "steptime_gpu_bag_check": [HANDLE, ADDRESS, HANDLE],
    "steptime_gpu_backward_group": [HANDLE, ADDRESS, HANDLE],
    "steptime_gpu_backward_step": [HANDLE, ADDRESS, HANDLE, ADDRESS],
    "steptime_gpu_backward_check": [HANDLE, ADDRESS, HANDLE],
    "steptime_gpu_backward_set_learning_rate": [HANDLE, ADDRESS, FLOAT],
    "steptime_gpu_backward_set_decay": [HANDLE, ADDRESS, FLOAT, INT],
    "steptime_gpu_backward_steps": [HANDLE, ADDRESS, HANDLE],
    "steptime_gpu_backward_set_steps": [HANDLE, ADDRESS, ADDRESS],
    "steptime_gpu_gather": [HANDLE, ADDRESS, SIZE, ADDRESS, ADDRESS],
    "steptime_gpu_gather_check": [HANDLE, ADDRESS, SIZE, ADDRESS],
    "steptime_gpu_gather_slice": [HANDLE, ADDRESS, ADDRESS, ADDRESS, ctypes.c_double, HANDLE],
    "steptime_gpu_interaction_forward": [HANDLE, ADDRESS, SIZE, ADDRESS, ADDRESS],
    "steptime_gpu_interaction_backward": [HANDLE, ADDRESS, SIZE, ADDRESS, ADDRESS, ADDRESS],
}
FREES = ["steptime_gpu_bag_free", "steptime_gpu_backward_free", "steptime_gpu_gather_free", "steptime_gpu_interaction_free"]


def whole(path: Path) -> None:
    """Raises OSError if the file ends before its section headers, which come last: loading it would crash the process."""
    with open(path, "rb") as file:
        head, size = file.read(64), os.fstat(file.fileno()).st_size
    if len(head) < 64 or head[:4] != b"\x7fELF":
        raise OSError("not a shared library")
    start, entry, count = int.from_bytes(head[40:48], "little"), int.from_bytes(head[58:60], "little"), int.from_bytes(head[60:62], "little")
    if start + entry * count > size:
        raise OSError("it is truncated")


class Library:
    """The loaded library; failures are raised as exceptions."""

    def __init__(self, path: Union[str, Path]) -> None:
        self.path = Path(path)
        try:
            whole(self.path)
            self._lib = ctypes.CDLL(str(path))
            self._declare()
        except (OSError, AttributeError) as error:
            raise OperatorError(f"{path} is not the library of these operators ({error}): {REMEDY}") from error
        self._gpus: Dict[int, int] = {}

    def _declare(self) -> None:
        for names, result in ((MAKERS, HANDLE), (CALLS, INT), (dict.fromkeys(FREES, [HANDLE]), None)):
            for name, types in names.items():
                function = getattr(self._lib, name)
                function.restype, function.argtypes = result, types
                setattr(self, name.removeprefix("steptime_gpu_"), function)
        self._error = self._lib.steptime_error
        self._error.restype = ctypes.c_char_p

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError for names that are not functions of the library; `_declare` sets those."""
        raise AttributeError(f"{self.path} has no function {name}")

    def failure(self) -> OperatorError:
        """The error of this thread's last call, as an exception."""
        return OperatorError(self._error().decode(errors="replace"))

    def new(self, name: str, *arguments: Any) -> int:
        """Calls a maker, named without `steptime_gpu_`, and returns its handle. Raises OperatorError on failure."""
        handle: int = getattr(self, name)(*arguments)
        if not handle:
            raise self.failure()
        return handle

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function, named without `steptime_gpu_`. Raises OperatorError on failure."""
        if getattr(self, name)(*arguments):
            raise self.failure()

    def gpu(self, ordinal: int) -> int:
        """Handle of a GPU by its index; each GPU is opened once."""
        if ordinal not in self._gpus:
            self._gpus[ordinal] = self.new("open", ordinal)
        return self._gpus[ordinal]

    def choose_slice(self, ordinal: int, rows: int, dim: int, lookups: int, zipf: float = 0.0) -> int:
        """Slice size in bytes for which a gather is expected to be fastest; 0 for whole rows."""
        out = ctypes.c_int64()
        self.call("gather_slice", self.gpu(ordinal), rows, dim, lookups, zipf, ctypes.addressof(out))
        return out.value


_loaded: Optional[Library] = None


def find(path: Union[str, Path, None] = None) -> Optional[Path]:
    """Path of the library: `path`, else the environment variable, else next to this package or in its native half;
    None if not found."""
    here = Path(__file__).resolve().parent
    told = path or os.environ.get(VARIABLE)
    places = [Path(told)] if told else [here / NAME, here.parent / NAME, *sorted(here.parent.glob("_core*.so"))]
    return next((place for place in places if place.is_file()), None)


def available() -> bool:
    """Whether the library is loaded or can be found."""
    return _loaded is not None or find() is not None


def load(path: Union[str, Path, None] = None) -> Library:
    """Loads the library once per process, from `path`, else from `STEPTIME_CUDA_LIBRARY`, else from next to this package or its
    native half.

    Raises OperatorError if it is not found, cannot be loaded, or another one was loaded before.
    """
    global _loaded
    if _loaded is None:
        found = find(path)
        if found is None:
            where = f"not at {path or os.environ[VARIABLE]}" if path or os.environ.get(VARIABLE) else "not beside this package"
            raise OperatorError(f"the library {NAME} is {where}: {REMEDY}")
        _loaded = Library(found)
    elif path is not None and Path(path).resolve() != _loaded.path.resolve():
        raise OperatorError(f"{_loaded.path} is loaded already, and {path} cannot be: load one of them in a process")
    return _loaded
