"""Finds the command that was installed with this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


# The exit status of the command when tables of a trace cannot be read. Its output names them.
INCOMPLETE = 3


class CommandError(RuntimeError):
    """The command `gapscope` is missing, or failed with this message."""


def command() -> Path:
    """Returns the path of the command `gapscope`: the one installed with this package, or else the one in PATH.

    Raises CommandError where there is none.
    """
    name = "gapscope" + (sysconfig.get_config_var("EXE") or "")
    package = Path(__file__).resolve().parent
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sys.executable).parent,
        # The folders of `pip install --user` and `pip install --target`.
        Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))),
        package.parent / "bin",
    ]
    for folder in folders:
        path = folder / name
        if path.is_file() and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found:
        return Path(found)
    raise CommandError("the command gapscope is not installed: `pip install gapscope` installs it with this package")
