"""Several ranks: a trace a rank, one clock, collectives with their skew."""

import sys

from .. import machine
from ..processes import program
from ..registry import part
from ..trace import traces_under

STEPS = 30


@part("ranks", limit_s=180, needs=["torch"], gpus=2)
def ranks(bench, result):
    """torchrun with two ranks, one of them late in three steps; NCCL on two GPUs, gloo on one."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, *program("ranks", STEPS)[1:]]
    result.measure("GPUs", machine.gpu_count())
    bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    traces = traces_under(bench.gapscope, trace.folder)
    processes = [process for one in traces for process in one.manifest["processes"]]
    devices = [device for one in traces for device in one.manifest["devices"]]
    result.measure("traces", [str(one.path.name) for one in traces])
    result.measure("processes with a device", len({device["process"] for device in devices}))
    result.measure("processes", len(processes))
    result.measure("stdout", ran.stdout.strip()[-200:])
    for one in traces:
        markers = one.markers()
        late = {f"step {step}": markers[f"step {step}"] for step in (9, 10, 11, 12)}
        result.check(f"{one.path.name}: ranges of the steps", all(late.values()), late)
    report = trace.report()
    said = {key: report[key] for key in report if "rank" in key or "collective" in key}
    result.check("the report speaks of ranks", bool(said), sorted(said))
    result.measure("ranks", said)
