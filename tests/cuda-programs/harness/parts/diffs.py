"""`gapscope diff`: how often it tells of a change that is not there, and whether it finds one that is."""

import json
import subprocess

from ..processes import Failed, program
from ..registry import part

# The kernel `softmax` takes so much longer after.
PLANTED = 1.02
EVALUATIONS = 300
# Runs on each side of a comparison, and of the program as it is for each that is slower.
RUNS = 5
# Rounds that are recorded: as it is, slower, as it is.
MAX_ROUNDS = 40


@part("diff", limit_s=400)
def diff(bench, result):
    """Runs compared: a program with itself, and with one that has a kernel 2 % slower."""
    same, slower = [], []
    for _ in range(MAX_ROUNDS):
        # What is left is for the comparisons.
        if bench.left() < 0.3 * bench.limit_s:
            break
        for runs, factor in ((same, 1.0), (slower, PLANTED), (same, 1.0)):
            _, trace, _ = bench.recorded(program("kernels", str(factor), str(EVALUATIONS)))
            runs.append(trace.path)
    if len(slower) < RUNS:
        raise Failed(f"only {len(slower)} rounds could be recorded in the time")
    # Neighbouring trials share runs: one that stands out is in several.
    windows = [same[at : at + 2 * RUNS] for at in range(0, len(same) - 2 * RUNS + 1, 2)]
    told = [compared(bench, window[0::2], window[1::2]) for window in windows]
    alarms = [found for found in told if any(is_told(change) for change in found["changes"])]
    result.measure("comparisons of the program with itself", len(told))
    result.measure("of these, that told of a change", len(alarms))
    for found in alarms:
        result.note(found["sentence"])
    result.at_most("alarms without a change", len(alarms), max(1, len(told) // 50))
    trials = [(same[2 * at : 2 * (at + RUNS) : 2], slower[at : at + RUNS]) for at in range(len(slower) - RUNS + 1)]
    found = ratios = 0
    total = []
    for before, after in trials:
        change = next(one for one in compared(bench, before, after)["changes"] if is_kernel(one, "softmax"))
        found += is_told(change)
        typical = change.get("typical") or change
        total.append(typical["ratio"])
        ratios += typical["low"] <= PLANTED <= typical["high"]
    result.measure("comparisons with the slower one", len(trials))
    result.measure("of these, that told of softmax", found)
    result.measure("ratio of softmax, mean", sum(total) / len(total))
    result.at_least("a kernel 2 % slower is found", found, 0.9 * len(trials))
    result.measure("intervals that hold the planted ratio", ratios)
    gate = bench.alone(
        [bench.gapscope, "diff", "--gate", 'kernel("softmax") > 1%', *sides(same[0 : 2 * RUNS : 2], slower[:RUNS])],
        status=1,
    )
    result.check("the gate is broken", "BROKEN" in gate.stdout)


def sides(before, after):
    return ["--before", *map(str, before), "--after", *map(str, after)]


def compared(bench, before, after):
    ran = subprocess.run(
        [bench.gapscope, "diff", "--json", *sides(before, after)], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise Failed(f"diff ended with {ran.returncode}: {ran.stderr.strip()[-400:]}")
    return json.loads(ran.stdout)


def is_told(change):
    return change["significant"] or (change.get("typical") or {}).get("significant", False)


def is_kernel(change, name):
    return change["kind"] == "kernel" and change["name"] == name
