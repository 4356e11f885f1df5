"""What recording costs whole programs: alone, gapscope, torch.profiler and bare subscriptions to CUPTI, in turn."""

from statistics import median

from .. import machine
from ..processes import Failed, program
from ..registry import part

# Time that a last round may need beyond that of the longest so far.
SPARE = 1.15


def series(bench, result, command, ways, launches, rounds):
    """Runs `command` in each way in turn, for as many rounds as fit; the order turns with the rounds. A way that fails
    is reported and left out; without the run alone there is nothing to compare with."""
    names = list(ways)
    times = {name: [] for name in names}
    extra = {name: {} for name in names}
    longest, done = 0.0, 0
    while done < rounds and (done == 0 or bench.left() > longest * SPARE):
        before = bench.left()
        for name in names[done % len(names):] + names[: done % len(names)]:  # fmt: skip
            if name not in times:
                continue
            try:
                ran, found = ways[name](bench, command)
            except Failed as failure:
                if name == "none":
                    raise
                result.check(name, False, str(failure))
                del times[name], extra[name]
                continue
            times[name].append(ran.facts["milliseconds"])
            for key, value in found.items():
                extra[name].setdefault(key, []).append(value)
        longest = max(longest, before - bench.left())
        done += 1
    result.note(f"{done} interleaved rounds; a round ran every way once; ratios are medians of the rounds' ratios")
    for name in times:
        ratios = [ours / alone for ours, alone in zip(times[name], times["none"])]
        result.measure(name, {
            "ms": median(times[name]), "least_ms": min(times[name]), "most_ms": max(times[name]),
            "ns_per_launch": median(times[name]) * 1e6 / launches if launches else None,
            "ratio": median(ratios), "least_ratio": min(ratios), "most_ratio": max(ratios),
            **{key: max(values) if key == "lost" else median(values) for key, values in extra[name].items()},
        })  # fmt: skip
    return times


def nothing_lost(result):
    ours = result.measured.get("gapscope")
    if ours:
        result.equal("records lost, most of a round", ours["lost"], 0)


def alone(bench, command):
    return bench.alone(command), {}


def gapscope(bench, command):
    ran, trace, ending = bench.recorded(command, "--no-report")
    launches = trace.report()["dispatch_count"]
    found = {
        "lost": sum(loss["count"] for loss in trace.lost_work),
        "kernels": launches,
        "bytes": trace.bytes,
        "bytes_per_kernel": trace.bytes / launches if launches else 0,
        "exit_to_trace_ms": (ran.ended_ns - ending["ended_ns"]) / 1e6,
    }
    rows = trace.rows("dispatches", "transfers", "host_calls", "markers", "submissions")
    if rows:
        found["bytes_per_event"] = trace.bytes / rows
    return ran, found


def profiler(bench, command):
    ran = bench.profiled(command)
    stops = [region["profiler_stop_ns"] / 1e6 for region in ran.facts["regions"].values()]
    return ran, {"stop_ms": median(stops)}


def bare(calls):
    def way(bench, command):
        ran, ending = bench.bare(command, calls)
        return ran, {"bytes": ending["bytes"]}

    return way


DRIVER = {"none": alone, "gapscope": gapscope, "bare CUPTI, kernels": bare(None), "bare CUPTI, and launches": bare("launches")}
FRAMEWORK = {**DRIVER, "torch.profiler": profiler}


@part("cost-driver", limit_s=90)
def cost_driver(bench, result):
    """200,000 launches of an empty kernel from C, through the driver."""
    command = [machine.build("launches", bench.scratch), 200_000, 200_000]
    series(bench, result, command, DRIVER, 200_000, rounds=7)
    nothing_lost(result)


@part("cost-chain", limit_s=120, needs=["torch"])
def cost_chain(bench, result):
    """A chain of four kernels on 64 MiB, 400 kernels."""
    series(bench, result, program("torch_chain", "chain", 400, 5), FRAMEWORK, 400, rounds=4)
    nothing_lost(result)


@part("five-million", limit_s=200)
def five_million(bench, result):
    """5,000,000 launches from C: nothing lost, or the loss counted exactly; memory stays bounded."""
    launches = 5_000_000
    command = [machine.build("launches", bench.scratch), launches, 100_000]
    none = bench.alone(command)
    ran, trace, ending = bench.recorded(command, "--no-report")
    recorded = trace.report()["dispatch_count"]
    lost = sum(loss["count"] for loss in trace.losses if "dispatch" in loss["what"])
    result.equal("kernels recorded, and lost by the ledger", recorded + lost, launches + 1000)
    result.measure("lost", trace.losses)
    result.measure("peak MiB of the program", ending["peak_kib"] / 1024)
    result.measure("ns a launch: none, gapscope",
                   [one.ending["milliseconds"] * 1e6 / launches for one in (none, ran)])  # fmt: skip
    result.measure("ratio", ran.facts["milliseconds"] / none.ending["milliseconds"])
    result.measure("bytes a launch on disk", trace.bytes / recorded if recorded else None)
    result.measure("exit to trace ms", (ran.ended_ns - ending["ended_ns"]) / 1e6)
