"""Programs that end in every way: at most the last 100 ms are lost, and said."""

import struct

from ..processes import program
from ..registry import part

LAST_NS = 150_000_000
LAUNCHES = 20_000
# The status with which `gapscope record` must end, as a shell gives it.
WAYS = {"normal": 0, "_exit": 3, "kill": 137, "abort": 134, "terminate": 143, "fork-before": 0, "fork-after": 0}


def progress(path):
    """(launches that had finished, when) as the program noted it."""
    return [pair for pair in struct.iter_unpack("<qq", path.read_bytes()) if pair[1]]


@part("endings")
def endings(bench, result):
    """Normal end, _exit, SIGKILL, abort, SIGTERM, fork: with and without a pause before it."""
    for way, status in WAYS.items():
        for pause in ("pause", ""):
            name = f"{way}{', after a pause' if pause else ''}"
            notes = bench.file(".progress")
            command = program("endings", way, notes, *([pause] if pause else []))
            ran, trace, _ = bench.recorded(command, status=status)
            noted = progress(notes)
            recorded = trace.report()["dispatch_count"]
            launched = LAUNCHES + (1000 if way == "fork-before" else 0)
            result.equal(f"{name}: all were launched", noted[-1][0] if noted else 0, LAUNCHES)
            if pause or way in ("normal", "fork-before", "fork-after"):
                result.equal(f"{name}: kernels", recorded, launched)
                continue
            old = max((count for count, when in noted if when < noted[-1][1] - LAST_NS), default=0)
            result.at_least(f"{name}: kernels", recorded, old)
            result.at_most(f"{name}: no kernel twice", recorded, launched)
            if recorded < launched:
                result.check(f"{name}: the loss is said", bool(trace.losses or trace.manifest.get("notes")), trace.losses)
            result.measure(f"{name}: recorded", recorded)
