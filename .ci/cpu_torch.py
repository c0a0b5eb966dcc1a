#!/usr/bin/env python3
"""PyTorch for a machine without a GPU, from the wheel that everyone gets: `python3 .ci/cpu-torch.py FOLDER`.

The wheel of PyTorch on PyPI wants two gigabytes of CUDA's libraries beside it before it loads, though on a CPU none of
their functions is ever called for. This installs PyTorch and what it needs in Python, and for each library that is
missing one of the same name, whose functions all answer "no device" (error 100 of CUDA). It needs a C compiler.
Prints the folder to put on LD_LIBRARY_PATH.
"""

import re
import subprocess
import sys
from pathlib import Path

TORCH = "torch==2.11.0"
# What PyTorch and the tests need in Python.
BESIDE = ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "numpy", "pyarrow", "pytest", "mypy"]
# What reads our tables, watches loops, runs notebooks.
BESIDE += ["pandas", "polars", "duckdb", "matplotlib", "nbclient", "ipykernel", "transformers", "psutil", "pyyaml", "tqdm", "packaging"]
# The same, which would bring CUDA's libraries along.
ALONE = ["lightning", "lightning-utilities", "torchmetrics", "accelerate"]
# Those that the system has, and those that are only opened where there is a GPU.
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
    """The libraries that one needs, and the functions it takes from others: name and version."""
    needs = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", str(library)))
    taken = re.findall(r"UND (\S+)@(\S+)", run("readelf", "--dyn-syms", "-W", str(library)))
    bare = re.findall(r"UND ([A-Za-z]\w+)$", run("readelf", "--dyn-syms", "-W", str(library)), re.MULTILINE)
    return needs, taken, bare


def answer(name):
    """A function of CUDA where there is no device."""
    if "String" in name or "GetErrorName" in name:
        return f'const char* {name}(void) {{ return "no CUDA on this machine"; }}\n'
    return f"long {name}(void) {{ return 100; }}\n"


def stand_ins(libraries, place):
    """Makes what is missing beside the libraries; functions of no version go into the first."""
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
