"""What the machine has."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .processes import HERE, Failed


def facts(gapscope):
    """Versions that belong to every figure."""
    found = {
        "gapscope": _first_line([gapscope, "--version"]),
        "gpus": _lines(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]),
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
        "system": " ".join(os.uname()[:3:2]),
    }
    for package in ("torch", "jax", "mlx", "triton", "nvidia-cuda-cupti", "pyarrow"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def gpu_count():
    return len(_lines(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]))


def cupti():
    """A libcupti for the bare subscription: the one in the Python packages, which PyTorch uses too, or the toolkit's."""
    given = os.environ.get("BARE_CUPTI")
    folders = [Path(path) for path in sys.path if path]
    candidates = [Path(given)] if given else []
    for folder in folders:
        candidates += sorted(folder.glob("nvidia/cu1*/lib/libcupti.so.1*"), reverse=True)
        candidates += sorted(folder.glob("nvidia/cuda_cupti/lib/libcupti.so.1*"), reverse=True)
    for root in sorted(Path("/usr/local").glob("cuda*"), reverse=True):
        candidates += sorted(root.glob("targets/*/lib/libcupti.so.1*"), reverse=True)
        candidates += sorted(root.glob("extras/CUPTI/lib64/libcupti.so.1*"), reverse=True)
    for path in candidates:
        if path.is_file():
            return path
    raise Failed("no libcupti was found: set BARE_CUPTI to its path")


def build(name, folder, shared=False):
    """Compiles a program of `native` and gives its path."""
    source, target = HERE / "native" / f"{name}.c", Path(folder) / (f"{name}.so" if shared else name)
    if target.exists():
        return target
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang", "nvcc"))), None)
    if compiler is None:
        raise Failed(f"there is no C compiler for {source.name}")
    options = ["-O2"]
    if shared:
        options += ["-shared", *(["-Xcompiler", "-fPIC"] if compiler.endswith("nvcc") else ["-fPIC"])]
    command = [compiler, *options, str(source), "-o", str(target), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise Failed(f"{source.name} cannot be compiled: {done.stderr.strip()[-300:]}")
    return target


def has(module):
    """Whether a Python module is there, without importing it."""
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _lines(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _first_line(command):
    return next(iter(_lines(list(map(str, command)))), None)
