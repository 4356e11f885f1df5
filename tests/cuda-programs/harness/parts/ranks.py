"""Several ranks: a trace a rank, one clock, collectives with their skew."""

import json
import sys

from .. import machine
from ..processes import program
from ..registry import part
from ..trace import traces_under

STEPS = 30
# Rank 1 sleeps 30 ms in its late steps, so that rank 0's collective takes about as long.
LATE_NS = 20_000_000


@part("ranks", limit_s=180, needs=["torch"], gpus=2)
def ranks(bench, result):
    """torchrun with two ranks, one of them late in three steps; NCCL on two GPUs, gloo on one."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, *program("ranks", STEPS)[1:]]
    result.measure("GPUs", machine.gpu_count())
    bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    facts = {one["rank"]: one for one in map(json.loads, filter(lambda l: l.startswith("{"), ran.stdout.splitlines()))}
    result.equal("ranks that reported their end", sorted(facts), [0, 1])
    traces = {one.path.name: one for one in traces_under(bench.gapscope, trace.folder) if one.path != trace.folder}
    result.equal("traces of ranks", sorted(traces), ["rank=0", "rank=1"])
    for rank, own in facts.items():
        one = traces[f"rank={rank}"]
        result.equal(f"rank {rank}: nothing lost", one.losses, [])
        markers = one.markers()
        result.equal(f"rank {rank}: ranges of the steps", sum(markers[f"step {step}"] for step in range(STEPS)), STEPS)
        region = own["regions"]["steps"]
        span = one.within(region["begin_ns"], region["end_ns"])
        # One multiplication a step, and with NCCL one collective.
        wanted = STEPS * (2 if own["backend"] == "nccl" else 1)
        result.equal(f"rank {rank}: kernels in the region of its own clock", span.kernels, wanted)
    result.measure("backend", facts[0]["backend"])
    if facts[0]["backend"] == "nccl":
        one = traces["rank=0"]
        ids, names = one.columns("kernels", "id", "name")
        collectives = {key for key, name in zip(ids, names) if "nccl" in name.lower()}
        rows = zip(*one.columns("dispatches", "kernel", "start_ns", "duration_ns"))
        region = facts[0]["regions"]["steps"]
        long = [ns for kernel, start, ns in rows if kernel in collectives and start >= region["begin_ns"] and ns > LATE_NS]
        result.equal("collectives in which rank 0 waited for rank 1", len(long), len(facts[0]["late_steps"]))
    report = trace.report()
    said = {key: value for key, value in report.items() if "rank" in key or "collective" in key}
    result.check("the report speaks of ranks", any(said.values()), sorted(said))
    result.measure("ranks", said)
