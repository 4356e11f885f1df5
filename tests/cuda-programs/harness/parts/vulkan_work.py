"""Vulkan work that is neither a dispatch nor a copy, on NVIDIA's driver."""

import json
from collections import Counter
from pathlib import Path

from ..registry import part

ITERATIONS, N = 6, 4
# The mode of `planted`, and what the trace must have of it: rows of opaque work by kind with how many of them are timed.
MODES = {
    "resolve": {"clear-image": (ITERATIONS * N, ITERATIONS * N)},
    # Two secondary command buffers of one primary are timed together, as other work.
    "suspended": {"render-pass": (10, 2), "other": (2, 2)},
    "render-pass": {"render-pass": (ITERATIONS * N, ITERATIONS * N)},
    "shader-objects": {},
    "sparse": {},
    "partly-written": {},
}


@part("vulkan-work")
def vulkan_work(bench, result):
    """Resolves, suspended renderings, shader objects and sparse binding, by `planted` beside gapscope."""
    planted = Path(bench.gapscope).parent / "planted"
    if not planted.exists():
        result.unchecked("Vulkan work", f"there is no {planted}: it is built by cargo build -p planted")
        return
    for mode, expected in MODES.items():
        command = [planted, mode, "--iterations", ITERATIONS, "--n", N]
        alone = truth(bench.alone(command))
        ran, trace, _ = bench.recorded(command)
        recorded = truth(ran)
        result.equal(f"{mode}: results", recorded.get("result_hash"), alone.get("result_hash"))
        result.equal(f"{mode}: dispatches", trace.rows("dispatches"), recorded["dispatches"])
        result.equal(f"{mode}: command buffers", trace.rows("command_buffers"), recorded["command_buffers"])
        kinds, durations = trace.columns("opaque_work", "kind", "duration_ns")
        rows, timed = Counter(kinds), Counter(kind for kind, ns in zip(kinds, durations) if ns is not None)
        result.equal(f"{mode}: opaque work", {kind: (rows[kind], timed[kind]) for kind in rows}, expected)
        result.measure(f"{mode}: losses", trace.losses)
        result.measure(f"{mode}: busy, ns", [device["busy_ns"] for device in trace.report()["devices"]])


def truth(ran):
    """What the program says that it did: the last line of JSON."""
    return json.loads([line for line in ran.stdout.splitlines() if line.startswith("{")][-1])
