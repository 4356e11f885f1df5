"""Samples of instructions: hot lines that are known by construction."""

import csv
import io
import shutil
from collections import Counter

from ..processes import Failed, program, run
from ..registry import part
from .relay import alone, compare, gapscope, relay


@part("pc-sampling")
def pc_sampling(bench, result):
    """Hot lines found by `record --instructions`: a loop of 30,000 steps and one of 10,000, and a kernel without lines."""
    command = program("hot_line", 200)
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
    busy = [kernels_ns(each).get("with_lines") for each in (plain_trace, trace)]
    result.measure("nanoseconds of with_lines, recorded and sampled", busy)

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
    behind = [lines.get(line, {}).get("share", 0) for line in facts["behind"]]
    result.at_least("samples in both loops and right behind", sum(shares) + sum(behind), 0.99)
    if sum(shares) > 0:
        result.within("samples in the long loop, of both", shares[0] / sum(shares), facts["long_share"], 0.05)
    result.measure("what warps waited for", [(stall["reason"], round(stall["share"], 3)) for stall in hot["stalls"][:4]])
    result.measure("places", [[place["line"], place["offset_bytes"], round(place["share"], 4)] for place in hot["places"]])
    why = sorted({str(place["no_line"]) for place in other["places"]})
    result.equal("why the other kernel has no lines", why, ["not-compiled-in"])
    named = bench.recorded(command, "--instructions=with_lines")[1].report().get("sampled_kernels", [])
    result.equal("kernels of a name", [kernel["kernel"] for kernel in named], ["with_lines"])
    every_sample(result, trace, hot, busy[1], facts["multiprocessors"])
    compare_with_ncu(bench, result, command, trace)


def kernels_ns(trace):
    return {kernel["name"]: kernel["total_ns"] for kernel in trace.report()["kernels"]}


def every_sample(result, trace, kernel, busy_ns, multiprocessors):
    """A multiprocessor gives one sample a period while it has a warp, as these kernels do all the time."""
    clocks = [number for number, name in zip(*trace.columns("counters", "id", "name")) if name == "SM clock"]
    values = [float(value) for counter, value in zip(*trace.columns("counter_values", "counter", "value")) if counter in clocks]
    if len(clocks) != 1 or not values or None in (busy_ns, kernel["period_cycles"]):
        return result.unchecked("samples, of those of all multiprocessors", f"clocks {len(clocks)}, values {len(values)}, busy {busy_ns}, period {kernel['period_cycles']}")
    wanted = busy_ns / 1e9 * values[-1] * multiprocessors / kernel["period_cycles"]
    result.within("samples, of those of all multiprocessors", kernel["samples"], wanted, 0.02)


def compare_with_ncu(bench, result, command, trace):
    """Shares of the same kernel's instructions by Nsight Compute, in a process of its own."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return result.unchecked("Nsight Compute", "ncu is not in PATH")
    report = bench.file(".ncu-rep")
    words = [ncu, "-o", report, "--section", "SourceCounters", "--clock-control", "none", "-k", "with_lines", "-c", "3"]
    try:
        run([*words, *command], bench.left(), bench.environment).need()
        said = run([ncu, "-i", report, "--page", "source", "--print-source", "sass", "--csv"], bench.left(), bench.environment).need()
    except Failed as failure:
        return result.unchecked("Nsight Compute", str(failure)[-300:])
    theirs, first, column = Counter(), None, None
    for row in csv.reader(io.StringIO(said.stdout)):
        if row and row[0] == "Kernel Name":
            first = None
        elif row and row[0] == "Address":
            column = row.index("# Samples") if "# Samples" in row else None
        elif row and row[0].startswith("0x") and column is not None:
            address = int(row[0], 16)
            first = address if first is None else first
            theirs[address - first] += int(row[column])
    ours = Counter()
    columns = trace.columns("pc_samples", "function", "offset_bytes", "samples")
    for function, offset, samples in zip(*columns):
        if function == "with_lines":
            ours[offset] += samples
    result.measure("samples of Nsight Compute", theirs.total())
    if theirs.total() and ours.total():
        apart = sum(abs(ours[at] / ours.total() - theirs[at] / theirs.total()) for at in ours | theirs) / 2
        result.at_most("samples at other instructions than by Nsight Compute, share", apart, 0.03)
    else:
        result.unchecked("samples at other instructions than by Nsight Compute, share", "no samples were read")


@part("pc-sampling-cost", limit_s=150, needs=["torch"])
def cost(bench, result):
    """Tiny launches and GPT steps: alone, recorded, and with samples of instructions."""
    ways = {"none": alone, "none, again": alone, "gapscope": gapscope(), "--instructions": gapscope("--instructions")}
    compare(result, relay(bench, result, ways), "--instructions", "gapscope")
