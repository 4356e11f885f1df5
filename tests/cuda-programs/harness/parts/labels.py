"""Labels that gapscope sets itself: modules and operators of PyTorch."""

import json
from statistics import median

from ..processes import program
from ..registry import part
from .frameworks import nothing_lost

LAYERS, STEPS, REPETITIONS = 12, 10, 4
# Two processes differ by clocks and caches too.
TIME_SHARE = 0.01
# Of all device time: what takes less is compared in its count alone.
LEAST_SHARE = 0.02
WAYS = {
    "recorded": (),
    "modules": ("--label-modules",),
    "operators": ("--label-ops",),
    "both": ("--label-modules", "--label-ops"),
}


@part("labels", limit_s=280, needs=["torch", "numpy"])
def labels(bench, result):
    """A GPT's training steps with labels of modules and operators: results, cost, and times against key_averages()."""
    command = program("labels", LAYERS, STEPS, REPETITIONS, "eager")
    alone = bench.alone(command)
    milliseconds = {"alone": [alone.facts["milliseconds"]], **{way: [] for way in WAYS}}
    ours, theirs, traces = [], [], {}
    for turn in range(3):
        # A turn is six programs of some seconds.
        if turn and bench.left() < 150:
            break
        for way, options in WAYS.items():
            ran, traces[way], _ = bench.recorded(command, *options)
            milliseconds[way].append(ran.facts["milliseconds"])
            result.equal(f"{way}, turn {turn}: the parameters are those of a run alone", ran.facts["result"], alone.facts["result"])
            if way == "operators":
                ours.append(operators_of(traces[way]))
                theirs.append(key_averages(bench, command))
        milliseconds["alone"].append(bench.alone(command).facts["milliseconds"])
    for way, trace in traces.items():
        nothing_lost(result, trace, f"{way}: ")
    least = {way: min(values) for way, values in milliseconds.items()}
    result.measure("ms a step, least of the turns", least)
    result.measure("ms a step, all", milliseconds)
    result.measure("bytes of the trace", {way: trace.bytes for way, trace in traces.items()})
    modules(result, traces["modules"])
    modules(result, traces["both"], "both: ")
    operators(result, ours, theirs)
    result.equal("both: operators by their calls are those of --label-ops", calls(operators_of(traces["both"])), calls(ours[0]))
    if bench.left() < 60:
        result.unchecked("compiled", "no time left")
        return
    command = program("labels", 2, 3, 1, "compiled")
    alone = bench.alone(command)
    ran, trace, _ = bench.recorded(command, *WAYS["both"])
    result.equal("compiled: the parameters", ran.facts["result"], alone.facts["result"])
    result.equal("compiled: graphs and breaks", ran.facts["compiled"], alone.facts["compiled"])
    result.equal("compiled: nothing is said", warnings(ran.stderr), warnings(alone.stderr))
    result.measure("compiled: labels", sorted({row["path"] for row in trace.report()["labels"]})[:20])
    regions = [name for name in operators_of(trace) if "ompiled" in name]
    result.measure("compiled: regions", regions)


def warnings(stderr):
    return [line for line in stderr.splitlines() if "Warning" in line]


def modules(result, trace, what=""):
    """Each of the layers has the same work, forward and backward, and one row together."""
    report = trace.report()
    rows = {row["path"]: row for row in report["labels"]}
    for way in ("", "backward / "):
        blocks = [f"{way}GPT / blocks.{number}" for number in range(LAYERS)]
        missing = [path for path in blocks if path not in rows]
        if not result.equal(f"{what}{way}each layer is a label", missing, []):
            continue
        counts = {rows[path]["inclusive"]["dispatch_count"] for path in blocks}
        result.equal(f"{what}{way}layers have the same number of kernels", len(counts), 1)
        for name in ("qkv", "out", "up", "down", "norm1", "norm2"):
            path = f"{blocks[3]} / blocks.3.{name}"
            result.check(f"{what}{path} has work", path in rows and rows[path]["inclusive"]["dispatch_count"] > 0)
        folded = {row["path"]: row for row in report["folded_labels"]}
        star = folded.get(f"{way}GPT / blocks.*", {})
        result.equal(f"{what}{way}one row has all layers", star.get("layer_count"), LAYERS)
        steps = STEPS * REPETITIONS
        if not way:
            result.equal(f"{what}a layer runs once in a step", star.get("instances"), LAYERS * steps)
        result.measure(f"{what}{way}layer us, mean, least, most", [
            (star.get(f"layer_{key}_busy_ns") or 0) / steps / 1e3 for key in ("mean", "min", "max")
        ])  # fmt: skip
    labelled = sum(row["exclusive"]["dispatch_count"] for row in report["labels"])
    result.measure(f"{what}share of kernels with a label", labelled / max(report["dispatch_count"], 1))


def operators_of(trace):
    """By name: calls, own nanoseconds, nanoseconds with those inside; the operators that have work."""
    rows = trace.report()["operators"]
    return {
        row["name"]: [row["call_count"], row["own"]["total_ns"] or 0, row["inclusive"]["total_ns"] or 0]
        for row in rows
        if row["inclusive"]["total_ns"]
    }


def key_averages(bench, command):
    path = bench.file(".operators.json")
    bench.alone(command, OPERATORS=str(path))
    return {name: row for name, row in json.loads(path.read_text()).items() if row[2]}


def calls(operators):
    return {name: row[0] for name, row in operators.items()}


def operators(result, ours, theirs):
    """Against torch.profiler in other processes."""
    if not result.check("there are operators with work", bool(ours[0]) and bool(theirs[0])):
        return
    # What the profiler adds is no operator: calls of CUDA, and itself.
    names = [name for name in theirs[0] if not name.startswith(("cuda", "cu", "Profiler", "Activity", "Command", "Lazy", "Buffer", "Runtime"))]
    result.equal("operators with work", sorted(ours[0]), sorted(names))
    known = [name for name in names if name in ours[0]]
    result.equal("calls", {name: ours[0][name][0] for name in known}, {name: theirs[0][name][0] for name in known})
    for at, what in ((1, "own"), (2, "with those inside")):
        of = lambda rows, name: median(row[name][at] for row in rows if name in row)  # noqa: E731
        mine, yours = ({name: of(rows, name) for name in known} for rows in (ours, theirs))
        total = sum(of(theirs, name) for name in known) if at == 1 else max(yours.values())
        if at == 1:
            result.within("all operators: own time", sum(mine.values()), total, TIME_SHARE)
        large = [name for name in known if yours[name] >= LEAST_SHARE * total]
        off = {name: mine[name] / yours[name] - 1 for name in large}
        for name in large:
            result.within(f"{name}: {what}", mine[name], yours[name], TIME_SHARE)
        result.measure(f"{what}: gapscope / key_averages - 1", {name: round(share, 5) for name, share in off.items()})
