"""Unmodified programs of PyTorch, JAX and MLX: counts and times against independent ones."""

from statistics import median

from ..processes import Failed, program
from ..registry import part

# Kernels' total time in two processes differs by clocks and caches too.
TIME_SHARE = 0.01


def compare_with_profiler(result, name, span, truth):
    """A region of a trace with what torch.profiler saw of it in another process."""
    kernels, copies, fills = (truth[kind] for kind in ("kernels", "copies", "fills"))
    result.equal(f"{name}: kernels", span.kernels, sum(count for count, _ in kernels.values()))
    result.equal(
        f"{name}: kernels by their count",
        sorted(count for count, _ in span.by_name.values()),
        sorted(count for count, _ in kernels.values()),
    )
    moved = sum(count for found in (copies, fills) for count, _ in found.values())
    result.equal(f"{name}: copies and fills", span.transfers, moved)


def total(truth):
    return sum(nanoseconds for _, nanoseconds in truth["kernels"].values())


def region_of(trace, ran, name):
    region = ran.facts["regions"][name]
    return trace.within(region["begin_ns"], region["end_ns"])


def nothing_lost(result, trace, what=""):
    result.equal(f"{what}nothing lost", trace.lost_work, [])


@part("gpt", limit_s=150, needs=["torch"])
def gpt(bench, result):
    """A GPT's training step: counts and times against torch.profiler in another process."""
    command = program("gpt", 20)
    alone = bench.alone(command)
    ours, theirs = [], []
    while len(ours) < 3 and (not ours or bench.left() > 50):
        ran, trace, _ = bench.recorded(command)
        _, truth = bench.truth(command)
        span = region_of(trace, ran, "steps-0")
        if not ours:
            compare_with_profiler(result, "20 steps", span, truth["steps-0"])
            nothing_lost(result, trace)
            result.within("the loss is that of a run alone", ran.facts["result"], alone.facts["result"], 0.01)
            matched, without = trace.launched_before()
            result.equal("kernels without a launch call", without, 0)
            result.equal("kernels that start before their launch call", sum(ns < 0 for ns in matched), 0)
        ours.append(span.kernel_ns)
        theirs.append(total(truth["steps-0"]))
    if None in ours:
        raise Failed("kernels without times")
    result.within("kernel time, median of pairs", median(ours), median(theirs), TIME_SHARE)
    result.measure("kernel ms a step, gapscope", [ns / 20e6 for ns in ours])
    result.measure("kernel ms a step, torch.profiler", [ns / 20e6 for ns in theirs])
    report = trace.report()
    result.measure("verdict", report["verdict"])
    result.measure("clock error ns", report["clock_error_ns"])


@part("inference", limit_s=240, needs=["torch"])
def inference(bench, result):
    """Inference eager, compiled, with CUDA graphs: counts and times against torch.profiler."""
    ways = ("eager", "compiled", "compiled-graphs", "graph")
    passes = 100
    command = program("inference", passes, *ways)
    # Fills the compilers' caches, so that nothing is compiled or tuned later.
    alone = bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    _, truth = bench.truth(command)
    nothing_lost(result, trace)
    result.equal("results are those of a run alone", ran.facts["result"], alone.facts["result"])
    for way in ways:
        span = region_of(trace, ran, way)
        result.measure(f"{way}: kernels, command buffers", [span.kernels, span.command_buffers])
        if way == "graph":
            result.equal(f"{way}: graph launches", span.command_buffers, passes)
        compare_with_profiler(result, way, span, truth[way])
        result.within(f"{way}: kernel time", span.kernel_ns, total(truth[way]), TIME_SHARE)
    if bench.left() < 40:
        result.unchecked("graphs as a whole", "no time left")
        return
    ran, trace, _ = bench.recorded(program("inference", passes, "graph"), "--mode", "command-buffer")
    span = region_of(trace, ran, "graph")
    result.equal("command-buffer mode: graph launches", span.command_buffers, passes)


@part("jax", needs=["jax"])
def jax(bench, result):
    """JAX eager and jitted: counts known by construction."""
    command = program("jax_jit", 200)
    alone = bench.alone(command)
    ran, trace, _ = bench.recorded(command)
    nothing_lost(result, trace)
    result.equal("the result is that of a run alone", ran.facts["result"], alone.facts["result"])
    for way in ("jit", "eager"):
        span = region_of(trace, ran, way)
        result.equal(f"{way}: kernels", span.kernels, ran.facts["regions"][way]["kernels"])
        result.measure(f"{way}: kernel ms", None if span.kernel_ns is None else span.kernel_ns / 1e6)
        result.measure(f"{way}: names", sorted(span.by_name)[:6])


@part("mlx")
def mlx(bench, result):
    """MLX's own experiment, eager against compiled: what the trace alone tells."""
    if bench.mlx is None:
        raise Failed("give the folder of the packed MLX with --mlx")
    environment = {"PYTHONPATH": str(bench.mlx)}
    seen = {}
    for graphs in ("1", "0"):
        for way in ("eager", "compiled"):
            name = f"{way}, {'graphs' if graphs == '1' else 'no graphs'}"
            command = program("mlx_chain", way, 100)
            alone = bench.alone(command, MLX_USE_CUDA_GRAPHS=graphs, **environment)
            ran, trace, _ = bench.recorded(command, MLX_USE_CUDA_GRAPHS=graphs, **environment)
            span = region_of(trace, ran, way)
            report = trace.report()
            nothing_lost(result, trace, f"{name}: ")
            result.equal(f"{name}: result", ran.facts["result"], alone.facts["result"])
            result.equal(f"{name}: kernels", span.kernels, ran.facts["regions"][way]["kernels"])
            region = ran.facts["regions"][way]
            seen[name] = {
                "wall_ms": (region["end_ns"] - region["begin_ns"]) / 1e6,
                "kernels": span.kernels,
                "kernel_ms": None if span.kernel_ns is None else span.kernel_ns / 1e6,
                "command_buffers": span.command_buffers,
                "verdict": report["verdict"],
                "gaps": sum(gap["count"] for gap in report["gaps"]),
                "gap_ms": sum(gap["total_ns"] for gap in report["gaps"]) / 1e6,
                "names": sorted(span.by_name)[:8],
                "markers": len(trace.markers()),
            }
            result.check(f"{name}: MLX's own NVTX ranges are there", seen[name]["markers"] > 0, seen[name]["markers"])
    result.measure("seen", seen)
    eager, compiled = seen["eager, no graphs"], seen["compiled, no graphs"]
    result.check("the trace tells fewer kernels", compiled["kernels"] * 4 == eager["kernels"])
    if eager["kernel_ms"] and compiled["kernel_ms"]:
        result.at_most("the trace tells less kernel time", compiled["kernel_ms"], eager["kernel_ms"] / 1.5)
