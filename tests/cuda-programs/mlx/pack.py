#!/usr/bin/env python3
"""Packs MLX with its CUDA backend for a machine that can download nothing: `pack.py ARCHIVE.tar.xz [ARCHITECTURE]`.

Takes the wheels from PyPI, leaves out the GPU code of all architectures but one (90, Hopper, if none is given), and packs
what is left. On the other machine `unpack.py ARCHIVE FOLDER` makes a folder for PYTHONPATH; its Python must be 3.12
and have NVIDIA's CUDA 13 packages, which PyTorch brings. The archive is for measuring, not for distribution.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from fatbin import keep_architecture

VERSION = "0.32.4"
PLATFORM = ["--only-binary=:all:", "--python-version=3.12", "--implementation=cp", "--platform=manylinux_2_35_x86_64"]


def main(archive, architecture):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        wheels, site = folder / "wheels", folder / "site"
        packages = [f"mlx=={VERSION}", f"mlx-cuda-13=={VERSION}"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *PLATFORM, "--dest", str(wheels)]
        subprocess.run([*pip, *packages], check=True)
        for wheel in sorted(wheels.glob("*.whl")):
            with zipfile.ZipFile(wheel) as file:
                file.extractall(site)
        for library in site.rglob("libmlx.so"):
            before = library.read_bytes()
            after, dropped = keep_architecture(before, architecture)
            library.write_bytes(after)
            print(f"{library.name}: {dropped:,} of {len(before):,} bytes were code for other architectures")
        with tarfile.open(archive, "w:xz") as out:
            out.add(site, arcname=".")
    print(f"{archive}: {Path(archive).stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 90)
