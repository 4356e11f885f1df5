"""Launches kernels and ends in one of the ways that programs end.

Arguments: the way, a file for the progress, and `pause` to let the recorder see everything before the end. The file
holds pairs of integers: launches that had finished, and when that was seen on CLOCK_MONOTONIC.
"""

import mmap
import os
import signal
import struct
import sys
import time

from driver import Driver

BATCH, BATCHES = 1000, 20
PAIR = struct.Struct("<qq")


class Progress:
    """A file that outlives any end of the process."""

    def __init__(self, path):
        with open(path, "w+b") as file:
            file.truncate(PAIR.size * (BATCHES + 1))
            self._map = mmap.mmap(file.fileno(), 0)

    def note(self, index, launches):
        PAIR.pack_into(self._map, index * PAIR.size, launches, time.monotonic_ns())


def launch_all(progress):
    driver = Driver()
    for batch in range(BATCHES):
        for _ in range(BATCH):
            driver.launch("nothing")
        driver.synchronise()
        progress.note(batch, (batch + 1) * BATCH)
        # Long enough to have a last 100 ms and a time before it.
        time.sleep(0.02)
    return driver


def fork_before(progress):
    """The child uses CUDA, and so does the parent."""
    child = os.fork()
    if child == 0:
        driver = Driver()
        for _ in range(BATCH):
            driver.launch("nothing")
        driver.synchronise()
        time.sleep(0.4)
        os._exit(0)
    launch_all(progress)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("the child failed")


def fork_after(progress):
    """The child of a process that uses CUDA does not touch it."""
    launch_all(progress)
    child = os.fork()
    if child == 0:
        os._exit(7)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7:
        sys.exit("the child did not end with its own code")


def main(way, path, pause):
    progress = Progress(path)
    if way == "fork-before":
        fork_before(progress)
    elif way == "fork-after":
        fork_after(progress)
    else:
        launch_all(progress)
    if pause:
        time.sleep(0.4)
    if way == "_exit":
        os._exit(3)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "terminate":
        os.kill(os.getpid(), signal.SIGTERM)
    if way == "abort":
        os.abort()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["pause"])
