"""Measured regions of a program.

A region is a stretch of a program whose GPU work is all its own: the device is synchronised before it begins and before
it ends. The program says when it was, on CLOCK_MONOTONIC, read by itself, so that whoever recorded it can look up what a
recording holds of it.

With TRUTH=FILE in the environment each region runs under torch.profiler, whose events are written to FILE: the
independent count. With PROFILE=1 it also runs under torch.profiler, and only the time that takes is of interest.
"""

import contextlib
import json
import os
import tempfile
import time

regions = {}
_truth = {}


@contextlib.contextmanager
def region(name, synchronise, kernels=None):
    """Runs the block as a region. `kernels`: how many it launches, where that is known by construction."""
    profiler = new_profiler()
    synchronise()
    if profiler:
        profiler.start()
        synchronise()
    start = time.monotonic_ns()
    yield
    synchronise()
    end = time.monotonic_ns()
    stop_ns = None
    if profiler:
        profiler.stop()
        stop_ns = time.monotonic_ns() - end
    regions[name] = {"begin_ns": start, "end_ns": end, "kernels": kernels, "profiler_stop_ns": stop_ns}
    if profiler and os.environ.get("TRUTH"):
        _truth[name] = _events(profiler)


def finish(**facts):
    """Prints what the program knows, as its last line, and writes the truth."""
    if os.environ.get("TRUTH"):
        with open(os.environ["TRUTH"], "w") as file:
            json.dump(_truth, file)
    print(json.dumps({"regions": regions, **facts, "last_ns": time.monotonic_ns()}), flush=True)


def new_profiler():
    if not (os.environ.get("TRUTH") or os.environ.get("PROFILE")):
        return None
    from torch.profiler import ProfilerActivity, profile

    # Only CUDA for the truth, so that ranges of the program do not appear as GPU work.
    activities = [ProfilerActivity.CUDA]
    if os.environ.get("PROFILE"):
        activities.append(ProfilerActivity.CPU)
    return profile(activities=activities)


def _events(profiler):
    """Kernels and transfers by name: count and total nanoseconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    kinds = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "fills"}
    found = {kind: {} for kind in kinds.values()}
    for event in events:
        kind = kinds.get(event.get("cat"))
        if kind:
            entry = found[kind].setdefault(event["name"], [0, 0])
            entry[0] += 1
            # Microseconds with three decimals.
            entry[1] += round(event["dur"] * 1000)
    return found
