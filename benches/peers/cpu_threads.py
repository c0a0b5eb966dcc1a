"""Numbers of threads for measurements, and the owners of the threads."""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Read when NumPy is loaded: makes its threads sleep immediately. By default they spin for 0.1 s after each product, which slows
# down the next peer.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "14")

import threadpoolctl  # noqa: E402
import torch  # noqa: E402

# A pool for the C ABI: PyTorch's own threads, which belong to the OpenMP library that it has loaded.
POOL = """
#include <stddef.h>
void run(void *pool, size_t count, void (*work)(void *, size_t), void *context) {
    #pragma omp parallel for num_threads(count) schedule(static, 1)
    for (size_t member = 0; member < count; ++member) work(context, member);
}
"""


def load_pool():
    """The function of the pool, or None with a message."""
    folder = Path(tempfile.mkdtemp())
    (folder / "pool.c").write_text(POOL)
    command = [os.environ.get("CC", "cc"), "-O2", "-fopenmp", "-shared", "-fPIC", "-o", folder / "pool.so", folder / "pool.c"]
    try:
        subprocess.run(command, check=True, capture_output=True)
        pool = ctypes.CDLL(str(folder / "pool.so"))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"ours on PyTorch's threads skipped: {error}", file=sys.stderr)
        return None
    openmp = [info["filepath"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "openmp"]
    if len(openmp) != 1:
        print(f"ours on PyTorch's threads skipped: the pool has an OpenMP of its own, of {openmp}", file=sys.stderr)
        return None
    return pool.run


class Ours:
    """The shared library, with errors as exceptions, on the number of threads that was set last.

    cpu: runs on our own threads. shared: runs on PyTorch's, or None. Callers read them at each call.
    """

    def __init__(self, path: Path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.steptime_error.restype = ctypes.c_char_p
        self.lib.steptime_cpu_new.restype = self.lib.steptime_cpu_on.restype = ctypes.c_void_p
        self.lib.steptime_cpu_new.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
        self.lib.steptime_cpu_on.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
        self.pool = load_pool()
        self.known = {}
        self.cpu = self.own = self.shared = None

    def set_threads(self, threads: int) -> None:
        """Sets the number of threads of `cpu` and `shared`."""
        if threads not in self.known:
            own, shared = self.made(self.lib.steptime_cpu_new(threads, None)), None
            if self.pool and threads > 1:
                shared = self.made(self.lib.steptime_cpu_on(threads, ctypes.cast(self.pool, ctypes.c_void_p), None, None))
            self.known[threads] = own, shared
        self.own, self.shared = self.known[threads]
        self.cpu = self.own

    def on_shared(self, work):
        """A function that runs the work on PyTorch's threads."""

        def shared():
            self.cpu = self.shared
            try:
                return work()
            finally:
                self.cpu = self.own

        return shared

    def made(self, handle):
        """Returns the handle, or raises an error if it is null."""
        if not handle:
            raise RuntimeError(self.lib.steptime_error().decode())
        return ctypes.c_void_p(handle)

    def check(self, code: int) -> None:
        """Raises the error of a failed call."""
        if code:
            raise RuntimeError(self.lib.steptime_error().decode())


def set_threads(ours, threads: int) -> None:
    """Sets the number of threads of all libraries."""
    torch.set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads)
    if ours:
        ours.set_threads(threads)
