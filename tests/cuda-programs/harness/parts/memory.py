"""Who holds the memory of PyTorch's allocator, by its snapshots and by PyTorch's own counters."""

import subprocess

from ..processes import Failed, program
from ..registry import part
from ..trace import Trace


@part("memory-owners", needs=["torch"])
def memory_owners(bench, result):
    """A snapshot of a training run: its peak is that of PyTorch's own counters, and the owners sum to it."""
    snapshot, path = bench.file(".pickle"), bench.file(".gapscope")
    ran = bench.alone(program("memory_history", snapshot, 20))
    facts = ran.facts
    done = subprocess.run([bench.gapscope, "import", "-o", path, snapshot], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failed(f"gapscope import failed: {done.stderr.strip()[-400:]}")
    report = Trace(bench.gapscope, path).report()
    rows = [row for row in report["memory"] if row.get("allocator")]
    result.equal("devices with the history of an allocator", len(rows), 1)
    peak, owners = rows[0]["allocator"], rows[0]["owners"]
    result.equal("the peak, by PyTorch's counters", peak["bytes"], facts["requested_peak"])
    result.equal("the sum of the owners", sum(owner["bytes"] for owner in owners), peak["bytes"])
    result.equal("memory that is reserved at the end", rows[0]["live_bytes"], facts["reserved_now"])
    result.equal("older than the history", [owner for owner in owners if owner["is_before_history"]], [])
    phases = {}
    for owner in owners:
        phases[owner["phase"]] = phases.get(owner["phase"], 0) + owner["bytes"]
    result.check("phases of training", {"forward", "optimizer"} <= set(phases), sorted(map(str, phases)), "forward and optimizer")
    result.measure("memory by phase, reserved and not used", [phases, peak["reserved_bytes"], peak["unused_bytes"]])
    result.measure("the greatest owners", owners[:6])
    result.measure("least ms of a step", facts["least_ms"])
