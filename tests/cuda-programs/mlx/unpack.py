#!/usr/bin/env python3
"""Unpacks what pack.py packed, beside the CUDA packages of this Python: `unpack.py ARCHIVE FOLDER`."""

import sys
import sysconfig
import tarfile
from pathlib import Path


def main(archive, folder):
    folder = Path(folder)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    # libmlx.so looks for the CUDA libraries at ../../nvidia from its own folder.
    nvidia = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    if not nvidia.is_dir():
        sys.exit(f"unpack.py: this Python has no CUDA packages: {nvidia} is missing")
    (folder / "nvidia").symlink_to(nvidia)
    print(folder)


if __name__ == "__main__":
    main(*sys.argv[1:3])
