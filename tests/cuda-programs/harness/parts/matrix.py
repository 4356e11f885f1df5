"""What each kind of record costs: the same launches in every way to record them, interleaved in rounds."""

import os
import shutil
from pathlib import Path
from statistics import median, quantiles

from ..checks import figure, table
from ..processes import Failed, program, run
from ..registry import part
from .cost import SPARE

LAUNCHES, STEPS, REPETITIONS, ROUNDS = 50_000, 20, 3, 20
# What a time is divided by, and its unit: milliseconds of a region to nanoseconds a launch, to microseconds a step.
UNITS = {"tiny": (1e6 / LAUNCHES, "ns a launch"), "gpt": (1e3 / STEPS, "µs a step")}
# What GAPSCOPE_CUDA_WITHOUT leaves out.
KINDS = ["events", "waits", "overheads", "memory", "pools", "driver", "runtime", "copies", "fills"]
ALL_KINDS = [*KINDS, "kernels", "peer-copies"]
LEFT_OUT = "left out because the environment says so"
NSYS = "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys"


@part("cost-matrix", limit_s=500, needs=["torch"])
def cost_matrix(bench, result):
    """Tiny launches and GPT steps: each kind of record left out, torch.profiler, bare CUPTI and nsys."""
    command = [*pinned(result), *program("launch_costs", LAUNCHES, STEPS, REPETITIONS)]
    rounds(bench, result, command, ways(result), ROUNDS)


def pinned(result):
    """The words that keep a command on two cores, which are not threads of one where the numbering is usual."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 8 or not shutil.which("taskset"):
        result.note("not pinned to cores: taskset or cores are missing")
        return []
    result.note(f"programs are pinned to cores {cores[4]} and {cores[6]}; the recorders beside them are not")
    return ["taskset", "-c", f"{cores[4]},{cores[6]}"]


def ways(result):
    """How the program is run, by name."""
    found = {"none": alone, "none, again": alone, "default": without(), "subscribed only": without(*ALL_KINDS)}
    found |= {f"without {kind}": without(kind) for kind in KINDS}
    found |= {"torch.profiler": profiler, "bare CUPTI": bare}
    nsys = next((str(path) for path in sorted(Path("/").glob(NSYS[1:]), reverse=True)), shutil.which("nsys"))
    if nsys:
        found["nsys"] = under_nsys(nsys)
    else:
        result.note("nsys is not on this machine")
    return found


def rounds(bench, result, command, ways, most):
    """Runs every way once a round, the run alone first and the others in an order that turns. What is known is printed
    after each round, so that it is not lost when the time ends."""
    times, bytes_of, done, longest = {name: [] for name in ways}, {}, 0, 0.0
    first, *others = ways
    while done < most and (done == 0 or bench.left() > longest * SPARE):
        before = bench.left()
        turn = done * 5 % len(others)
        for name in [first, *others[turn:], *others[:turn]]:
            if name not in times or bench.left() < 5:
                continue
            try:
                ran, size = ways[name](bench, command)
            except Failed as failure:
                if name == first:
                    raise
                result.check(name, False, str(failure))
                del times[name]
                continue
            times[name].append((done, ran.told["milliseconds"]))
            if size is not None:
                bytes_of.setdefault(name, []).append(size)
        done += 1
        longest = max(longest, before - bench.left())
        summarise(result, times, bytes_of, done, longest)


def summarise(result, times, bytes_of, done, seconds):
    """Measures of all rounds so far; the later ones replace the earlier."""
    for what, (factor, unit) in UNITS.items():
        alone = {at: median(told[what]) * factor for at, told in times["none"]}
        rows = [[f"{what}, {unit}", "median", "quartile", "least", "ratio", "from", "to", "MB", "runs"]]
        for name, runs in times.items():
            if not runs:
                continue
            each = [median(told[what]) * factor for _, told in runs]
            ratios = [value / alone[at] for value, (at, _) in zip(each, runs)]
            row = {
                "median": median(each),
                "quartile": quantiles(each, n=4, method="inclusive")[0] if len(each) > 1 else each[0],
                "least": min(min(told[what]) for _, told in runs) * factor,
                "ratio": median(ratios), "least_ratio": min(ratios), "most_ratio": max(ratios),
                "megabytes": median(bytes_of[name]) / 1e6 if name in bytes_of else None, "runs": len(each),
            }  # fmt: skip
            result.measure(f"{what} {name}", row)
            rows.append([name] + ["" if value is None else figure(value) for value in row.values()])
        print(f"\n{table(rows)}")
    print(f"{done} rounds, the longest of {seconds:.0f} s; MB are of both programs", flush=True)


def alone(bench, command):
    return bench.alone(command), None


def without(*kinds):
    def way(bench, command):
        ran, trace, _ = bench.recorded(command, "--no-report", GAPSCOPE_CUDA_WITHOUT=",".join(kinds))
        lost = [loss for loss in trace.losses if loss["reason"] != LEFT_OUT]
        if not kinds and lost:
            raise Failed(f"records were lost: {lost}")
        return ran, trace.bytes

    return way


def profiler(bench, command):
    return bench.profiled(command), None


def bare(bench, command):
    ran, told = bench.bare(command)
    return ran, told["bytes"]


def under_nsys(nsys):
    def way(bench, command):
        path = bench.file("")
        ran = run([nsys, "profile", "-t", "cuda,nvtx", "-s", "none", "-o", path, *command], bench.left(), bench.environment)
        if not ran.told:
            ran.need()
        # Where libraries are missing it does not turn its stream into a report, and ends with an error.
        files = [file for file in path.parent.glob(f"{path.name}.*") if file.suffix in (".nsys-rep", ".qdstrm")]
        return ran, max((file.stat().st_size for file in files), default=None)

    return way
