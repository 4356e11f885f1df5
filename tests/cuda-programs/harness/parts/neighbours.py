"""Programs with workers, with a profiler of their own, with ranges."""

from ..processes import HERE, program
from ..registry import part
from .frameworks import nothing_lost, region_of


@part("workers", needs=["torch"])
def workers(bench, result):
    """Spawned DataLoader workers, spawned processes with CUDA, a child without."""
    command = program("workers", 40, 5)
    alone = bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    nothing_lost(result, trace)
    result.equal("the result is that of a run alone", ran.facts["result"], alone.facts["result"])
    span = region_of(trace, ran, "loader")
    result.equal("loader: kernels", span.kernels, ran.facts["regions"]["loader"]["kernels"])
    result.equal("loader: copies", span.transfers, 80)
    with_work = {device["process"] for device in trace.manifest["devices"]}
    result.equal("processes with a device", len(with_work), 3)
    queue_device = {queue["id"]: queue["device"] for queue in trace.manifest["queues"]}
    process_of = {device["id"]: device["process"] for device in trace.manifest["devices"]}
    counts = {}
    for queue in trace.columns("dispatches", "queue")[0]:
        process = process_of.get(queue_device.get(queue))
        counts[process] = counts.get(process, 0) + 1
    # Each also fills its tensor with zeros: a kernel or a memset.
    spawned = sorted(counts.values())[:2]
    result.one_of("spawned: kernels of the first", spawned[0] if spawned else None, (100, 101))
    result.one_of("spawned: kernels of the second", spawned[1] if len(spawned) > 1 else None, (200, 201))


@part("own-profiler", needs=["torch"])
def own_profiler(bench, result):
    """A program that uses torch.profiler itself: all is recorded, and the user is informed."""
    command = program("own_profiler")
    ran, trace, _ = bench.recorded(command)
    span = region_of(trace, ran, "all")
    result.equal("kernels", span.kernels, 1600)
    result.equal("the result", ran.facts["result"], 1601.0)
    result.measure("kernels that the program's profiler saw", ran.facts["kernels_that_the_profiler_saw"])
    result.measure("notes", trace.manifest.get("notes", []))
    result.measure("losses", trace.losses)
    result.measure("the program's stderr", ran.stderr.strip()[-300:])


@part("nvtx", needs=["torch"])
def nvtx(bench, result):
    """NVTX ranges and marks of PyTorch, and ranges of `import gapscope`."""
    ran, trace, _ = bench.recorded(program("nvtx_ranges"), PYTHONPATH=str(HERE.parent.parent / "python"))
    nothing_lost(result, trace)
    result.equal("kernels", region_of(trace, ran, "nvtx").kernels, 40)
    markers = trace.markers()
    result.equal("ranges step, inner; marks", [markers["step"], markers["inner"], markers["done"]], [10, 10, 10])
    result.equal("kernels under step", trace.report("--label", "step")["dispatch_count"], 40)
    result.equal("kernels under inner", trace.report("--label", "inner")["dispatch_count"], 10)
    result.measure("import gapscope", ran.facts["gapscope"])
    if ran.facts["gapscope"] is None:
        result.unchecked("ranges of the package", "it cannot be imported")
        return
    result.equal("ranges of the package", markers["python turn"], 5)
    result.equal("kernels under them", trace.report("--label", "python turn")["dispatch_count"], 20)
