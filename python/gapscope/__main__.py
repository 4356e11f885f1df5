"""`python -m gapscope` is the command `gapscope`."""

import os
import sys

from ._command import CommandError, command


def main() -> None:
    try:
        program = str(command())
    except CommandError as error:
        sys.exit(f"gapscope: {error}")
    os.execv(program, [program, *sys.argv[1:]])


main()
