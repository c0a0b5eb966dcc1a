#!/usr/bin/env python3
"""Installs PyTorch for a machine without a GPU, from PyPI's wheel: `python3 .ci/cpu_torch.py FOLDER`.

PyTorch's wheel on PyPI needs two gigabytes of CUDA libraries to load, although on a CPU none of their functions is
called. This script installs PyTorch and its Python dependencies, and in place of each missing library a stub of the
same name, whose functions all return "no device" (error 100 of CUDA). It needs a C compiler.
Prints the folder to put on LD_LIBRARY_PATH.
"""

import re
import subprocess
import sys
from pathlib import Path

TORCH = "torch==2.11.0"
# Python dependencies of PyTorch and of the tests.
BESIDE = ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "numpy", "pyarrow", "pytest", "mypy"]
# Readers of tables, trainers, and runners of notebooks.
BESIDE += ["pandas", "polars", "duckdb", "matplotlib", "nbclient", "ipykernel", "transformers", "psutil", "pyyaml", "tqdm", "packaging"]
# More of them, whose own dependencies would install CUDA's libraries.
ALONE = ["lightning", "lightning-utilities", "torchmetrics", "accelerate"]
# Libraries of the system, and libraries that are only opened with a GPU.
THERE = re.compile(r"lib(c|m|dl|rt|gcc_s|stdc\+\+|pthread|gomp|cuda|nvrtc|cusolver)\.so|ld-linux")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def install(folder):
    python = folder / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", str(folder))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", TORCH)
    run(*pip, *BESIDE)
    run(*pip, "--no-deps", *ALONE)
    return Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


def wanted(library):
    """Libraries that a library needs, and functions that it imports: name and version."""
    needs = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(library)))
    taken = re.findall(r"UND (\S+)@(\S+)", run("readelf", "--dyn-syms", "-W", str(library)))
    bare = re.findall(r"UND ([A-Za-z]\w+)$", run("readelf", "--dyn-syms", "-W", str(library)), re.MULTILINE)
    return needs, taken, bare


def answer(name):
    """C code of a stub for a function of CUDA, as on a machine without a device."""
    if "String" in name or "GetErrorName" in name:
        return f'const char* {name}(void) {{ return "no CUDA on this machine"; }}\n'
    return f"long {name}(void) {{ return 100; }}\n"


def stand_ins(libraries, place):
    """Makes stubs of the missing libraries; functions without a version go into the first one."""
    place.mkdir(exist_ok=True)
    here = {library.name for library in libraries}
    missing, bare, versions = [], set(), {}
    for needs, taken, free in map(wanted, libraries):
        missing += [name for name in needs if name not in here and name not in missing and not THERE.match(name)]
        bare |= {name for name in free if re.match(r"(nccl|cu|nv)", name)}
        for name, version in taken:
            versions.setdefault(version, set()).add(name)
    for at, library in enumerate(missing):
        version = {"libnvshmem_host.so.3": "NVSHMEM"}.get(library, library)
        names = versions.get(version, set()) | (bare if at == 0 else set())
        source, script = place / f"{library}.c", place / f"{library}.map"
        source.write_text("".join(answer(name) for name in sorted(names)))
        script.write_text(f"{version} {{ global: *; }};\n" if version in versions else "{ global: *; };\n")
        run("cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library}", f"-Wl,--version-script,{script}",
            "-o", str(place / library), str(source))  # fmt: skip


def main():
    folder = Path(sys.argv[1]).resolve()
    place = folder / "no-cuda"
    python = str(folder / "bin" / "python")
    works = ["env", f"LD_LIBRARY_PATH={place}", python, "-c", "import torch; assert torch.ones(3).sum() == 3"]
    if not (place / "done").exists():
        libraries = install(folder) / "torch" / "lib"
        stand_ins(sorted(libraries.glob("*.so")), place)
        run(*works)
        (place / "done").touch()
    print(place)


if __name__ == "__main__":
    main()
