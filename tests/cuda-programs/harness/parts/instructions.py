"""Samples of instructions: hot lines that are known by construction. It has not run on a GPU yet."""

from ..processes import program
from ..registry import part


@part("pc-sampling")
def pc_sampling(bench, result):
    """Hot lines found by `record --instructions`: a loop of 30,000 steps and one of 10,000, and a kernel without lines."""
    command = program("hot_line")
    alone = bench.alone(command)
    plain, plain_trace, _ = bench.recorded(command)
    ran, trace, _ = bench.recorded(command, "--instructions")
    facts = ran.facts
    result.equal("the result", facts["result"], alone.facts["result"])
    result.measure("seconds", {"alone": alone.facts["seconds"], "recorded": plain.facts["seconds"], "sampled": facts["seconds"]})
    result.measure("notes", trace.manifest.get("notes"))
    result.measure("losses", trace.losses)
    counts = {kernel["name"]: kernel["count"] for kernel in trace.report()["kernels"]}
    result.equal("dispatches by kernel", counts, {kernel["name"]: kernel["count"] for kernel in plain_trace.report()["kernels"]})
    busy = [each.report()["kernels"][0]["total_ns"] for each in (plain_trace, trace)]
    result.measure("nanoseconds of kernels, recorded and sampled", busy)

    sampled = {kernel["kernel"]: kernel for kernel in trace.report().get("sampled_kernels", [])}
    if not result.check("kernels", {"with_lines", "plain"} <= set(sampled), sorted(sampled)):
        return
    hot, other = sampled["with_lines"], sampled["plain"]
    result.measure("period in cycles", hot["period_cycles"])
    result.measure("samples", [hot["samples"], other["samples"]])
    # Both kernels do the same.
    result.within("samples of both kernels", other["samples"], hot["samples"], 0.1)
    lines = {place["line"]: place for place in hot["places"]}
    first = hot["places"][0]
    result.equal("the hot line", [first["file"], first["line"]], [facts["file"], facts["long_line"]])
    shares = [lines.get(facts[line], {}).get("share", 0) for line in ("long_line", "short_line")]
    result.at_least("samples in both loops", sum(shares), 0.9)
    if sum(shares) > 0:
        result.within("samples in the long loop, of both", shares[0] / sum(shares), facts["long_share"], 0.05)
    result.measure("what warps waited for", [(stall["reason"], round(stall["share"], 3)) for stall in hot["stalls"][:4]])
    why = {place["no_line"] for place in other["places"]}
    result.equal("why the other kernel has no lines", why, {"not-compiled-in"})
    named = bench.recorded(command, "--instructions=with_lines")[1].report().get("sampled_kernels", [])
    result.equal("kernels of a name", [kernel["kernel"] for kernel in named], ["with_lines"])
    result.unchecked("Nsight Compute", "its samples of source lines are not read")
