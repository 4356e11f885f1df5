"""Runs a shell command with a terminal of its own, and prints what the terminal got.

Use: on_terminal.py COMMAND
"""

import os
import pty
import sys

process, terminal = pty.fork()
if process == 0:
    os.execvp("sh", ["sh", "-c", sys.argv[1]])
got = b""
while True:
    try:
        piece = os.read(terminal, 1 << 16)
    except OSError:
        break  # The last process of the terminal has ended.
    if not piece:
        break
    got += piece
_, status = os.waitpid(process, 0)
sys.stdout.buffer.write(got)
sys.exit(os.waitstatus_to_exitcode(status))
