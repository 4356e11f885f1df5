"""Runs a command and notes when it ended: `stamp.py FILE COMMAND…`.

FILE gets a line of JSON: the time on CLOCK_MONOTONIC at which its parent saw that it had ended, its greatest resident
size in KiB and its processor seconds. Ends as the command did, at once.
"""

import json
import os
import signal
import sys
import time


def main(path, command):
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    _, status, used = os.wait4(child, 0)
    ended_ns = time.monotonic_ns()
    with open(path, "w") as file:
        ending = {"ended_ns": ended_ns, "peak_kib": used.ru_maxrss, "cpu_seconds": used.ru_utime + used.ru_stime}
        json.dump(ending, file)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
