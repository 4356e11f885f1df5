"""Builds the wheel: maturin packs the command and the Python files; this adds the hooks, which are files of their own
because recorded programs load them.

GAPSCOPE_PROFILE   cargo profile of command and hooks: `release` unless given
GAPSCOPE_HOOKS     a folder with hooks that are built already; then none is built
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401  (PEP 517)

PYTHON = Path(__file__).resolve().parent.parent
REPOSITORY = PYTHON.parent
DATA = PYTHON / "wheel-data"
HOOKS = ("gapscope-vulkan", "gapscope-cuda")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # maturin wants the folder even where it does not look into it.
    DATA.mkdir(exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _collect(Path(os.environ["GAPSCOPE_HOOKS"]) if "GAPSCOPE_HOOKS" in os.environ else None)
    os.environ["MATURIN_PEP517_ARGS"] = f"--profile {_profile()} " + os.environ.get("MATURIN_PEP517_ARGS", "")
    wheel = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    _check_glibc(wheel)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("gapscope is built from its repository, not from a source archive: `pip install ./python` there")


def _profile():
    return os.environ.get("GAPSCOPE_PROFILE", "release")


def _collect(folder):
    """Puts the hooks where maturin looks for the wheel's data."""
    libraries = _built() if folder is None else [folder / _library(hook) for hook in HOOKS]
    shutil.rmtree(DATA, ignore_errors=True)
    target = DATA / "data" / "lib" / "gapscope"
    target.mkdir(parents=True)
    for library in libraries:
        if not library.is_file():
            sys.exit(f"{library} is missing: build the hooks first")
        shutil.copy2(library, target)


def _check_glibc(wheel):
    """maturin looks only at what the command needs: a hook must not need a later glibc than the wheel's tag says."""
    tagged = re.search(r"manylinux_2_(\d+)_", wheel)
    if tagged is None:
        return
    for library in DATA.rglob("*.so"):
        needed = max(map(int, re.findall(rb"\0GLIBC_2\.(\d+)", library.read_bytes())), default=0)
        if needed > int(tagged[1]):
            sys.exit(f"{library.name} needs glibc 2.{needed}, later than the wheel's tag says: {wheel}")


def _built():
    """Builds the hooks, without symbols as maturin builds the command, and gives their files."""
    return [_build(hook) for hook in HOOKS]


def _build(hook):
    cargo = os.environ.get("CARGO", "cargo")
    what = ["--package", hook, "--lib", "--profile", _profile(), "--message-format=json-render-diagnostics"]
    command = [cargo, "rustc", *what, "--", "-C", "strip=symbols"]
    built = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    files = [Path(file) for message in messages for file in message.get("filenames", [])]
    return next(file for file in files if file.name == _library(hook))


def _library(hook):
    return f"lib{hook.replace('-', '_')}.so"
