"""Builds the wheel. maturin packs the command and the Python files; this backend adds the hooks, which are separate files because
recorded programs load them, and the programs behind `gapscope query` and `gapscope mcp`.

It builds with the cargo profile GAPSCOPE_PROFILE, by default `release`. Apart from cargo's target folder, which makes the next build
short, it leaves nothing in the repository.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import maturin
from maturin import get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401  (PEP 517)

PYTHON = Path(__file__).resolve().parent.parent
REPOSITORY = PYTHON.parent
DATA = PYTHON / "wheel-data"
PROFILE = os.environ.get("GAPSCOPE_PROFILE", "release")
# The place of each file in a wheel's data folder.
PARTS = {
    "libgapscope_vulkan.so": DATA / "data/lib/gapscope",
    "libgapscope_vulkan_capture.so": DATA / "data/lib/gapscope",
    "libgapscope_cuda.so": DATA / "data/lib/gapscope",
    "gapscope-query": DATA / "scripts",
    "gapscope-mcp": DATA / "scripts",
}
# The programs of the wheel beside the hooks.
PROGRAMS = ["gapscope", "gapscope-query", "gapscope-mcp"]
# All packages are built together, because for one alone cargo would choose other features and recompile nearly everything. For tests
# that is the whole workspace, which was built before.
PACKAGES = (
    ["--workspace"]
    if PROFILE == "dev"
    else [f"--package={name}" for name in [*PROGRAMS, "gapscope-vulkan", "gapscope-vulkan-capture", "gapscope-cuda"]]
)
BUILD = ["build", *PACKAGES, "--profile", PROFILE, "--message-format=json-render-diagnostics"]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with _data([]):
        return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    cargo = os.environ.get("CARGO", "cargo")
    with _data(_built(cargo)), tempfile.TemporaryDirectory() as folder:
        # maturin makes the wheel in a folder of its own, and copies it.
        options = f"--profile {PROFILE} --out {shlex.quote(folder)} " + os.environ.get("MATURIN_PEP517_ARGS", "")
        os.environ["MATURIN_PEP517_ARGS"] = options
        os.environ["CARGO"] = _cargo_for_maturin(cargo, Path(folder))
        wheel = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
        needed = _later_glibc(wheel)
        if needed is not None:
            (Path(wheel_directory) / wheel).unlink()
            options = options.replace("--compatibility pypi", "")
            os.environ["MATURIN_PEP517_ARGS"] = f"{options} --compatibility manylinux_2_{needed}"
            wheel = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("gapscope is built from its repository, not from a source archive: `pip install ./python` there")


def _built(cargo):
    """Builds the command and the files that are packed with it, and returns their paths."""
    command = [cargo, *BUILD, "--lib", *(f"--bin={program}" for program in PROGRAMS)]
    built = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    files = [Path(file) for message in messages for file in message.get("filenames", [])]
    return [next(file for file in files if file.name == part) for part in PARTS]


@contextlib.contextmanager
def _data(files):
    """Puts files where maturin looks for the wheel's data, and removes them afterwards."""
    shutil.rmtree(DATA, ignore_errors=True)
    # maturin needs the folder to exist.
    DATA.mkdir()
    try:
        for file in files:
            folder = PARTS[file.name]
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, folder)
        yield
    finally:
        shutil.rmtree(DATA, ignore_errors=True)


def _cargo_for_maturin(cargo, folder):
    """Makes a replacement for cargo that builds the command with the workspace, whatever package maturin asks for."""
    program = folder / "cargo"
    build = shlex.join([cargo, *BUILD, "--bin", "gapscope"])
    program.write_text(
        f"""#!/bin/sh
[ "$1" = rustc ] || exec {shlex.quote(cargo)} "$@"
cd {shlex.quote(str(REPOSITORY))} && exec {build}
"""
    )
    program.chmod(0o755)
    return str(program)


def _later_glibc(wheel):
    """Returns the glibc 2.N that the files beside the command need, if it is later than the wheel's tag says.

    maturin looks only at the command itself.
    """
    tagged = re.search(r"manylinux_2_(\d+)_", wheel)
    if tagged is None:
        return None
    files = [folder / name for name, folder in PARTS.items()]
    versions = (map(int, re.findall(rb"\0GLIBC_2\.(\d+)", file.read_bytes())) for file in files)
    needed = max((version for of_file in versions for version in of_file), default=0)
    return needed if needed > int(tagged[1]) else None
